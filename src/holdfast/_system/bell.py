"""Wakes a thread that waits on descriptors."""

from __future__ import annotations

from contextlib import suppress
from multiprocessing.connection import Pipe


class Bell:
    """Owns both ends of a pipe. ``fileno`` is what to wait on. Any thread may ring it, as often as it likes."""

    def __init__(self) -> None:
        self._heard, self._cord = Pipe(duplex=False)
        self._rung = False

    def fileno(self) -> int:
        return self._heard.fileno()

    def ring(self) -> None:
        if not self._rung:
            self._rung = True
            try:
                self._cord.send_bytes(b"")
            except OSError:
                pass
            except BaseException:  # an interrupt, and nobody knows whether it was sent
                self._rung = False
                raise

    def silence(self) -> None:
        """Who waited has heard it. By that thread only."""
        with suppress(OSError, EOFError):
            self._heard.recv_bytes()
        self._rung = False

    def close(self) -> None:
        self._heard.close()
        self._cord.close()
