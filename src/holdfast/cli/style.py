"""How all commands speak: where text goes, what an exit code means, how a mistake is told, what moves while one waits.

Facts come as values from elsewhere; a command renders them as text (rich, where there is a terminal) or as JSON. JSON
is alone on standard output, and progress always on standard error.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from io import TextIOWrapper
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress

    from holdfast.targets.mistake import Mistake

FOUND = 1  # the command did its work, and found something wrong
USAGE = 2  # it could not: what it was given is wrong
AsJson = Annotated[bool, typer.Option("--json", help="The same as JSON, on standard output.")]


def print_json(data: Any) -> None:
    has_all = "utf" in (getattr(sys.stdout, "encoding", None) or "utf-8").lower()
    print(json.dumps(data, indent=2, ensure_ascii=not has_all))


def print_any_text() -> None:
    """Where the encoding of an output lacks a character, ``?`` stands for it: no command ends by its own words."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")


def console(*, stderr: bool = False) -> Console:
    """Standard output. Where it is no terminal: no colours, and lines are not broken."""
    from rich.console import Console  # late: it takes longer to import than everything else here

    made = Console(stderr=stderr, highlight=False, markup=False, emoji=False)
    if not made.is_terminal:
        made.soft_wrap = True
    return made


@contextmanager
def progress(*, still: bool = False) -> Iterator[Progress]:
    """A bar on standard error, with the time that is left; nothing where that is no terminal.

    ``still``: it moves only when it is told to, and has no thread: for those who fork, or look for threads.
    """
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    shown = console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    hidden = not shown.is_terminal
    with Progress(*columns, console=shown, transient=True, disable=hidden, auto_refresh=not still) as made:
        yield made


def print_mistake(mistake: Mistake) -> None:
    print(f"holdfast: {mistake}", file=sys.stderr)
    if mistake.hint:
        print(f"  {mistake.hint}", file=sys.stderr)
