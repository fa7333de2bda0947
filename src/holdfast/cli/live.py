"""How ``holdfast doctor --pid`` looks: the sentence first, then each process with its lines."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

from .style import console, print_json

if TYPE_CHECKING:
    from holdfast.doctor.live import LiveReport, Member, Section

LINES = 3  # of a stack
_MANY = 4  # idle workers from which on they share a line
# What to do so that more is seen, by what is said of what is not.
_WAYS = {
    "py-spy is not installed": "pip install py-spy, for the Python lines of processes that are not ours",
    "permi": "the same with sudo: this user may not look further",  # permission denied, operation not permitted
}
_HEADS = {"stalled": ("stalled", "bold red"), "healthy": ("not a hang", "bold green"), "ended": ("ended", "bold")}


def print_live(report: LiveReport, as_json: bool) -> None:
    if as_json:
        print_json(report.to_dict())
        return
    head, style = _HEADS[report.conclusion.standing.value]
    first, lines = f"{head}: {report.conclusion.text}", list(_lines(report))
    if not sys.stdout.isatty():  # without rich, which would double the time on a machine that has none to spare
        print("\n".join([first, *lines]))
        return
    from rich.text import Text

    out = console()
    out.print(Text.assemble((head, style), first.removeprefix(head)))
    for line in lines:
        out.print(Text(line), soft_wrap=True)


def _lines(report: LiveReport) -> Iterator[str]:
    advice = report.conclusion.advice
    yield from (f"  try  {line}" for line in advice.lines)
    if advice.page:
        yield f"  more holdfast explain {advice.page}"
    if report.is_stalled and not any(one.since for section in report.sections for one in section.members):
        yield f"  note seen for {report.seconds:.1f} s: what is only slow looks the same, so look again"
    for section in report.sections:
        yield ""
        yield from _section(section, is_one_of_many=len(report.sections) > 1)
    if report.unseen:
        yield ""
        yield from (f"  not seen  {reason}" for reason in report.unseen)
        yield from (f"  try       {way}" for sign, way in _WAYS.items() if sign in " ".join(report.unseen).lower())


def _section(section: Section, *, is_one_of_many: bool) -> Iterator[str]:
    if is_one_of_many:
        yield f"{section.name}: {section.conclusion.text}"
    yield from _member(section.trainer)
    idle = [one for one in section.hands if one.doing.value == "idle"]
    for one in section.hands:
        if one not in idle or len(idle) < _MANY:
            yield from _member(one)
    if len(idle) >= _MANY:
        yield _row(f"{len(idle)} workers", "", f"wait for work: pid {', '.join(str(one.pid) for one in idle)}")
    for pid, role in section.servants:
        yield _row(role.value, pid, "")


def _member(one: Member) -> Iterator[str]:
    has_lines = one.doing.value not in ("idle", "ended")
    yield _row(one.label, one.pid, f"{_does(one)}; CPU {one.cpu:.0%}" if one.doing.value != "ended" else one.why)
    if has_lines and one.at:
        yield _row("", "", one.at + (f", for {one.since:.1f} s" if one.since is not None else ""))
    if has_lines:
        yield from (_row("", "", line) for line in one.own[:LINES])


def _row(label: str, pid: int | str, text: str) -> str:
    return f"  {label:<11} {pid:>7}  {text}".rstrip()


def _does(one: Member) -> str:
    if one.doing.value == "computes" and one.role.value == "trainer":
        return "computes"
    return {"idle": "waits for work", "awaits": f"waits for {one.awaits}"}.get(one.doing.value, one.why)
