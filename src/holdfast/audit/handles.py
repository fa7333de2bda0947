"""Open files, sockets, databases, threads, locks and iterators in a data set."""

from __future__ import annotations

from collections.abc import Iterable

from .anatomy import anatomy
from .files import is_file, is_stream, open_end, recipe
from .finding import Finding, Severity, target
from .graph import walk
from .kinds import HELD, KINDS, LOCK, is_held

_ONE_POSITION = (
    "forked workers share its one position: each that reads moves it for the others, and records come out wrong "
    "without an error"
)
_ONE_STREAM = "forked workers share one connection: each takes what was meant for another, or waits for ever"


def handles(root: object, name: str = "dataset") -> list[Finding]:
    """What of ``root`` is open or running, nearest first; what belongs to a handle is not listed beside it."""
    return handles_among(walk(root, name))


def handles_among(walked: Iterable[tuple[str, object]]) -> list[Finding]:
    """The same, for who walks once and looks for several things."""
    found: list[Finding] = []
    known: list[str] = []
    for path, value in walked:
        if path.startswith(tuple(known)):
            continue
        if _is_handle(value):
            known += (f"{path}.", f"{path}[")
            finding = _judged(path, value)
            if finding is not None:
                found.append(finding)
    return found


def shared_by_fork(findings: list[Finding]) -> list[Finding]:
    """Those that give wrong data, or hang, in workers that are forks of this process.

    No other workers can have them: a handle cannot be pickled, and ``CannotShip`` names it.
    """
    return [finding for finding in findings if finding.severity is not Severity.NOTE]


def _is_handle(value: object) -> bool:
    return is_stream(value) or not KINDS.keys().isdisjoint(anatomy(value).bases)


def _judged(path: str, value: object) -> Finding | None:
    try:
        return _stream(path, value) if is_stream(value) else _of_a_kind(path, value)
    except Exception:  # half closed, or half made: nothing that can be said about it
        return None


def _stream(path: str, value: object) -> Finding | None:
    end = open_end(value)
    if end is None:
        return None
    why = _ONE_POSITION if is_file(end) else _ONE_STREAM
    return Finding(path, anatomy(value).name, why, f"{target(path)} = {recipe(value, end)}", Severity.ERROR)


def _of_a_kind(path: str, value: object) -> Finding | None:
    base, kind = next((base, KINDS[name]) for name, base in anatomy(value).bases.items() if name in KINDS)
    if not kind.is_live(base, value):
        return None
    why, severity = kind.why, kind.severity
    if kind is LOCK and is_held(value):
        why, severity = HELD, Severity.ERROR
    return Finding(path, anatomy(value).name, why, kind.fix.format(target=target(path)), severity)
