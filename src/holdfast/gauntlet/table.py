"""What was found, for people and for programs: one line for each failure, torch beside holdfast."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.spinner import Spinner
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
_LONGEST = 200  # characters of a finding in a table; a broken promise is told in full


class Report:
    """Prints rows as they are judged, and says in the end how many promises were kept. Owns the terminal meanwhile."""

    def __init__(self, console: Console, sides: list[Side]) -> None:
        self._console, self._sides = console, sides

    def print_head(self) -> None:
        if self._console.is_terminal:
            self._print(
                [Text("", "bold"), *(Text(name, "bold") for name in ("failure", *(s.value for s in self._sides)))]
            )

    def print_row(self, row: Row, findings: Findings) -> None:
        if not self._console.is_terminal:
            said = " | ".join(f"{side.value}: {words(findings[side])}" for side in self._sides)
            self._console.print(f"{row.id} {title(row)} | {said}", soft_wrap=True, highlight=False, markup=False)
            return
        cells = [Text(words(findings[side]), STYLES[findings[side].mark]) for side in self._sides]
        self._print([Text(row.id, "bold"), Text(title(row)), *cells])

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

    @contextmanager
    def running(self, rows: int) -> Iterator[None]:
        """A line on a terminal that something is going on."""
        if not self._console.is_terminal:
            yield
            return
        with Live(Spinner("dots", f"{rows} failures"), console=self._console, transient=True):
            yield

    def _print(self, cells: Iterable[Text]) -> None:
        table = Table.grid(padding=(0, 2, 0, 0), expand=True)
        table.add_column(width=4)
        table.add_column(ratio=2)
        for _ in self._sides:
            table.add_column(ratio=3, overflow="fold")
        table.add_row(*cells)
        self._console.print(table)


def words(finding: Finding) -> str:
    text = (
        finding.text if finding.mark is Mark.BROKEN or len(finding.text) <= _LONGEST else finding.text[:_LONGEST] + " …"
    )
    took = f" ({finding.seconds:.1f} s)" if finding.seconds else ""
    return f"{finding.mark.value}{'' if finding.mark in (Mark.KEPT, Mark.BROKEN) else ':'} {text}{took}"


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
