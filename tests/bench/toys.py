"""Contenders that need no peer: one that works, and some that do not."""

from __future__ import annotations

import os
import signal
import time

from bench.contest import Cannot, Turn


class Counting:
    """Its figures are 1, 2, 3 …"""

    note = "counts"

    def __init__(self) -> None:
        self.turns = 0

    def go(self) -> float:
        self.turns += 1
        return float(self.turns)

    def close(self) -> None:
        pass


class Crawling(Counting):
    """Far behind whoever counts."""

    def go(self) -> float:
        return super().go() / 10


class Dying(Counting):
    def go(self) -> float:
        if self.turns:
            if os.fork() == 0:  # a child that holds the pipe open must not be taken for the parent that hangs
                time.sleep(60)
                os._exit(0)
            os.kill(os.getpid(), signal.SIGKILL)
        return super().go()


class Hanging(Counting):
    def go(self) -> float:
        time.sleep(60)
        return 0.0


class Raising(Counting):
    def go(self) -> float:
        raise ValueError("no <figure>\nand more")


class Reluctant(Counting):
    def go(self) -> float:
        raise Cannot("changed its mind")


class Named(Counting):
    """Its figures are the number of its process."""

    def go(self) -> float:
        return float(os.getpid())


class Untidy(Counting):
    def close(self) -> None:
        raise OSError("does not close")


def start(turn: Turn) -> Counting:
    if turn.contender == "unable":
        raise Cannot("reads only files")
    ways = {
        "dies": Dying, "hangs": Hanging, "raises": Raising, "reluctant": Reluctant, "untidy": Untidy,
        "crawls": Crawling, "stock": Crawling, "named": Named,
    }  # fmt: skip
    print("libraries print things")
    return ways.get(turn.contender, Counting)()
