"""What was found, for people and for programs: one line for each failure, torch beside holdfast."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from .catalogue import absent, title
from .judge import Finding, Findings, Mark
from .row import Row, Side

STYLES = {
    Mark.KEPT: "green",
    Mark.BROKEN: "bold red",
    Mark.SHOWN: "yellow",
    Mark.NOT_SHOWN: "dim",
    Mark.NOT_HERE: "dim",
}
_LONGEST = 200  # characters of what torch said


class Report:
    """Prints rows as they are judged, and says in the end how many promises were kept. Owns the terminal meanwhile."""

    def __init__(self, console: Console, sides: list[Side], rows: int) -> None:
        self._console, self._sides = console, sides
        self._rows, self._printed = rows, 0
        self._status = console.status(self._progress())

    def __enter__(self) -> Report:
        if self._console.is_terminal:
            self._status.start()
            self._print(Text(), *(Text(name, "bold") for name in ("failure", *(side.value for side in self._sides))))
        return self

    def __exit__(self, *error: object) -> None:
        self._status.stop()

    def print_row(self, row: Row, findings: Findings) -> None:
        self._printed += 1
        self._status.update(self._progress())
        if self._console.is_terminal:
            cells = (Text(words(findings[side]), STYLES[findings[side].mark]) for side in self._sides)
            self._print(Text(row.id, "bold"), Text(title(row)), *cells)
        else:
            said = " | ".join(f"{side.value}: {words(findings[side])}" for side in self._sides)
            self._console.print(f"{row.id} {title(row)} | {said}", soft_wrap=True, highlight=False, markup=False)

    def print_sum(self, judged: list[tuple[Row, Findings]]) -> None:
        count = dict.fromkeys(Mark, 0)
        for _, findings in judged:
            for finding in findings.values():
                count[finding.mark] += 1
        said = [f"holdfast: {count[Mark.KEPT]} promises kept, {count[Mark.BROKEN]} broken"]
        if Side.TORCH in self._sides:
            said.append(f"torch: {count[Mark.SHOWN]} failures shown, {count[Mark.NOT_SHOWN]} not")
        if count[Mark.NOT_HERE]:
            said.append(f"{count[Mark.NOT_HERE]} not reproducible here")
        self._console.print("; ".join(said), style="bold", highlight=False, soft_wrap=True)

    def _progress(self) -> str:
        return f"{self._printed} of {self._rows}"

    def _print(self, *cells: Text) -> None:
        table = Table.grid(padding=(0, 2, 0, 0), expand=True)
        table.add_column(width=4)
        table.add_column(ratio=2)
        for _ in self._sides:
            table.add_column(ratio=3, overflow="fold")
        table.add_row(*cells)
        self._console.print(table)


def words(finding: Finding) -> str:
    text, took = finding.text, f" ({finding.seconds:.1f} s)" if finding.seconds else ""
    if finding.mark in (Mark.KEPT, Mark.BROKEN):
        return f"{finding.mark.value} {text}{took}"  # a broken promise in full
    return f"{finding.mark.value}: {text if len(text) <= _LONGEST else text[:_LONGEST] + ' …'}{took}"


def as_data(judged: list[tuple[Row, Findings]]) -> list[dict[str, Any]]:
    """For JSON: failures with what was found, then those that have no program."""
    found = [
        {"id": row.id, "name": row.name, "title": title(row)}
        | {side.value: _data(finding) for side, finding in findings.items()}
        for row, findings in judged
    ]
    return found + [{"id": id, "reason": reason} for id, reason in absent().items()]


def _data(finding: Finding) -> dict[str, Any]:
    return {"mark": finding.mark.name.lower(), "finding": finding.text, "seconds": round(finding.seconds, 2)}
