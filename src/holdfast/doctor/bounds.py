"""What the figures of the steps say: what grows, and what holds loading back."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass

from holdfast.audit.finding import Severity
from holdfast.errors.base import size

from .allotment import Allotment
from .figures import counted
from .step import Step
from .symptom import Symptom

_LEAK = 4 << 20  # bytes of one worker within a second or so
_ENOUGH = 32  # samples, before what memory does is more than chance
_OPENED = 8  # descriptors, within the same
_STEADY = 1 / 3  # of the growth before: less is on its way to an end
WAITS, QUEUES, COLLATES = 0.4, 0.25, 0.5


class Hold(enum.Enum):
    """What holds loading back."""

    CPU = "INPUT-BOUND (CPU)"
    WAITING = "WAIT-BOUND"
    COLLATING = "COLLATE-BOUND"
    OVERSUBSCRIBED = "OVERSUBSCRIBED"


@dataclass(frozen=True)
class Held:
    by: Hold
    why: str

    def to_dict(self) -> dict[str, str]:
        return {"by": self.by.value, "why": self.why}


def held(steps: Sequence[Step], allotment: Allotment, asked: int) -> Held | None:
    """By the step with the fewest workers, where none is in another's way; or by as many as were ``asked`` for."""
    if not steps:
        return None
    one = steps[0]
    if one.collating > COLLATES:
        return Held(Hold.COLLATING, f"making batches of samples takes {one.collating:.0%} of the time")
    busy = share(one)
    if busy < WAITS:
        return Held(Hold.WAITING, f"of the time for a sample {busy:.0%} is computing, the rest is waiting")
    most = max((step for step in steps if step.workers <= asked), key=lambda step: step.workers, default=one)
    if most.workers > allotment.cpus and most.queued > QUEUES:
        why = f"{most.workers} workers spend {most.queued:.0%} of their time waiting for a CPU ({allotment.told})"
        return Held(Hold.OVERSUBSCRIBED, why)
    return Held(Hold.CPU, f"of the time for a sample {busy:.0%} is computing")


def share(step: Step) -> float:
    """Of the time that it had a CPU or waited for something else: that a machine is busy otherwise is not its doing."""
    return min(1.0, step.busy / max(1e-9, 1 - step.queued))


def growth(steps: Sequence[Step], room: int, grown: Sequence[str] = ()) -> list[Symptom]:
    """Memory and descriptors that only ever become more. ``room``: bytes that are left; ``grown``: paths of containers
    that have."""
    found = []
    measured = [step for step in steps if step.samples >= _ENOUGH]
    leaking = [step for step in measured if _grows(step.memory_grown, _LEAK * max(1, step.workers))]
    opening = [step for step in steps if _grows(step.descriptors_grown, _OPENED)]
    if leaking and (len(leaking) > 1 or len(measured) == 1):  # what leaks does so in every step
        found.append(_leak(leaking[-1], room, ", ".join(grown)))
    if opening:
        found.append(_opened(opening[-1], ", ".join(grown)))
    return found


def _grows(grown: tuple[int, int], least: int) -> bool:
    first, then = grown
    return first > 0 and first + then >= least and then > first * _STEADY


def _leak(step: Step, room: int, where: str) -> Symptom:
    grown = sum(step.memory_grown)
    each = grown / (step.samples * 2 / 3)
    evidence = f"{_with(step)}: {size(grown)} more in {step.seconds * 2 / 3:.1f} s, {size(round(each))} a sample"
    left = f"the {size(room)} that are left last for {room / each:,.0f} samples"
    fix = "DataLoader(..., recycle_after=1000)  # holdfast: new workers now and then, until the leak is found"
    what = "memory grows with every sample that is loaded"
    return Symptom("HD15", Severity.WARNING, what, where, f"{evidence}; {left}", fix)


def _opened(step: Step, where: str) -> Symptom:
    grown, samples = sum(step.descriptors_grown), max(1, round(step.samples * 2 / 3))
    evidence = f"{_with(step)}: {grown} more after {samples} samples, {step.descriptors} in all"
    what = "files or connections are opened for samples, and not closed"
    return Symptom("HD13", Severity.ERROR, what, where, evidence, "with open(path, 'rb') as file: ...")


def _with(step: Step) -> str:
    return f"with {counted(step.workers, 'worker')}"
