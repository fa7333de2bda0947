"""What it costs to keep all batches of an epoch: descriptors and maps of the trainer.

Each go is a program of its own, with a limit of descriptors: ``python -m bench.measures.keeping TURN``.
"""

from __future__ import annotations

import dataclasses
import json
import os
import resource
import subprocess
import sys
from pathlib import Path

from bench.contest import Cannot, Turn
from bench.faults.classify import told_by
from bench.measures.opening import opening
from bench.seat import own_stdout

DESCRIPTORS = 1024  # what a login shell and many containers give to a program
TIME_LIMIT = 100.0


class Keeping:
    def __init__(self, turn: Turn) -> None:
        self._turn, self.note = turn, ""

    def go(self) -> float:
        order = json.dumps(dataclasses.asdict(self._turn))
        try:
            done = subprocess.run(
                [sys.executable, "-m", "bench.measures.keeping", order],
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, timeout=TIME_LIMIT,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            raise Cannot(f"no end within {TIME_LIMIT:g} s") from None
        if not done.stdout:
            raise Cannot(f"the program ended with status {done.returncode}")
        told = json.loads(done.stdout)
        if "cannot" in told:
            raise Cannot(told["cannot"])
        self.note = f"{told['maps']} maps"
        return float(told["descriptors"])

    def close(self) -> None:
        pass


def start(turn: Turn) -> Keeping:
    return Keeping(turn)


def _main() -> None:
    answers = own_stdout()
    resource.setrlimit(resource.RLIMIT_NOFILE, (DESCRIPTORS, DESCRIPTORS))
    kept: list[object] = []
    try:
        answer: dict[str, object] = dict(_keep(Turn(**json.loads(sys.argv[1])), kept))
    except Cannot as reason:
        answer = {"cannot": str(reason)}
    except Exception as error:
        text = told_by(error).partition(". ")[0]
        answer = {"cannot": f"fails after {len(kept)} batches with {DESCRIPTORS} descriptors: {text}"}
    print(json.dumps(answer), file=answers, flush=True)


def _keep(turn: Turn, kept: list[object]) -> dict[str, int]:
    """Counted from the first batch on: workers and their memory are there by then, for any number of batches."""
    open_, work = opening(turn)
    loader = open_(work)
    iterator = iter(loader)
    kept.append(next(iterator))
    descriptors, maps = _descriptors(), _maps()
    for batch in iterator:
        kept.append(batch)
    grown = {"descriptors": max(0, _descriptors() - descriptors), "maps": max(0, _maps() - maps)}
    numbers = [work.numbers(batch) for batch in kept]
    wrong = [number for (number,), batch in zip(numbers, kept) if not bool((batch[0] == number).all())]
    if wrong or sorted(number for (number,) in numbers) != list(range(work.length)):
        raise AssertionError(f"{len(kept)} of {work.length} batches kept, {len(wrong)} changed since they came")
    del iterator
    loader.close()
    return grown


def _descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def _maps() -> int:
    return len(Path("/proc/self/maps").read_text().splitlines())


if __name__ == "__main__":
    # As a module of its own name: classes and functions of `__main__` would not be found in spawned workers.
    from bench.measures.keeping import _main as main

    main()
