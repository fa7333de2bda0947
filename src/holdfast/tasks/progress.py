"""A bar for long work. It is drawn by whoever waits for the results: there is no thread for it."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from multiprocessing import TimeoutError as NotInTime
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


class Shown(Iterator[Any]):
    """The results of a stream, its errors too, with a bar that goes when it is over or dropped."""

    def __init__(self, stream: Stream, total: int | None, name: str) -> None:
        self._stream, self._ends = stream, ExitStack()
        self._bar = self._ends.enter_context(bar(total, name))
        self._done = self._failed = 0
        self._last = 0.0

    def __next__(self) -> Any:
        return self.next()

    def next(self, timeout: float | None = None) -> Any:
        try:
            value = self._stream.next(timeout)
        except StopIteration:
            self._show(0.0)
            self._ends.close()
            raise
        except NotInTime:
            raise
        except Exception:
            self._done, self._failed = self._done + 1, self._failed + 1
            self._show(EVERY)
            raise
        self._done += 1
        self._show(EVERY)
        return value

    def __del__(self) -> None:
        self._ends.close()

    def _show(self, every: float) -> None:
        now = time.monotonic()
        if self._bar is not None and now >= self._last + every:
            self._last = now
            self._bar.show(self._done, self._failed)


def length_of(iterable: Any) -> int | None:
    try:
        return len(iterable)
    except TypeError:
        return None
