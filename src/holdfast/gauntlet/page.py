"""The pages of the failures in docs/failures, made from the field guide and the programs."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from pathlib import Path

from holdfast.pages.failures import FAILURES

from .catalogue import absent, rows
from .row import Row, Side


def pages() -> dict[str, str]:
    """By file name."""
    present: dict[str, list[Row]] = {}
    for row in rows():
        present.setdefault(row.id, []).append(row)
    made = {
        f"{id}.md": "\n\n".join([FAILURES[id].body.rstrip(), *_programs(of_it)]) + "\n" for id, of_it in present.items()
    }
    return {"README.md": _index(present), **made}


def write(folder: Path) -> list[str]:
    """Brings the folder up to date; the names of those that changed."""
    folder.mkdir(parents=True, exist_ok=True)
    made = pages()
    changed = [
        name for name, text in made.items() if not (folder / name).exists() or (folder / name).read_text() != text
    ]
    for name in changed:
        (folder / name).write_text(made[name])
    for old in folder.glob("*.md"):
        if old.name not in made:
            old.unlink()
            changed.append(old.name)
    return changed


def _index(present: dict[str, list[Row]]) -> str:
    lines = [f"| [{id}]({id}.md) | {FAILURES[id].title} |" for id in present]
    others = [f"| {id} | {FAILURES[id].title} | {reason} |" for id, reason in absent().items()]
    return "\n".join(
        [
            "# The failures",
            "",
            "What users of stock torch meet, each with a program that shows it. `holdfast gauntlet` runs them all,",
            "torch beside holdfast. Made by `python -m holdfast.gauntlet --write-pages docs/failures`.",
            "",
            "| | failure |",
            "|---|---|",
            *lines,
            "",
            "Without a program:",
            "",
            "| | failure | why |",
            "|---|---|---|",
            *others,
            "",
        ]
    )


def _programs(of_it: list[Row]) -> Iterator[str]:
    for row in of_it:
        yield f"## A program that shows it{f': {row.variant}' if row.variant else ''}"
        yield f"{row.symptom}.\n\n{row.story}"
        for name, text in row.files.items():
            yield f"`{name}`, a module beside it:\n\n```python\n{text.strip()}\n```"
        yield f"```python\n{row.source(Side.TORCH).strip()}\n```"
        yield f"With holdfast, what is different:\n\n```diff\n{_difference(row)}\n```"
        yield f"Run it both ways: `holdfast gauntlet --only {row.name if row.variant else row.id}`."


def _difference(row: Row) -> str:
    torch, holdfast = (row.source(side).splitlines() for side in Side)
    lines = list(difflib.unified_diff(torch, holdfast, n=0, lineterm=""))[2:]
    return "\n".join(line for line in lines if not line.startswith("@@"))
