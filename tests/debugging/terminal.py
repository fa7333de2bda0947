"""A program at a terminal of its own, and the keys that are pressed there."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
import time
from pathlib import Path

CTRL_C, CTRL_D = "\x03", "\x04"
PATIENCE = 60.0  # seconds
# The terminal is to be the controlling one: only then is Ctrl-C a signal.
ENTER = "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execv(sys.argv[1], sys.argv[1:])"


class Terminal:
    """Owns the program and its terminal."""

    def __init__(self, program: str, folder: Path) -> None:
        (folder / "program.py").write_text(program)
        self._screen, keys = pty.openpty()
        command = [sys.executable, "-c", ENTER, sys.executable, "program.py"]
        environ = {**os.environ, "TERM": "dumb"}
        self.process = subprocess.Popen(
            command, stdin=keys, stdout=keys, stderr=keys, cwd=folder, start_new_session=True, env=environ
        )
        os.close(keys)
        self.shown, self._read_to = "", 0

    def press(self, keys: str) -> None:
        os.write(self._screen, keys.encode())

    def sees(self, text: str, patience: float = PATIENCE) -> bool:
        """Whether this is shown, behind what was seen before; False when the time is over or the program ends."""
        deadline = time.monotonic() + patience
        while text not in self.shown[self._read_to :]:
            ready, _, _ = select.select([self._screen], [], [], max(0.0, deadline - time.monotonic()))
            if not ready or not self._read():
                return False
        self._read_to = self.shown.index(text, self._read_to) + len(text)
        return True

    def press_until(self, keys: str, text: str) -> None:
        """Again and again, as people do with Ctrl-C: one that comes just before ``input`` reads is lost to Python."""
        for _ in range(20):
            self.press(keys)
            if self.sees(text, 1.0):
                return
        raise AssertionError(f"{text!r} did not come of {keys!r}: {self.shown}")

    def ends(self) -> int:
        while self._read():
            pass
        return self.process.wait(PATIENCE)

    def _read(self) -> bool:
        try:
            data = os.read(self._screen, 1 << 16)
        except OSError:  # nobody holds the other end any more
            return False
        self.shown += data.decode(errors="replace")
        return bool(data)

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._screen)
