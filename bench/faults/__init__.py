"""What each peer does when something goes wrong: a table, each cell of which is a program of its own."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path

from bench.contest import FaultResult
from bench.peers import PEERS

FAULTS = {
    "killed": "a worker is killed at one sample",
    "hangs": "one sample takes an hour, once. Who has an option for a limit gets 3 s; holdfast `stall_timeout=3` "
    'with `on_error="retry"`: by default it says where it waits, and waits',
    "shm": "/dev/shm has 1 MB, batches have 4.8 MB",
    "raises": "one sample raises an exception",
    "trainer killed": "the trainer is killed; what is left of it after 10 s",
}
OUTCOMES = {
    "finishes": "each sample came once; seconds until the sample with the fault was there",
    "loss": "the epoch ended well, but samples are missing or came twice",
    "error": "an exception in the trainer",
    "ends": "the whole program was ended",
    "hangs": "no batch came any more",
    "clean": "nothing is left",
    "leaves": "processes or files in /dev/shm are left",
    "cannot": "not tried",
}
LIMIT, QUICK_LIMIT = 20.0, 8.0
AT_A_TIME = 2


def run(quick: bool, only: frozenset[str] | None, directory: Path | None = None) -> Iterator[FaultResult]:
    """All cases, two at a time; a quick run has the first fault only. `only`: of these contenders.

    With a `directory`, what became of killed workers is left there for the contests that need to know.
    """
    from bench.faults.watch import watched

    faults = list(FAULTS)[:1] if quick else list(FAULTS)
    limit = QUICK_LIMIT if quick else LIMIT
    cases = [(peer, fault) for fault in faults for peer in PEERS if only is None or peer in only]
    with ThreadPoolExecutor(AT_A_TIME) as threads:
        for result in threads.map(lambda case: watched(*case, limit), cases):
            if directory is not None and result.fault == "killed":
                remember(directory, result)
            yield result


def remember(directory: Path, result: FaultResult) -> None:
    _memory(directory, result.contender).write_text(json.dumps(asdict(result)))


def remembered(directory: Path, contender: str) -> FaultResult | None:
    """What became of this contender when a worker was killed, if that was tried in this run."""
    path = _memory(directory, contender)
    return FaultResult(**json.loads(path.read_text())) if path.exists() else None


def _memory(directory: Path, contender: str) -> Path:
    return directory / f"killed {contender}.json"
