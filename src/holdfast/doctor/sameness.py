"""Samples that differ although the seeds are the same: which, and what in the data set does it.

Random numbers depend on the epoch and the batch and on nothing else, so what still differs has a source of its own:
the clock, a generator object, something that is remembered from sample to sample, a file that several read at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from holdfast.audit import generators
from holdfast.audit.finding import Finding, Severity
from holdfast.audit.handles import handles, shared_by_fork

from .complaints import joined
from .contents import Difference, Leaves, compared, differing
from .figures import counted
from .first_look import FirstLook
from .plan import Plan
from .step import Came
from .symptom import Symptom
from .traces import Change

_SHOWN = 4  # attributes that are named
_SEEDED = "torch.rand, numpy.random.rand or random.random  # seeded for every batch; no clock, uuid or os.urandom"


@dataclass(frozen=True)
class Mismatch:
    """Samples that came otherwise with so many workers, of so many that were compared."""

    workers: int
    samples: Sequence[Difference]
    of: int

    def __str__(self) -> str:
        crew = counted(self.workers, "worker")
        return f"{len(self.samples)} of {self.of} samples differ with {crew}, such as {self.samples[0]}"


def mismatch(plan: Plan, expected: Came, came: Came, spoilt: set[str]) -> Mismatch:
    """``spoilt``: samples that failed in one of the two, so that another one is in their place."""
    found, count = [], 0
    for number in expected.batches.keys() & came.batches.keys() if came.whole else ():
        names = list(map(repr, plan.batches[number]))
        one, other = expected.batches[number].samples, came.batches[number].samples
        if len(one) != len(other) or not spoilt.isdisjoint(names):
            continue
        count += len(one)
        pairs = (compared(*three) for three in zip(names, one, other))
        found += [difference for difference in pairs if difference is not None]
    return Mismatch(came.workers, found, count)


@dataclass(frozen=True)
class Suspects:
    """What can be asked about samples that differ: ``fresh`` looks at them in a new process, ``otherwise`` loads the
    plan again in a changed way, and says what differs then."""

    plan: Plan
    look: FirstLook
    fresh: Callable[[], FirstLook | None]
    otherwise: Callable[[Plan], Mismatch | None]


def judged(mismatches: Mapping[int, Mismatch], suspects: Suspects) -> list[Symptom]:
    """Each cause that was found, with the evidence for it. Also of what has changed without harm to any sample."""
    look = suspects.look
    worst = next((one for one in reversed(list(mismatches.values())) if one.samples), None)
    unsteady = _first_difference(look.first, look.again)
    if worst is None and unsteady is None:
        return [*_harmless(look.changed)]
    fresh = suspects.fresh()
    restless = differing(look.first, fresh.first) if fresh is not None else set()
    evidence = joined(f"twice in one process: {unsteady}" if unsteady else "", str(worst) if worst else "")
    found = _by_chance(look, fresh) if restless and fresh is not None else []
    found += _drawn(look, evidence)
    values = [change for change in look.changed if not change.grew]
    if not found and (values or unsteady):
        found += _remembered(look.changed, evidence)
    else:
        found += _harmless(look.changed)
    if worst is not None and {one.leaf for one in worst.samples} <= restless:
        return found
    if worst is not None and not any(one.severity is Severity.ERROR and one.check != "HD10" for one in found):
        found += _elsewhere(worst, suspects)
    return found


def _first_difference(one: Mapping[str, Leaves], other: Mapping[str, Leaves]) -> Difference | None:
    found = (compared(sample, one[sample], other[sample]) for sample in one if sample in other)
    return next((difference for difference in found if difference is not None), None)


def _by_chance(look: FirstLook, fresh: FirstLook) -> list[Symptom]:
    first = _first_difference(look.first, fresh.first)
    if first is None:
        return []
    what = f"{first.leaf} is another one each time the same sample is loaded, with the same seeds"
    evidence = f"in two processes: {first}; so it comes from the clock, uuid, os.urandom, a pid or an address"
    return [Symptom("HD10", Severity.WARNING, what, first.leaf, evidence, _SEEDED)]


def _drawn(look: FirstLook, evidence: str) -> list[Symptom]:
    shipped = {one.path: one.start for one in look.drawn}
    return [
        Symptom("HD08", Severity.ERROR, f"{one.path} ({one.kind}): {one.why}", one.path, evidence, one.fix)
        for one in generators.repeated(look.drawn, shipped)
    ]


def _remembered(changed: Sequence[Change], evidence: str) -> list[Symptom]:
    names = ", ".join(change.path for change in changed[:_SHOWN])
    if not names:
        what = "a sample depends on which samples its process has loaded before; what remembers them was not found"
        return [Symptom("HD09", Severity.ERROR, what, "dataset", evidence, "make a sample from its index alone")]
    what = f"samples depend on {names}, which changes as they are loaded: each worker has its own"
    told = "; ".join(map(str, changed[:_SHOWN]))
    fix = "make a sample from its index alone; torch.initial_seed() is another one in every epoch"
    return [Symptom("HD09", Severity.ERROR, what, changed[0].path, joined(told, evidence), fix)]


def _harmless(changed: Sequence[Change]) -> Iterator[Symptom]:
    """Not to the samples: but what is counted in workers stays there, and a cache is there once for each."""
    for change in changed[:_SHOWN]:
        if change.grew:
            what = f"{change.path} grows as samples are loaded: each worker fills its own copy"
            fix = "holdfast.share(...) before the workers start, for what all of them read"
            yield Symptom("HD09", Severity.NOTE, what, change.path, str(change), fix)
        else:
            what = f"{change.path} is changed as samples are loaded: each worker changes its own, the trainer sees none"
            name = change.path.rpartition(".")[2]
            fix = f"{name} = holdfast.Counter()  # adds up over all workers; or return it with the sample"
            yield Symptom("HD09", Severity.WARNING, what, change.path, str(change), fix)


def _elsewhere(worst: Mismatch, suspects: Suspects) -> list[Symptom]:
    """Only with workers: what they share, how they were started, or what they were told."""
    plan, told = suspects.plan, str(worst)
    shared = shared_by_fork(handles(plan.dataset)) if plan.may_fork else []
    if shared:
        return _shared(shared, told)
    if plan.has_init and _agree(suspects.otherwise(replace(plan, runs_init=False))):
        what = "worker_init_fn seeds torch, so samples depend on which worker loads them"
        fix = "leave it out: holdfast seeds torch, numpy and random for every batch"
        return [Symptom("HD08", Severity.NOTE, what, "loader.worker_init_fn", f"{told}; without it none does", fix)]
    if plan.start != "fork" and _agree(suspects.otherwise(replace(plan, start="fork"))):
        what = "samples depend on the interpreter that loads them"
        evidence = f"{told}; none does where workers are forks: it comes from hash() of a text, id(), or a global"
        return [Symptom("HD10", Severity.WARNING, what, worst.samples[0].leaf, evidence, "hashlib instead of hash()")]
    what = "samples differ as soon as workers load them; what does it was not found"
    ruled_out = "not the clock, nor anything that changes in the data set or its modules, nor an open file"
    return [Symptom("HD09", Severity.ERROR, what, worst.samples[0].leaf, f"{told}; {ruled_out}", "")]


def blamed_on_handles(plan: Plan, failed: Sequence[Symptom], symptoms: Sequence[Symptom]) -> list[Symptom]:
    """``symptoms``, with what ``failed`` in workers alone as evidence against files that they share; empty when there
    is no such file."""
    shared = shared_by_fork(handles(plan.dataset)) if plan.may_fork else []
    if not shared or not failed:
        return []
    seen = f"{failed[0].what} ({failed[0].evidence})"
    known = [one for one in symptoms if one.check == "HD03"]
    blamed = [replace(one, evidence=joined(one.evidence, seen)) for one in known] or _shared(shared, seen)
    return [*blamed, *(one for one in symptoms if one not in known)]


def _shared(shared: Sequence[Finding], evidence: str) -> list[Symptom]:
    return [
        Symptom("HD03", Severity.ERROR, f"{one.path} ({one.kind}): {one.why}", one.path, evidence, one.fix)
        for one in shared
    ]


def _agree(mismatch: Mismatch | None) -> bool:
    return mismatch is not None and mismatch.of > 0 and not mismatch.samples
