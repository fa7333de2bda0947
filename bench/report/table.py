"""The terminal's tables: a block for each contest, plain text that fits 120 columns."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator

from bench.contest import FaultResult, Outcome, Result
from bench.report import words

WIDTH = 120
_ROW = "  {:1} {:28} {:>9} {:>6}  {:20} {:16} "
_BEFORE_NOTE = len(_ROW.format("", "", "", "", "", ""))
_FATE = "    {:28} {:9} {:>8}  "


def block(outcome: Outcome) -> str:
    """The title, who did what, and physical limits apart from the peers."""
    contest = outcome.contest
    count = words.rounds(outcome)
    held = f"best of {count}" if count > 1 else "one round" if count else "nothing measured"
    title = f"{contest.name}: {contest.title} ({words.direction(contest)}; {held})"
    lines = [*textwrap.wrap(title, WIDTH, subsequent_indent="  ", break_on_hyphens=False), _header()]
    limits = [one for one in outcome.results if one.contender in contest.limits]
    for result in outcome.results:
        if result not in limits:
            lines += _row(outcome, result)
    if limits:
        lines.append("    what the machine allows")
        for result in limits:
            lines += _row(outcome, result)
    return "\n".join(lines)


def fates(title: str, results: Iterable[FaultResult]) -> Iterator[str]:
    """Lines as the results come, with a line above for each fault."""
    fault = None
    for result in results:
        if fault is None:
            yield f"faults met by {title}"
        if result.fault != fault:
            fault = result.fault
            yield f"  {fault}"
        start = _FATE.format(result.contender, result.outcome, words.seconds(result.seconds))
        yield "\n".join(_hung(start, result.text))


def _header() -> str:
    return _ROW.format("", "", "figure", "", "holdfast is", "target").rstrip()


def _row(outcome: Outcome, result: Result) -> list[str]:
    contest, name = outcome.contest, result.contender
    value = result.best(contest.better)
    mark = "★" if name == words.winner(outcome) else ""
    if value is None:
        return _hung(_ROW.format("", name, "–", "", "", words.bound(outcome, name)), words.why_none(result))
    compared = ""
    if name != contest.champion and outcome.ratio(name) is not None:
        compared = f"{words.ratio(outcome.ratio(name))} {words.of_what(contest)}"
    beside = outcome.counterpart(name)
    note = "; ".join(filter(None, [f"beside {beside}" if beside != contest.champion else "", result.note]))
    if outcome.ahead(name) is False and result in outcome.peers:
        note = "; ".join(filter(None, ["holdfast is behind", note]))
    return _hung(
        _ROW.format(mark, name, words.figure(value), words.spread(result), compared, words.bound(outcome, name)), note
    )


def _hung(start: str, text: str) -> list[str]:
    """`text` after `start`, and its further lines below itself."""
    first, *others = textwrap.wrap(" ".join(text.split()), max(20, WIDTH - len(start))) or [""]
    return [(start + first).rstrip(), *(" " * len(start) + line for line in others)]
