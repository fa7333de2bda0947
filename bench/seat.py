"""A contender's process: ``python -m bench.seat`` takes orders as lines of JSON and answers each with one.

Every contender has a process of its own, so that none forks another's threads, fills another's heap, or is still
running in the background of another's time; and so that one which crashes or hangs ends nobody else.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from typing import Any, Protocol, TextIO

from bench.contest import Cannot, Turn
from bench.names import named


class Running(Protocol):
    """A contender that is ready: everything has been started and warmed up."""

    note: str  # for the table, may be empty

    def go(self) -> float:
        """One turn. What it returns is the figure: units per second, or seconds, bytes … as the contest says."""

    def close(self) -> None: ...


def main() -> None:
    answers = own_stdout()
    running: Running | None = None
    for line in sys.stdin:
        order: dict[str, Any] = json.loads(line)
        try:
            if order["do"] == "start":
                running = _start(order)
                answer = {"ready": True, "note": running.note}
            elif order["do"] == "go":
                assert running is not None
                answer = {"figure": running.go(), "note": running.note}
            else:
                assert running is not None
                running.close()
                running, answer = None, {"closed": True}
        except Cannot as reason:
            answer = {"cannot": str(reason)}
        except Exception as error:
            traceback.print_exc()
            answer = {"failed": f"{type(error).__name__}: {error}".splitlines()[0][:200]}
        print(json.dumps(answer), file=answers, flush=True)


def _start(order: dict[str, Any]) -> Running:
    turn = Turn(order["contender"], order["settings"], order["quick"], order["directory"])
    running: Running = named(order["start"])(turn)
    return running


def own_stdout() -> TextIO:
    """Answers go where standard output was; what libraries print goes to standard error."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    return answers


if __name__ == "__main__":
    # As a module of its own name: classes and functions of `__main__` would not be found in spawned workers.
    from bench.seat import main as seat

    seat()
