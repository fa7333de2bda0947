"""How long a new program takes to its first batch: the interpreter, the imports, the workers.

``python -m bench.measures.fresh TURN`` is that program, with a `Turn` as JSON. Nothing of torch or a peer is imported
above: the process that starts it has no need of them, and a spawned worker, which runs this file again, gets only what
it asks for.
"""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
import time

from bench.contest import Cannot, Turn
from bench.peers import WARMED

LIMIT = 100.0  # seconds


class Programs:
    """Each go is a program of its own, from before its start to its first batch. Its end is outside of the time.

    One program runs ahead, so that all files of the library are in the memory of the system; a quick run counts it.
    """

    note = ""

    def __init__(self, turn: Turn) -> None:
        self._turn = turn
        first = self._program()
        self._ahead = [first] if turn.quick else []

    def go(self) -> float:
        return self._ahead.pop() if self._ahead else self._program()

    def _program(self) -> float:
        command = [sys.executable, "-m", __name__, json.dumps(dataclasses.asdict(self._turn))]
        began = time.monotonic()  # the same clock in all processes of a machine
        ended = subprocess.run(command, stdout=subprocess.PIPE, timeout=LIMIT)
        said = json.loads(ended.stdout.splitlines()[-1]) if ended.stdout else {}
        if "cannot" in said:
            raise Cannot(said["cannot"])
        if "came" not in said:
            raise RuntimeError(f"the program ended without a batch, exit code {ended.returncode}")
        return said["came"] - began

    def close(self) -> None:
        pass


def start(turn: Turn) -> Programs:
    return Programs(turn)


def main() -> None:
    turn = Turn(**json.loads(sys.argv[1]))
    if turn.contender == WARMED.name:
        import holdfast

        holdfast.warm(wait=False)
    try:
        came = _first_batch(turn)
    except Cannot as reason:
        print(json.dumps({"cannot": str(reason)}), flush=True)
    else:
        print(json.dumps({"came": came}), flush=True)


def _first_batch(turn: Turn) -> float:
    from bench.measures.opening import opening

    open_, work = opening(turn)
    loader = open_(work)
    iterator = iter(loader)
    batch = next(iterator)
    came = time.monotonic()
    if len(work.numbers(batch)) != work.batch_size:
        raise AssertionError("the first batch has another size")
    del batch, iterator
    loader.close()
    return came


if __name__ == "__main__":
    # As a module of its own name: classes and functions of `__main__` would not be found in spawned workers.
    from bench.measures.fresh import main as program

    program()
