"""Whether the environment is fit for what a loader asks of it. Values in, symptoms out: nothing is looked at here."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import TYPE_CHECKING

from holdfast.audit.finding import Severity
from holdfast.errors.base import size

from .capacity import symptoms_of_capacity
from .figures import counted
from .needs import Needs
from .symptom import Symptom

if TYPE_CHECKING:
    from .environment import Environment

ERROR, WARNING, NOTE = Severity

_MOST_NAMES = 5


def symptoms_of(environment: Environment, needs: Needs | None = None) -> list[Symptom]:
    """What of the environment will hurt a loader with these needs."""
    needs = needs or Needs()
    checks = (_cuda, symptoms_of_capacity, _signals, _storage, _leftover_files, _orphans, _visibility)
    return [symptom for check in checks for symptom in check(environment, needs)]


# HD04


def _cuda(environment: Environment, needs: Needs) -> Iterator[Symptom]:
    torch = environment.torch
    if torch is not None and torch.cuda_is_initialized and needs.forks and needs.workers != 0:
        yield Symptom(
            "HD04",
            NOTE,
            "CUDA is initialised in this process, and forked workers must not touch it",
            "torch.cuda",
            "a worker that does raises: Cannot re-initialize CUDA in forked subprocess",
            "batch = batch.to('cuda', non_blocking=True)  # in the training loop, not in the data set",
        )


# HD21


def _signals(environment: Environment, needs: Needs) -> Iterator[Symptom]:
    """With ours it does not matter: it watches workers by other means, and they set signals as they should be."""
    signals = environment.signals
    if not needs.stock:
        return
    ignored, blocked = signals.child_ended == "ignored", "SIGCHLD" in signals.blocked
    if ignored or blocked:
        state = "ignored" if ignored else "blocked"
        what = f"SIGCHLD is {state}: torch's loader is not told when a worker dies, and waits for ever"
        fix = "signal.signal(signal.SIGCHLD, signal.SIG_DFL)" if ignored else _unblock("SIGCHLD")
        yield Symptom("HD21", ERROR, what, "SIGCHLD", f"handler: {signals.child_ended}", fix)
    for name in signals.blocked:
        if name != "SIGCHLD":
            what = f"{name} is blocked, and workers inherit that: they cannot be ended by it"
            yield Symptom("HD21", WARNING, what, name, "blocked in this thread", _unblock(name))


def _unblock(name: str) -> str:
    return f"signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.{name}])"


# HD22


def _storage(environment: Environment, needs: Needs) -> Iterator[Symptom]:
    told: set[str] = set()
    for place in environment.places:
        if place.exists is None:
            what = f"storage does not answer: {place.path} was asked for, and nothing came within {place.seconds:g} s"
            evidence = f"{place.kind} at {place.mount}" if place.kind else ""
            yield Symptom("HD22", ERROR, what, place.path, evidence, f"ls {shlex.quote(place.mount or place.path)}")
        elif place.is_remote and place.mount not in told:
            told.add(place.mount)
            what = f"the data lies on {place.kind}, at {place.mount}: each small file costs a round trip"
            evidence = f"{place.path} answered after {place.seconds * 1000:.1f} ms"
            fix = f"rsync -a {shlex.quote(place.mount)}/ /local/  # or more workers, which wait side by side"
            yield Symptom("HD22", NOTE, what, place.path, evidence, fix)


# HD23


def _leftover_files(environment: Environment, needs: Needs) -> Iterator[Symptom]:
    files = environment.leftovers.files
    if not files:
        return
    held, room = sum(file.size for file in files), environment.shared_memory
    severity = WARNING if room is not None and held > room.size / 10 else NOTE
    named = [file.path for file in files[:_MOST_NAMES]]
    more = f" …  # and {len(files) - len(named)} more" if len(files) > len(named) else ""
    what = f"earlier runs left {counted(len(files), 'piece')} of shared memory behind, {size(held)}"
    evidence = "no process that can be seen from here has them open"
    yield Symptom("HD23", severity, what, named[0], evidence, f"rm {' '.join(map(shlex.quote, named))}{more}")


def _orphans(environment: Environment, needs: Needs) -> Iterator[Symptom]:
    orphans = environment.leftovers.orphans
    if not orphans:
        return
    memory = sum(orphan.memory for orphan in orphans)
    severity = WARNING if memory > environment.memory.machine / 10 else NOTE
    what = f"{counted(len(orphans), 'worker')} of an earlier run without a trainer, with {size(memory)} of memory"
    evidence = ", ".join(f"{orphan.name} (pid {orphan.pid})" for orphan in orphans[:_MOST_NAMES])
    fix = f"kill {' '.join(str(orphan.pid) for orphan in orphans)}"
    yield Symptom("HD23", severity, what, f"pid {orphans[0].pid}", evidence, fix)


# HD24


def _visibility(environment: Environment, needs: Needs) -> Iterator[Symptom]:
    seeing = environment.visibility
    if not seeing.py_spy:
        what = "py-spy is not installed: of a stock worker that hangs the Python lines will not be seen"
        yield Symptom("HD24", NOTE, what, "py-spy", "", 'pip install "holdfast[stacks]"')
    if (seeing.ptrace_scope or 0) >= 1 and not seeing.may_trace:
        what = "the kernel lets only its parent look into a process: from another shell, little of a job can be seen"
        evidence = f"ptrace_scope {seeing.ptrace_scope}, without CAP_SYS_PTRACE"
        fix = "docker run --cap-add=SYS_PTRACE …  # or sysctl -w kernel.yama.ptrace_scope=0"
        yield Symptom("HD24", NOTE, what, "kernel.yama.ptrace_scope", evidence, fix)
