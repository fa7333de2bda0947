"""What a scan found, as plain values: for JSON, and for whoever renders it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy

from holdfast._worker.describe import describe

from .reader import Failed
from .scan import Scan
from .stream import item_at
from .survey import CORRUPT, DEADLY, PROGRAM
from .times import Slow
from .votes import Odd

ODD, SLOW = "odd", "slow"
KINDS = (CORRUPT, DEADLY, ODD, SLOW)


def finished(found: Scan) -> dict[str, Any]:
    """The report. Writes those to the quarantine that are known only now, if they were asked for."""
    odd, slow = list(found.survey.votes.odd()), found.survey.times.slow()
    if ODD in found.options.quarantine:
        for one in odd:
            for position in one.positions or ():
                _add(found, position, ODD, in_words(one))
    if SLOW in found.options.quarantine:
        for late in slow:
            _add(found, late.position, SLOW, f"took {late.seconds:.3g} s")
    return _report(found, odd, slow)


def in_words(odd: Odd) -> str:
    subject = f"sample{odd.path}"
    if odd.aspect in ("kind", "shape"):
        return f"{subject} is {odd.found}; the others are {odd.usual}"
    return f"{subject} {'is' if odd.aspect in ('empty', 'constant') else 'has'} {odd.found}"


def _report(found: Scan, odd: list[Odd], slow: list[Slow]) -> dict[str, Any]:
    survey, options = found.survey, found.options
    return {
        "target": found.target.text,
        "data set": type(found.target.dataset).__qualname__,
        "samples": survey.total,
        "read": survey.count,
        "read before": found.before,
        "stopped": found.stopped,
        "seconds": round(survey.seconds, 3),
        "workers": found.workers,
        CORRUPT: survey.failed(CORRUPT),
        DEADLY: survey.failed(DEADLY),
        PROGRAM: survey.failed(PROGRAM),
        ODD: _distinct(odd),
        SLOW: len(slow),
        "groups": [_group(found, group) for group in survey.groups.values()],
        "oddities": [_oddity(found, one) for one in odd],
        "usual": {f"sample{path}": kind for path, kind in survey.votes.usual().items()},
        "times": _times(found, slow),
        "notes": survey.notes,
        "quarantine": {
            "file": str(options.output),
            "kinds": sorted(options.quarantine),
            "before": found.roll.before,
            "added": found.roll.added,
        },
    }


def _group(found: Scan, group: Any) -> dict[str, Any]:
    examples = [_named(found, one["position"], one["where"]) | {"reason": one["reason"]} for one in group.examples]
    return {"kind": group.kind, "reason": group.reason, "count": group.count, "examples": examples}


def _oddity(found: Scan, odd: Odd) -> dict[str, Any]:
    told = {"path": odd.path, "aspect": odd.aspect, "found": odd.found, "usual": odd.usual}
    examples = [_named(found, position) for position in odd.first]
    return {"what": in_words(odd), **told, "count": odd.count, "of": odd.of, "examples": examples}


def _times(found: Scan, slow: list[Slow]) -> dict[str, Any]:
    times = found.survey.times
    return {
        "median": _short(times.quantile(0.5)),
        "p99": _short(times.quantile(0.99)),
        "slow above": _short(times.limit()),
        "histogram": [{"from": start, "to": stop, "count": count} for start, stop, count in times.histogram()],
        "slowest": [_timed(found, one) for one in times.slowest()],
        "slow": [_timed(found, one) for one in slow[:1000]],
    }


def _timed(found: Scan, slow: Slow) -> dict[str, Any]:
    return _named(found, slow.position) | {"seconds": _short(slow.seconds), "processor": _short(slow.processor)}


def _short(seconds: float) -> float:
    """Three digits: more of them are noise."""
    return float(f"{seconds:.3g}")


def _named(found: Scan, position: int, where: str | None = None) -> dict[str, Any]:
    """By its index in the data set, or by its place in a worker's stream."""
    if found.plan is None:
        worker, place = item_at(position)
        return {"worker": worker, "item": place, "where": where or ""}
    where = describe(found.target.dataset, found.plan.keys[position]) if where is None else where
    return {"index": found.plan.key(position), "where": where}


def _add(found: Scan, position: int, kind: str, text: str) -> None:
    named = _named(found, position)
    told = {"type": kind, "text": text, "attributes": {}}
    failed = Failed(position, kind, named["where"], text, text, told, time.time())
    found.roll.add(named.get("index"), failed)


def _distinct(odd: list[Odd]) -> int:
    """Samples: one may be odd in several ways. Where there are too many to be listed, they are not told apart."""
    listed = [numpy.asarray(one.positions) for one in odd if one.positions is not None]
    others = sum(one.count for one in odd if one.positions is None)
    return others + (len(numpy.unique(numpy.concatenate(listed))) if listed else 0)


def findings(report: dict[str, Any]) -> Iterator[str]:
    """The kinds of which there are some."""
    return (kind for kind in (*KINDS, PROGRAM) if report[kind])
