"""What is in a data set, and in the functions of its loader, that will hurt in several processes: before any starts.

No code of the user's is run, except what pickling runs, and that in a fork (``pickling``). The sampler is not looked
at: it stays in the trainer.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace

from holdfast._system.starts import HAS_FORK
from holdfast._system.threads_at_fork import company, held_locks
from holdfast.audit.anatomy import anatomy
from holdfast.audit.finding import Finding, Severity
from holdfast.audit.finding import target as assigned
from holdfast.audit.generators import suspects_among
from holdfast.audit.graph import walk
from holdfast.audit.handles import handles_among
from holdfast.audit.kinds import HELD
from holdfast.audit.lists import LARGE, estimate
from holdfast.audit.paths import texts_among
from holdfast.errors.base import size
from holdfast.targets.target import Target

from .needs import Needs, needs_of
from .pickling import Pickled, Refusal, pickled
from .places import symptoms_of_paths
from .symptom import Symptom

ERROR, WARNING, NOTE = Severity

_MUCH = 512 << 20  # bytes, of all workers together
_MANY = 1024  # elements
_LONG = 2.0  # seconds
_OF_HANDLES = ("HD02", "HD03")
_FUNCTIONS = ("collate_fn", "worker_init_fn")

_SHARE = "dataset = holdfast.share(dataset)  # one copy for all, and nothing to pickle"

Roots = dict[str, object]
Walked = list[tuple[str, object]]


def audit(target: Target) -> list[Symptom]:
    """Never raises, and changes nothing."""
    needs, roots = needs_of(target), _roots(target)
    walked = [member for name, root in roots.items() for member in walk(root, name)]
    checks: list[tuple[str, Callable[[], Iterator[Symptom]]]] = [
        ("HD01", lambda: _threads(needs)),
        ("HD03", lambda: _handles(walked)),
        ("HD04", lambda: _accelerators(walked, needs)),
        ("HD05", lambda: _pickling(roots, needs)),
        ("HD07", lambda: _lists(walked, needs)),
        ("HD08", lambda: _generators(walked)),
        ("HD11", lambda: iter(symptoms_of_paths(list(texts_among(walked)), target.folder))),
    ]
    return _without_echoes([symptom for code, check in checks for symptom in _made(code, check)], needs)


def _roots(target: Target) -> Roots:
    given = {name: getattr(target.loader, name, None) for name in _FUNCTIONS}
    return {"dataset": target.dataset} | {name: function for name, function in given.items() if function is not None}


def _made(code: str, check: Callable[[], Iterator[Symptom]]) -> list[Symptom]:
    try:
        return list(check())
    except Exception as error:  # of ours, and no reason to withhold what the others find
        return [Symptom(code, NOTE, f"this check failed itself: {type(error).__name__}: {error}", "holdfast")]


def _without_echoes(symptoms: list[Symptom], needs: Needs) -> list[Symptom]:
    """A handle cannot be pickled either, which is said once: as what it does in a fork, where there will be one, else
    as what cannot be sent. What to write instead is known best for the handle."""
    forks = needs.forks or needs.falls_back or needs.workers is None
    handle_at = {one.where: one for one in symptoms if one.check in _OF_HANDLES}
    merged: dict[str, Symptom] = {}
    for refused in symptoms:
        handle = _around(refused.where, handle_at) if refused.check == "HD05" else None
        if handle is not None:
            said_as_handle = forks and handle.severity is not NOTE
            merged[handle.where] = handle if said_as_handle else replace(refused, where=handle.where, fix=handle.fix)
    kept = [one for one in symptoms if one.where not in merged and not _around(one.where, merged)]
    return [*merged.values(), *kept]


def _around(path: str, owners: dict[str, Symptom]) -> Symptom | None:
    """The one at this path, or the one that it lies in."""
    inside = (one for owner, one in owners.items() if path == owner or path.startswith((f"{owner}.", f"{owner}[")))
    return next(inside, None)


# HD01, HD02


def _threads(needs: Needs) -> Iterator[Symptom]:
    """Only where this process is forked. Pools of native libraries are not minded, see ``_engine/forking``."""
    if not needs.forks or needs.workers == 0:
        return
    bars = {thread.name for thread in threading.enumerate() if type(thread).__module__ == "rich.live"}
    others = company()
    others = replace(others, python=tuple(name for name in others.python if name not in bars))  # the doctor has one
    if not others.python:
        return
    what = "workers are forks of a process with other threads: a lock that one of them holds then is never released"
    fix = "holdfast.DataLoader(dataset, …)  # does not fork this process; or start threads after the first batch"
    yield Symptom("HD01", WARNING, what, ", ".join(others.python), f"threads: {others}", fix)
    for lock in held_locks():
        what = f"{lock} is held now: each forked worker that asks for it waits for ever"
        yield Symptom("HD02", ERROR, what, lock, f"threads: {others}", fix)


# HD03, and HD02 for a lock of the data set


def _handles(walked: Walked) -> Iterator[Symptom]:
    for finding in handles_among(walked):
        yield _symptom("HD02" if finding.why == HELD else "HD03", finding)


def _symptom(check: str, finding: Finding) -> Symptom:
    what = f"{finding.path}: {finding.why}"
    return Symptom(check, finding.severity, what, finding.path, finding.kind, finding.fix)


# HD04


def _accelerators(walked: Walked, needs: Needs) -> Iterator[Symptom]:
    severity, harm = WARNING, "each worker starts up that device for it"
    if needs.forks:
        severity, harm = ERROR, "a forked worker cannot use it"
    for path, value in walked:
        if ("torch", "Tensor") in anatomy(value).bases and (device := _device(value)) not in ("cpu", "meta"):
            fix = f"{assigned(path)} = tensor.cpu()  # and to the device in the training loop"
            yield Symptom("HD04", severity, f"{path} lies on {device}: {harm}", path, anatomy(value).name, fix)


def _device(tensor: object) -> str:
    import torch

    return str(torch.Tensor.device.__get__(tensor).type)


# HD05, HD06


def _pickling(roots: Roots, needs: Needs) -> Iterator[Symptom]:
    if not HAS_FORK:  # nowhere to run code of the user's without consequences
        return
    found = pickled(roots)
    yield from (_refused(refusal, needs) for refusal in found.refusals)
    if not found.ended:
        what = "pickling the data set ends the process, or does not come to an end"
        yield Symptom("HD06", NOTE if needs.forks else ERROR, what, "dataset", "nothing came within 2 s, or no end")
    elif found.weight is not None:
        yield from _weighed(found, needs)


def _refused(refusal: Refusal, needs: Needs) -> Symptom:
    path, kind = refusal.path, refusal.kind
    if refusal.ships:
        what = f"{path} ({kind}) cannot be pickled by Python's own pickle: spawn and forkserver fail"
        severity = ERROR if needs.stock and not needs.forks else NOTE
        fix = "holdfast.DataLoader(dataset, …)  # sends it as it is; else a function at the top of a module"
        return Symptom("HD05", severity, what, path, refusal.reason, fix)
    what = f"{path} ({kind}) cannot be sent to another process"
    fix = f"{assigned(path)} = holdfast.per_worker(make)  # a function that makes it, in each worker"
    return Symptom("HD05", _harm_of_not_shipping(needs), what, path, refusal.reason, fix)


def _harm_of_not_shipping(needs: Needs) -> Severity:
    if needs.start in ("fork", "thread"):
        return NOTE
    return WARNING if needs.falls_back or needs.workers is None else ERROR


def _weighed(found: Pickled, needs: Needs) -> Iterator[Symptom]:
    assert found.weight is not None
    one, workers = found.weight, needs.workers or 1
    times = workers if needs.stock else 1  # ours sends it once, for all
    if one.size * times < _MUCH and one.seconds * times < _LONG:
        return
    about, by = "" if one.exact else "about ", f" × {times} workers" if times > 1 else ""
    what = f"the data set is {about}{size(one.size)}{by} as a pickle, which spawn and forkserver make of it"
    evidence = f"{about}{one.seconds * times:.1f} s of CPU to make"
    if found.bulk:
        evidence = f"{size(found.bulk[1])} of it is {found.bulk[0]}; {evidence}"
    severity = WARNING if needs.stock and not needs.forks and workers > 1 else NOTE
    yield Symptom("HD06", severity, what, found.bulk[0] if found.bulk else "dataset", evidence, _SHARE)


# HD07


def _lists(walked: Walked, needs: Needs) -> Iterator[Symptom]:
    workers = needs.workers or 1
    for path, value in walked:
        if type(value) not in (list, tuple, dict) or len(value) < _MANY:  # type: ignore[arg-type]
            continue
        count, bytes_each = estimate(value)
        each = count * bytes_each
        if each >= LARGE:
            what = f"{path} is {count:,} small objects: each worker comes to have {size(each)} of its own of them"
            evidence = f"about {bytes_each} bytes each" + (f", × {workers} workers" if workers > 1 else "")
            severity = WARNING if each * workers >= _MUCH else NOTE
            yield Symptom("HD07", severity, what, path, evidence, _SHARE)


# HD08


def _generators(walked: Walked) -> Iterator[Symptom]:
    yield from (_symptom("HD08", finding) for finding in suspects_among(walked))
