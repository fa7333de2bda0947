"""All processes of a case, also those that have left its session or lost their parents; and no others."""

from __future__ import annotations

import contextlib
import os
import time

import psutil

MARK = "HOLDFAST_BENCH_CASE"  # a variable that processes inherit


class Belongings:
    """`leader` has the session and the variable. Descendants are remembered each time one looks, as some leave the
    session and overwrite their environment."""

    def __init__(self, leader: int, mark: str) -> None:
        self._leader, self._mark = leader, mark
        self._known: set[psutil.Process] = set()

    def look(self) -> None:
        with contextlib.suppress(psutil.NoSuchProcess):
            self._known.update(psutil.Process(self._leader).children(recursive=True))

    def alive(self) -> list[psutil.Process]:
        """All but the leader."""
        self.look()
        self._known.update(one for one in psutil.process_iter() if self._is_ours(one))
        return [one for one in self._known if one.pid != self._leader and _lives(one)]

    def end(self) -> None:
        until = time.monotonic() + 10
        while (alive := self.alive()) and time.monotonic() < until:
            for one in alive:
                with contextlib.suppress(psutil.NoSuchProcess):
                    one.kill()  # looks first whether it is still the same process
            time.sleep(0.05)

    def _is_ours(self, one: psutil.Process) -> bool:
        with contextlib.suppress(psutil.Error, OSError):
            return os.getsid(one.pid) == self._leader or one.environ().get(MARK) == self._mark
        return False


def _lives(one: psutil.Process) -> bool:
    with contextlib.suppress(psutil.NoSuchProcess):
        return one.is_running() and one.status() != psutil.STATUS_ZOMBIE
    return False
