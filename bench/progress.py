"""Where a run is, on standard error: a line that changes on a terminal, a line for each contest elsewhere."""

from __future__ import annotations

import shutil
import sys
import time
from typing import TextIO

from bench.report.words import duration


class Progress:
    """`total` is the work of the run in any unit; what is left takes as long, per unit, as what has been done."""

    def __init__(self, total: float, stream: TextIO | None = None) -> None:
        self._total, self._done = total, 0.0
        self._stream = stream or sys.stderr
        self._live = self._stream.isatty()
        self._began = time.monotonic()
        self._what = ""

    def begin(self, what: str) -> None:
        self._what = what
        if self._live:
            self.tell("")
        else:
            self._say(f"{what} …{self._left()}\n")

    def tell(self, detail: str) -> None:
        """What goes on within; shown on a terminal only."""
        if self._live:
            width = shutil.get_terminal_size().columns - 1
            line = f"[{100 * self._done / self._total:3.0f} %{self._left()}] {self._what}: {detail}"
            self._say(f"\r\x1b[K{line[:width]}")

    def done(self, amount: float) -> None:
        self._done += amount
        self.clear()

    def clear(self) -> None:
        if self._live:
            self._say("\r\x1b[K")

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._began

    def _left(self) -> str:
        if not self._done:
            return ""
        return f", about {duration(self.seconds / self._done * (self._total - self._done))} left"

    def _say(self, text: str) -> None:
        print(text, end="", file=self._stream, flush=True)
