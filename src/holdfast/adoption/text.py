"""The facts of a run as lines for people.

Not in ``cli``, where all other text is made: this is printed by the program itself when it ends, and to import the
commands for it would take longer than all the rest.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

ROWS = 20  # of the ledger
REMARKS = 5
_NUMBERS = ("epochs", "batches", "samples/s", "waited", "of the run", "replaced", "epoch", "batch")
Facts = dict[str, Any]


def lines(found: Facts, options: Mapping[str, Any]) -> list[str]:
    """``options`` say where else there is something to read."""
    rows = [(process, loader) for process in found["processes"] for loader in process["loaders"]]
    used = [(process, loader) for process, loader in rows if loader["epochs"]]
    if not used:
        idle = f"made {_loaders(len(rows))} and used none of them" if rows else "made no DataLoader"
        return [f"holdfast: the program {idle}"]
    ranks = len(found["processes"]) > 1
    shown = _table([_row(process, loader, ranks) for process, loader in used])
    more = [*shown, *_ledger([loader for _, loader in used]), *_files(options)]
    return [f"holdfast: {_head(found['seconds'], used)}", *(f"  {line}".rstrip() for line in more)]


def _ledger(loaders: list[Facts]) -> list[str]:
    """The first faults of all of them, behind an empty line."""
    faults = [fault["row"] for loader in loaders for fault in loader["faults"]][:ROWS]
    untold = sum(one["count"] for loader in loaders for one in loader["counts"]) - len(faults)
    return ["", *_table(faults), *([f"… and {untold} more"] if untold else [])] if faults else []


def _head(seconds: float, used: list[tuple[Facts, Facts]]) -> str:
    share = max(sum(loader["waited"] for loader in process["loaders"]) / process["seconds"] for process, _ in used)
    return f"{_loaders(len(used))}, and {share:.0%} of {_duration(seconds)} spent waiting for data"


def _loaders(count: int) -> str:
    return f"{count} loader" if count == 1 else f"{count} loaders"


def _table(rows: list[dict[str, str]]) -> list[str]:
    """A line for the names of the columns, and one for each row; numbers are on the right."""
    columns = []
    for name in rows[0] if rows else ():
        cells = [name, *(row[name] for row in rows)]
        width = max(map(len, cells))
        columns.append([cell.rjust(width) if name in _NUMBERS else cell.ljust(width) for cell in cells])
    return ["  ".join(row).rstrip() for row in zip(*columns)]


def _row(process: Facts, loader: Facts, ranks: bool) -> dict[str, str]:
    rate = loader["samples"] / loader["seconds"] if loader["seconds"] else 0.0
    kinds: dict[str, int] = {}
    for one in loader["counts"]:
        kinds[one["kind"]] = kinds.get(one["kind"], 0) + one["count"]
    return {
        "loader": f"{_who(process)} {loader['place']}" if ranks else loader["place"],
        "data set": loader["dataset"],
        "epochs": str(loader["epochs"]),
        "batches": f"{loader['batches']:,}",
        "samples/s": f"{rate:,.0f}" if rate >= 10 else f"{rate:.2g}",
        "waited": _duration(loader["waited"]),
        "of the run": f"{loader['waited'] / process['seconds']:.0%}",
        "replaced": str(loader["restarts"] or "-"),
        "faults": ", ".join(f"{count} {kind}" for kind, count in kinds.items()) or "-",
    }


def _who(process: Facts) -> str:
    return f"rank {process['rank']}" if process["rank"] is not None else f"pid {process['pid']}"


def _duration(seconds: float) -> str:
    if seconds >= 60:
        minutes, rest = divmod(round(seconds), 60)
        hours, minutes = divmod(minutes, 60)
        return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"
    return f"{seconds:.1f} s" if seconds >= 1 else f"{seconds * 1000:.0f} ms"


def _files(options: Mapping[str, Any]) -> list[str]:
    """Where there is more, if there is."""
    named = {"fault log": options.get("fault_log"), "bundles": options.get("bundle")}
    return [f"{name:<9}  {path}" for name, path in named.items() if path and os.path.exists(path)]


def lines_of_lint(found: list[dict[str, Any]]) -> list[str]:
    """The first few, each with its way out."""
    shown = []
    for one in found[:REMARKS]:
        shown += [f"  lint  {one['place']} {one['code']} {one['message']}", f"        fix: {one['fix']}"]
    more = len(found) - REMARKS
    return [*shown, f"        … and {more} more: holdfast lint {found[0]['path']}"] if more > 0 else shown
