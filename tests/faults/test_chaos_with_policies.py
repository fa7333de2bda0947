"""Storms on a data set that is rotten itself: every sample is delivered once, or the ledger says why not."""

from __future__ import annotations

import os
import random
import signal
import time
from collections import Counter

import pytest
import torch
from trainers import run, script

from holdfast import DataLoader, Retry, Skip, WorkerStalled
from holdfast.testing import DiesAt, ExitsAt, Faulty, HangsAt, RaisesAt, SegfaultsAt

BAD = {17: "exception", 103: "exception", 150: "death", 211: "death", 333: "death", 402: "stall"}


def rotten(length: int) -> Faulty:
    return Faulty(
        torch.arange(length),
        RaisesAt(17, ValueError("rotten")),
        RaisesAt(103, OSError(5, "Input/output error", "/data/103.jpg")),
        DiesAt(150),
        SegfaultsAt(211),
        ExitsAt(333, 0),
        HangsAt(402),
        RaisesAt(56, TimeoutError("once"), once=True),
    )


class Storm:
    """Kills or stops a worker now and then; who is stopped stays so until the watch finds it."""

    def __init__(self, seed: int, every: int) -> None:
        self.chance, self.every, self.next = random.Random(seed), every, every
        self.struck: Counter[str] = Counter()

    def pass_by(self, number: int, workers: list) -> None:
        if number < self.next:
            return
        self.next = number + self.chance.randint(self.every // 2, self.every * 2)
        kind = self.chance.choice([signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGSTOP])
        self.chance.choice(workers).send_signal(kind)
        self.struck[kind.name] += 1


def weather_it(length: int, epochs: int, every: int, seed: int, **options: object) -> Storm:
    dataset, storm = rotten(length), Storm(seed, every)
    policy = Retry(2, on=(OSError, WorkerStalled), backoff=0.01) | Skip()
    loader = DataLoader(dataset, batch_size=8, num_workers=3, stall_timeout=1.0, on_error=policy, **options)
    for epoch in range(epochs):
        iterator, came, batches, storm.next = iter(loader), Counter(), 0, every
        for number, batch in enumerate(iterator):
            assert len(batch) == 8, "every batch is full"
            came.update(batch.tolist())
            batches += 1
            storm.pass_by(number, iterator._workers)
        gone = [fault for fault in loader.faults.filter(epoch=epoch) if fault.action in ("skipped", "known bad")]
        gone = {fault.index: fault for fault in gone if fault.index not in came or fault.index in BAD}
        missing = set(range(length)) - set(came)
        assert batches == length // 8
        assert missing == set(gone), f"missing {missing - set(gone)}, in the ledger {set(gone) - missing}"
        assert set(BAD) <= missing
        twice = {index for index, count in came.items() if count > 1}
        instead = {fault.instead for fault in loader.faults.filter(epoch=epoch)}
        assert twice <= instead, "only a refill may come a second time"
        if epoch == 0:
            assert {index: gone[index].kind for index in BAD} == BAD
        del iterator
    return storm


def test_every_sample_comes_once_or_is_in_the_ledger():
    storm = weather_it(length=800, epochs=2, every=40, seed=int(os.environ.get("HOLDFAST_SEED", "3")))
    assert storm.struck.total() >= 3


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("persistent", [False, True])
def test_thousands_of_batches_in_a_storm(persistent):
    seed = int(os.environ.get("HOLDFAST_SEED", time.time_ns() % 1_000_000))
    print(f"HOLDFAST_SEED={seed}")
    storm = weather_it(length=8000, epochs=4, every=60, seed=seed, persistent_workers=persistent)
    print(storm.struck)
    assert storm.struck["SIGSTOP"]
    assert storm.struck["SIGKILL"]


HUNGRY = """
import sys
with open(sys.argv[1] + "/cgroup.procs", "w") as group:
    group.write("0")
from holdfast import DataLoader

class Hungry:
    def __len__(self):
        return 120

    def __getitem__(self, index):
        if index % 40 == 7:
            eaten = bytearray(2 << 30)           # more than the container has
            eaten[::4096] = b"x" * len(eaten[::4096])
        return index

loader = DataLoader(Hungry(), batch_size=4, num_workers=2, on_error="skip")
came = [index for batch in loader for index in batch.tolist()]
skipped = sorted({fault.index for fault in loader.faults if fault.action == "skipped"})  # one may be tried for another
causes = {str(fault.error).split("why    ")[1].splitlines()[0] for fault in loader.faults if fault.action == "skipped"}
print(len(came), skipped, sorted(set(range(120)) - set(came)))
print(causes)
"""


def test_in_a_container_without_memory_the_samples_that_need_too_much_are_skipped(tmp_path, small_group):
    """The kernel's OOM killer really strikes: a memory cgroup with a limit."""
    ran = run(script(tmp_path, HUNGRY), small_group)
    assert ran.status == 0, ran.err
    assert ran.lines[0] == "120 [7, 47, 87] [7, 47, 87]"
    assert "the memory limit of this container was reached: oom_kill" in ran.lines[1]
