"""How many workers, and why: from what was measured, and no more than that."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from holdfast.errors.base import size

from .allotment import Allotment
from .bounds import QUEUES, WAITS, share
from .step import Step

NEAR = 0.95  # of the best rate is as good
_ROOM = 0.8  # of the memory that is left may be workers'


@dataclass(frozen=True)
class Advice:
    """``workers`` is None when nothing could be measured. ``reasons`` are sentences, the decisive one first."""

    workers: int | None
    reasons: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def advice(steps: Sequence[Step], allotment: Allotment) -> Advice:
    alone = next((step for step in steps if not step.workers), None)
    crews = [step for step in steps if step.workers]
    if not crews:
        return Advice(None, ("nothing was measured with workers",))
    if alone is not None and (why := _not_worth_it(alone, crews[0])):
        return Advice(0, (why,))
    allowed, limits = _allowed(crews, alone, allotment)
    if not allowed:
        return Advice(0, tuple(limits))
    best = max(step.rate for step in allowed)
    chosen = next(step for step in allowed if step.rate >= NEAR * best)
    reasons = (_reason(chosen, allowed), *_spared(alone, chosen), *limits, *_beyond(chosen, crews, allotment))
    return Advice(chosen.workers, reasons)


def _not_worth_it(alone: Step, first: Step) -> str:
    """Why workers spare the trainer nothing; empty when they do."""
    here, handed = (1 - alone.queued) / alone.rate, first.trainer_cpu  # both as on a machine that is not busy
    if handed < here * NEAR:
        return ""
    return f"to load a sample takes {_time(here)}, to take it over from a worker {_time(handed)} of the trainer's CPU"


def _spared(alone: Step | None, chosen: Step) -> list[str]:
    """Why not none, though the rate is better then."""
    if alone is None or alone.rate <= chosen.rate:
        return []
    took, handed = _time((1 - alone.queued) / alone.rate), _time(chosen.trainer_cpu)
    than = f"without workers {alone.rate:,.0f}, but then"
    return [f"{than} a sample takes {took} of the trainer's time, and not {handed}"]


def _allowed(crews: list[Step], alone: Step | None, allotment: Allotment) -> tuple[list[Step], list[str]]:
    """The steps that this machine has CPUs and memory for, and what kept others out."""
    limits, allowed = [], crews
    waits = share(alone or crews[0]) < WAITS
    if not waits and any(step.workers > allotment.cpus for step in crews):
        allowed = [step for step in crews if step.workers <= allotment.cpus] or crews[:1]
        limits.append(f"more than {allotment.cpus} have no CPU of their own: {allotment.told}")
    fitting = [step for step in allowed if step.uss <= allotment.memory * _ROOM]
    if len(fitting) < len(allowed):
        big = next(step for step in allowed if step not in fitting)
        limits.append(f"{big.workers} hold {size(big.uss)} for themselves, of {size(allotment.memory)} that are left")
    return fitting, limits


def _reason(chosen: Step, allowed: list[Step]) -> str:
    rates = ", ".join(f"{step.workers}: {step.rate:,.0f}" for step in allowed)
    best = max(step.rate for step in allowed)
    if len(allowed) == 1:
        return f"{chosen.rate:,.0f} samples/s"
    return f"{chosen.rate:,.0f} samples/s, {chosen.rate / best:.0%} of the best rate (samples/s by workers: {rates})"


def _beyond(chosen: Step, crews: list[Step], allotment: Allotment) -> list[str]:
    said = []
    if chosen is crews[-1]:
        said.append(f"more than {chosen.workers} were not measured")
    queued = max((step.queued for step in crews if step.workers <= allotment.cpus), default=0.0)
    if queued > QUEUES:
        said.append(
            f"other programs were busy here, and rates vary: workers waited {queued:.0%} of their time for a CPU"
        )
    return said


def _time(seconds: float) -> str:
    return f"{seconds * 1e6:.0f} µs" if seconds < 1e-3 else f"{seconds * 1e3:.1f} ms"
