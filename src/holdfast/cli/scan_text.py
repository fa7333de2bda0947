"""The report of a scan, for a person."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from holdfast.fault import shortened

from .amounts import duration

if TYPE_CHECKING:
    from rich.console import Console

EXAMPLES = 5
GROUPS = 10  # of a kind
WIDEST = 90  # characters of a path
TITLES = {
    "corrupt": "corrupt: reading them raises",
    "deadly": "deadly: they end their worker, or do not end",
    "program": "wrong in the program, not in the sample: never listed, as a loader raises these whatever its policy",
}


def print_report(told: dict[str, Any], console: Console) -> None:
    for line, style in _lines(told):
        console.print(line, style=style)


Line = tuple[str, str]


def _lines(told: dict[str, Any]) -> Iterator[Line]:
    yield _head(told), "bold"
    for kind, title in TITLES.items():
        if told[kind]:
            groups = [(group["reason"], group) for group in told["groups"] if group["kind"] == kind]
            yield from _kind(told[kind], title, groups)
    if told["odd"]:
        groups = [(f"{one['what']} ({one['count']:,} of {one['of']:,})", one) for one in told["oddities"]]
        yield from _kind(told["odd"], "odd: unlike nearly all others", groups)
    yield from _slow(told)
    yield from _foot(told)


def _head(told: dict[str, Any]) -> str:
    read, of = told["read"], "" if told["samples"] is None else f" of {told['samples']:,}"
    before = f", {told['read before']:,} of them before" if told["read before"] else ""
    rate = read / told["seconds"] if told["seconds"] else 0.0
    speed = f"{duration(told['seconds'])}, {rate:,.0f} a second" if rate >= 10 else duration(told["seconds"])
    wrong = any(told[kind] for kind in (*TITLES, "odd", "slow"))
    well = "" if wrong else "; nothing wrong so far" if told["stopped"] else "; nothing wrong"
    return f"{told['target']}: {read:,}{of} samples read{before} in {speed}{well}"


def _kind(count: int, title: str, groups: list[tuple[str, dict[str, Any]]]) -> Iterator[Line]:
    yield "", ""
    yield f"{count:,} {title}", "bold red"
    groups.sort(key=lambda group: -group[1]["count"])
    for text, group in groups[:GROUPS]:
        same = f"  × {group['count']:,}" if group["count"] > 1 and "what" not in group else ""
        yield f"  {text}{same}", ""
        for one in group["examples"][:EXAMPLES]:
            own = one.get("reason", text)
            yield f"    {_name(one)}" + (f"  {own}" if own != text else ""), "dim"
        if group["count"] > EXAMPLES:
            yield f"    … and {group['count'] - EXAMPLES:,} more", "dim"
    if len(groups) > GROUPS:
        yield f"  … and {len(groups) - GROUPS:,} other reasons", ""


def _slow(told: dict[str, Any]) -> Iterator[Line]:
    times = told["times"]
    if told["slow"]:
        yield "", ""
        limit = f"slow: longer than {duration(times['slow above'])}"
        yield f"{told['slow']:,} {limit}; the median is {duration(times['median'])}", "bold yellow"
        for one in times["slow"][:EXAMPLES]:
            yield f"    {_name(one)}  {_time(one)}", "dim"
        if told["slow"] > EXAMPLES:
            yield f"    … and {told['slow'] - EXAMPLES:,} more", "dim"


def _foot(told: dict[str, Any]) -> Iterator[Line]:
    times, file = told["times"], told["quarantine"]
    yield "", ""
    if times["slowest"]:
        slowest = times["slowest"][0]
        most = f"the slowest {duration(slowest['seconds'])} ({_name(slowest)})"
        yield f"times  median {duration(times['median'])}, 99 % within {duration(times['p99'])}, {most}", ""
    for note in told["notes"]:
        yield f"note   {note}", ""
    if listed := file["before"] + file["added"]:
        old = f", {file['before']:,} of them from before" if file["before"] else ""
        yield f"file   {file['file']}: {listed:,} line{'s' if listed > 1 else ''}{old}", ""
        if told["samples"] is not None:
            yield f'use    DataLoader(..., on_error=holdfast.Quarantine("{file["file"]}"))', ""
    if told["stopped"]:
        why = {"budget": "the budget is spent", "interrupted": "interrupted"}[told["stopped"]]
        on = "go on with the same command" if told["samples"] is not None else "a stream is read from its beginning"
        yield f"next   {why}: {on}", "bold"


def _time(one: dict[str, Any]) -> str:
    if one["seconds"] < 0.1:
        return duration(one["seconds"])
    return f"{duration(one['seconds'])}, of which {duration(min(one['seconds'], one['processor']))} computing"


def _name(one: dict[str, Any]) -> str:
    name = f"item {one['item']} of worker {one['worker']}" if "item" in one else f"sample {one['index']}"
    return f"{name}  {shortened(one['where'], WIDEST)}" if one["where"] else name
