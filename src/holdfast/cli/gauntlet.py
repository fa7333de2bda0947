"""``holdfast gauntlet``: every failure as a program, with stock torch and with holdfast side by side."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .style import FOUND, AsJson, console, print_json

if TYPE_CHECKING:
    from holdfast.gauntlet.judge import Findings
    from holdfast.gauntlet.row import Row, Side


def gauntlet(
    only: Annotated[list[str] | None, typer.Option(help="F28, or f28_killed_worker; may be given again.")] = None,
    no_torch: Annotated[bool, typer.Option("--no-torch", help="holdfast's column only.")] = False,
    jobs: Annotated[int, typer.Option(min=1, help="Failures that are run at the same time.")] = 2,
    as_json: AsJson = False,
    list_them: Annotated[bool, typer.Option("--list", help="The failures, and those that cannot be shown.")] = False,
    write_pages: Annotated[Path | None, typer.Option(help="Write the pages of the failures into this folder.")] = None,
) -> None:
    """Run every failure of the field guide that this machine can show, with stock torch and with holdfast.

    Exit codes: 0 all promises kept, 1 some broken, 2 wrong usage.
    """
    from holdfast.gauntlet.catalogue import chosen  # late: there are many of them, and the other commands need none

    try:
        rows = chosen(only or ())
    except LookupError as unknown:
        raise typer.BadParameter(str(unknown.args[0]), param_hint="--only") from None
    if list_them:
        _list(rows, whole=not only)
    elif write_pages is not None:
        _write(write_pages)
    elif _some_broken(_run(rows, no_torch, jobs, as_json)):
        raise typer.Exit(FOUND)


def _run(rows: list[Row], no_torch: bool, jobs: int, as_json: bool) -> list[tuple[Row, Findings]]:
    from holdfast.gauntlet.judge import judged
    from holdfast.gauntlet.row import Side
    from holdfast.gauntlet.table import Report, as_data

    sides: list[Side] = [Side.HOLDFAST] if no_torch else [Side.TORCH, Side.HOLDFAST]
    found = []
    with Report(console(stderr=as_json), sides, len(rows)) as report:
        for row, findings in judged(rows, sides, jobs):
            report.print_row(row, findings)
            found.append((row, findings))
    found.sort(key=lambda pair: pair[0].name)
    report.print_sum(found)
    if as_json:
        print_json(as_data(found))
    return found


def _some_broken(found: list[tuple[Row, Findings]]) -> bool:
    from holdfast.gauntlet.judge import Mark

    return any(finding.mark is Mark.BROKEN for _, findings in found for finding in findings.values())


def _list(rows: list[Row], whole: bool) -> None:
    from holdfast.gauntlet.catalogue import absent, title
    from holdfast.pages.failures import FAILURES

    for row in rows:
        note = f"  [torch: not reproducible here: needs {row.not_on_torch}]" if row.not_on_torch else ""
        print(f"{row.id}  {row.name:<36} {title(row)}{note}")
    if whole:
        print()
        for id, reason in absent().items():
            print(f"{id}  {reason:<36} {FAILURES[id].title}")


def _write(folder: Path) -> None:
    from holdfast.gauntlet.page import write

    changed = write(folder)
    print("\n".join(str(folder / name) for name in changed) or "all pages are up to date")
