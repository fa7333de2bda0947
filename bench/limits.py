"""What the machine allows, beside what loaders do: contenders that load nothing into the trainer.

A limit does the part of a work that no loader could do without. It takes turns with the peers, in a seat of its own.
"""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

import torch
from torch.utils._pytree import tree_leaves
from torch.utils.data import default_collate

from bench.clock import per_second
from bench.contest import Cannot
from bench.peers.batches import Batches
from bench.seat import Running
from bench.works.work import Work

_FORK = multiprocessing.get_context("fork")


class Companions:
    """Forked processes that do what they are told to: `serve` gets the number of the process and its end of a pipe."""

    def __init__(self, count: int, serve: Callable[[int, Connection], None]) -> None:
        self.pipes: list[Connection] = []
        self._processes = []
        for number in range(count):
            ours, theirs = _FORK.Pipe()
            process = _FORK.Process(target=serve, args=(number, theirs), daemon=True)
            process.start()
            theirs.close()  # so that the end of the process is the end of the pipe
            self.pipes.append(ours)
            self._processes.append(process)

    def close(self) -> None:
        for process in self._processes:
            process.kill()
            process.join()


class BareProcesses:
    """As many processes as a loader has workers, each with its share of the batches, which go nowhere.

    Samples that torch's collate would stack are stacked into memory that is warm and the process's own; a work's own
    collate is called; where making the samples is the work (`samples_only`), they are made and dropped.
    """

    note = ""

    def __init__(self, work: Work) -> None:
        if work.stream:
            raise Cannot("a stream cannot be dealt out in batches")
        self._work = work
        self._companions = Companions(work.workers, self._serve)
        self.go()  # warms up

    def go(self) -> float:
        return self._work.amount * per_second(self._epoch)

    def _epoch(self) -> None:
        for pipe in self._companions.pipes:
            pipe.send_bytes(b"g")
        for pipe in self._companions.pipes:
            pipe.recv_bytes()

    def close(self) -> None:
        self._companions.close()

    def _serve(self, number: int, pipe: Connection) -> None:
        work, dataset = self._work, self._work.dataset
        make = _making(work)
        while pipe.recv_bytes():
            for batch in range(number, work.batches, work.workers):
                first = batch * work.batch_size
                make(dataset, range(first, min(first + work.batch_size, work.length)))
            pipe.send_bytes(b"d")


def _making(work: Work) -> Callable[[Any, range], None]:
    """How a bare process makes a batch of these indices."""
    if work.samples_only:
        return _samples
    if work.collate is None and isinstance(work.dataset[0], tuple) and isinstance(work.dataset[0][0], torch.Tensor):
        first = work.dataset[0][0]
        return _Stacking(torch.zeros(work.batch_size, *first.shape, dtype=first.dtype))
    make = Batches(work)  # of the data set's own call for a whole batch, where it has one
    return lambda _, indices: make(indices)


def _samples(dataset: Any, indices: range) -> None:
    for index in indices:
        dataset[index]


class _Stacking:
    """Into the same memory each time: it has been written once, and no page of it is new."""

    def __init__(self, out: torch.Tensor) -> None:
        self._out = out

    def __call__(self, dataset: Any, indices: range) -> None:
        torch.stack([dataset[index][0] for index in indices], out=self._out[: len(indices)])


class Memcpy:
    """One thread that copies the tensors of a batch into warm memory, once per batch."""

    note = ""

    def __init__(self, work: Work) -> None:
        if work.stream:
            raise Cannot("a stream has no batch to be copied again")
        batch = (work.collate or default_collate)([work.dataset[index] for index in range(work.batch_size)])
        self._pairs = [(leaf, torch.zeros_like(leaf)) for leaf in tree_leaves(batch) if isinstance(leaf, torch.Tensor)]
        self._work = work

    def go(self) -> float:
        return self._work.amount * per_second(self._epoch)

    def _epoch(self) -> None:
        for _ in range(self._work.batches):
            for source, target in self._pairs:
                target.copy_(source)

    def close(self) -> None:
        self._pairs.clear()


class PipeRoundTrip:
    """One byte to a process and back, once per batch: what it costs to ask for each, one after the other."""

    note = ""

    def __init__(self, work: Work) -> None:
        self._work = work
        self._asked, self._ask = os.pipe()
        self._answered, self._answer = os.pipe()
        self._companion = Companions(1, self._echo)
        self.go()  # warms up

    def go(self) -> float:
        return self._work.amount * per_second(self._epoch)

    def _epoch(self) -> None:
        ask, answered = self._ask, self._answered
        for _ in range(self._work.batches):
            os.write(ask, b"?")
            os.read(answered, 1)

    def close(self) -> None:
        self._companion.close()
        for end in (self._asked, self._ask, self._answered, self._answer):
            os.close(end)

    def _echo(self, number: int, pipe: Connection) -> None:
        asked, answer = self._asked, self._answer
        while True:
            os.write(answer, os.read(asked, 1))


LIMITS: dict[str, Callable[[Work], Running]] = {
    "bare processes": BareProcesses,
    "memcpy": Memcpy,
    "pipe round trip": PipeRoundTrip,
}
