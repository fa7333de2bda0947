"""A bar for long work. It is drawn by whoever waits for the results: there is no thread for it."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from .results import AsyncResult

if TYPE_CHECKING:
    from .streaming import Stream

EVERY = 0.1  # seconds


class Bar:
    """Done, rate, time left, failures."""

    def __init__(self, progress: Any, task: Any) -> None:
        self._progress, self._task = progress, task

    def show(self, done: int, failed: int) -> None:
        self._progress.update(self._task, completed=done, failed=f", {failed} failed" if failed else "")
        self._progress.refresh()


@contextmanager
def bar(total: int | None, name: str) -> Iterator[Bar | None]:
    """None where nobody would see it."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), _rate(), TimeRemainingColumn())
    failures = TextColumn("{task.fields[failed]}", style="red")
    with Progress(*columns, failures, console=Console(stderr=True), auto_refresh=False) as progress:
        yield Bar(progress, progress.add_task(name, total=total, failed=""))


def _rate() -> Any:
    from rich.progress import ProgressColumn, Task
    from rich.text import Text

    class Rate(ProgressColumn):
        def render(self, task: Task) -> Text:
            speed = task.finished_speed or task.speed
            return Text(f"{speed:,.0f}/s" if speed and speed >= 10 else f"{speed:.2g}/s" if speed else "")

    return Rate()


def show(result: AsyncResult, name: str) -> None:
    """Wait for it, with a bar."""
    with bar(result.total, name) as shown_bar:
        if shown_bar is None:
            return
        while not result.ready():
            result.wait(EVERY)
            shown_bar.show(result.total - result.missing, result.failures_so_far)


def shown(stream: Stream, total: int | None, name: str) -> Iterator[Any]:
    """The same results, with a bar."""
    done, last = 0, 0.0
    with bar(total, name) as shown_bar:
        for value in stream:
            done += 1
            if shown_bar is not None and time.monotonic() > last + EVERY:
                last = time.monotonic()
                shown_bar.show(done, 0)
            yield value
        if shown_bar is not None:
            shown_bar.show(done, 0)


def length_of(iterable: Any) -> int | None:
    try:
        return len(iterable)
    except TypeError:
        return None
