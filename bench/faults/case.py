"""A trainer that meets a fault: ``python -m bench.faults.case CONTENDER WORK DIRECTORY``, lines of JSON come out."""

from __future__ import annotations

import json
import os
import sys
import time
import traceback
from collections import Counter
from typing import Any, TextIO

from bench.contest import Cannot, Turn
from bench.faults.classify import names, told_by
from bench.measures.opening import opening
from bench.seat import own_stdout
from bench.works.faulty import AT


def main() -> None:
    output = own_stdout()
    contender, work, directory = sys.argv[1:]
    turn = Turn(contender, {"work": f"faulty:{work}"}, quick=False, directory=directory)
    try:
        _train(turn, output)
    except Cannot as reason:
        _tell(output, "cannot", text=str(reason))
    except Exception as error:
        try:
            _tell_error(output, error, work)
        except Exception as another:  # torch's handler of signals raises wherever the program is at that moment
            _tell_error(output, another, work)


def _tell_error(output: TextIO, error: Exception, work: str) -> None:
    whole = "".join(traceback.format_exception(error))
    print(whole, file=sys.stderr)
    text = told_by(error)
    if work == "raises":
        text = f"{'names' if names(whole, AT) else 'does not name'} the sample: {text}"
    _tell(output, "error", text=text)


def _train(turn: Turn, output: TextIO) -> None:
    open_, work = opening(turn)
    for index in work.dataset.at:
        work.dataset.mine.arm(index)
    loader = open_(work)
    _tell(output, "loading", pid=os.getpid())
    numbers: Counter[int] = Counter()
    for batch in loader:
        work.touch(batch)
        there = work.numbers(batch)
        numbers.update(there)
        _tell(output, "there" if AT in there else "batch")
    missing = sum(index not in numbers for index in range(work.length))
    _tell(output, "ended", missing=missing, double=numbers.total() - len(numbers))


def _tell(output: TextIO, event: str, **facts: Any) -> None:
    print(json.dumps({"event": event, "at": time.monotonic(), **facts}), file=output, flush=True)


if __name__ == "__main__":
    # As a module of its own name: classes and functions of `__main__` would not be found in spawned workers.
    from bench.faults.case import main as case

    case()
