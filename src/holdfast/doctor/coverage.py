"""What comes out of a stream: is it all of it, and each item once?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from itertools import combinations

from holdfast.audit.finding import Severity

from .contents import Leaves, differing
from .first_look import FirstLook
from .step import Came
from .symptom import Symptom

_FEWEST = 4  # items that two workers have in common before it is no accident
_DISTINCT = 0.9  # of the items are different ones: else equal ones prove nothing
Item = tuple[tuple[str, int], ...]


def coverage(look: FirstLook, steps: Mapping[int, Came], promised: int | None) -> tuple[list[Symptom], list[str]]:
    """Symptoms, and what could not be told and why."""
    alone = steps.get(0)
    if look.once:
        return [_once()], []
    if alone is None or not alone.batches:
        return [], []
    random = differing(look.first, look.otherwise)
    expected = [item for seen in alone.batches.values() for item in _items(seen.samples, random)]
    if not any(expected):
        return [], ["each item once: every part of an item is random, so none can be recognised"]
    found = _short(promised, len(expected)) if alone.ended else []
    if len(set(expected)) < _DISTINCT * len(expected):
        return found, ["each item once: many items of this stream are equal"]
    for workers, came in steps.items():
        if workers > 1 and (twice := _twice(came, random)):
            return [*found, twice], []
        if workers and alone.ended and came.ended and (lost := _lost(expected, came, random)):
            return [*found, lost], []
    return found, []


def _items(samples: list[Leaves], random: set[str]) -> list[Item]:
    return [tuple((path, leaf[0]) for path, leaf in one.items() if path not in random) for one in samples]


def _twice(came: Came, random: set[str]) -> Symptom | None:
    seats: dict[int | None, set[Item]] = {}
    for seen in came.batches.values():
        seats.setdefault(seen.seat, set()).update(_items(seen.samples, random))
    for (one, items), (other, others) in combinations(sorted(seats.items(), key=str), 2):
        if len(items & others) >= _FEWEST:
            what = f"workers {one} and {other} give the same items: nobody divides the stream among them"
            evidence = f"{len(items & others)} of the {len(items)} items that came from worker {one} of {came.workers}"
            fix = 'DataLoader(..., shard="auto")  # holdfast; or take a share in __iter__ by get_worker_info()'
            return Symptom("HD25", Severity.ERROR, what, "dataset.__iter__", evidence, fix)
    return None


def _lost(expected: list[Item], came: Came, random: set[str]) -> Symptom | None:
    got = Counter(item for seen in came.batches.values() for item in _items(seen.samples, random))
    missing, more = Counter(expected) - got, got - Counter(expected)
    if not missing and not more:
        return None
    what = f"with {came.workers} workers {missing.total()} items of the stream do not come, {more.total()} others do"
    evidence = f"{len(expected)} items come without workers, {got.total()} with {came.workers}"
    return Symptom("HD25", Severity.ERROR, what, "dataset.__iter__", evidence, 'DataLoader(..., shard="auto")')


def _once() -> Symptom:
    what = "the stream can be read only once: a second epoch goes on where the first ended"
    fix = "def __iter__(self): return iter(...)  # a new iterator each time"
    return Symptom("HD26", Severity.ERROR, what, "dataset.__iter__", "iter(dataset) is the same object each time", fix)


def _short(promised: int | None, came: int) -> list[Symptom]:
    if promised is None or promised == came:
        return []
    return [short("dataset", promised, came, "items")]


def short(where: str, promised: int, came: int, of: str) -> Symptom:
    what = f"an epoch has {came} {of}, where len({where}) says {promised}"
    fix = "let __len__ count what __iter__ gives"
    return Symptom("HD26", Severity.WARNING, what, f"{where}.__len__", "counted to the end, without workers", fix)
