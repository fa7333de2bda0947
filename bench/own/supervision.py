"""What supervision costs of the rate: one crew, with logbook, judge, watch and story in one epoch and with none of them
in the next, many times over.

Two crews would be further apart than what is measured, by where the scheduler and the memory have put them; and what
it costs in one of them is half a percent more or less than in the next, so that several have to be asked. Nothing
turns supervision off in the product; `_Deaf` does it in the workers from outside, `_Trainer` in the trainer. Sentinels
are in both: one descriptor more in a wait costs nothing per batch.
"""

from __future__ import annotations

import statistics
import time
from collections import deque
from collections.abc import Callable
from itertools import islice
from typing import Any

import torch

import holdfast
from bench.contest import Turn
from bench.contests.own import WITHOUT
from bench.measures.opening import work_of
from bench.seat import Running
from bench.works.work import Work

CREWS = 6  # quick: 1
PAIRS = 100  # of epochs, with and without, in each; quick: 10


def start(turn: Turn) -> Running:
    return _Without() if turn.contender == WITHOUT else Supervision(turn)


class Supervision:
    """The figure is the median of the ratios of two epochs, one right after the other, of all crews."""

    def __init__(self, turn: Turn) -> None:
        self._work, self._crews, self._pairs = work_of(turn), turn.scaled(CREWS, 1), turn.scaled(PAIRS, 10)
        self.note = ""

    def go(self) -> float:
        by_crew = [self._ratios() for _ in range(self._crews)]
        lowest, highest = (extreme(map(statistics.median, by_crew)) for extreme in (min, max))
        self.note = f"{self._pairs} pairs of epochs in each of {self._crews} crews: {lowest:.3f} to {highest:.3f}"
        return statistics.median(ratio for ratios in by_crew for ratio in ratios)

    def _ratios(self) -> list[float]:
        crew = _Crew(self._work)
        try:
            crew.epoch()
            return [crew.ratio(watched_first=bool(pair % 2)) for pair in range(self._pairs)]
        finally:
            crew.close()

    def close(self) -> None: ...


class _Crew:
    """A loader that can be watched or not."""

    def __init__(self, work: Work) -> None:
        self._work, self._deaf = work, torch.zeros(1, dtype=torch.int64).share_memory_()
        self._loader: Any = holdfast.DataLoader(
            work.dataset, work.batch_size, num_workers=work.workers, persistent_workers=True,
            worker_init_fn=_Deaf(self._deaf),
        )  # fmt: skip
        self._trainer = _Trainer(iter(self._loader))

    def ratio(self, *, watched_first: bool) -> float:
        """The rate of an epoch that is watched to that of one that is not."""
        seconds = {watched: self._timed(watched) for watched in (watched_first, not watched_first)}
        return seconds[False] / seconds[True]

    def _timed(self, watched: bool) -> float:
        self._deaf[0] = not watched
        self._trainer.watches(watched)
        return self.epoch()

    def epoch(self) -> float:
        began = time.perf_counter()
        for batch in self._loader:
            self._work.touch(batch)
        return time.perf_counter() - began

    def close(self) -> None:
        self._loader._iterator = None


class _Without:
    """What is compared with: all of the rate."""

    note = ""

    def go(self) -> float:
        return 1.0

    def close(self) -> None: ...


# -- in the trainer --------------------------------------------------------------------------------


class _Trainer:
    """An iterator with what it watches by, and with something that does nothing in its place."""

    def __init__(self, iterator: Any) -> None:
        self._iterator, self._crew = iterator, iterator._crew
        self._watched = iterator._judge, self._crew._watch.timeout, self._crew.story.values
        self._unwatched = _NoJudge(), float("inf"), deque[Any](maxlen=0)

    def watches(self, watched: bool) -> None:
        judge, timeout, story = self._watched if watched else self._unwatched
        self._iterator._judge = self._crew._judge = judge
        self._crew._watch.timeout, self._crew.story.values = timeout, story


class _NoJudge:
    """Lets every batch through, and counts nothing."""

    def left_out_ahead(self) -> int:
        return 0

    def begin(self, *_: Any) -> None: ...

    def draw(self, *_: Any) -> None: ...

    def plan(self, batch: int, index: Any) -> Any:
        return index

    def deliver(self, *_: Any, is_error: bool) -> None: ...

    def finish(self) -> None: ...


# -- in the workers --------------------------------------------------------------------------------


class _Deaf:
    """The crew's worker_init_fn. A worker notes nothing in epochs that begin while the number is not zero."""

    def __init__(self, deaf: torch.Tensor) -> None:
        self._deaf = deaf

    def __call__(self, _: int) -> None:
        from holdfast._worker import loop
        from holdfast._worker.worker import Worker

        deaf, begin, fetcher, books = self._deaf.numpy(), Worker._begin, loop.fetcher, {}

        def begin_deaf(worker: Any, epoch: Any) -> None:
            book = books.setdefault("noted", worker._logbook)
            worker._logbook = _Unnoted() if deaf[0] else book
            begin(worker, epoch)

        Worker._begin = begin_deaf  # type: ignore[method-assign]
        loop.fetcher = lambda job, *how: _fetcher(job, how[-1]) if deaf[0] else fetcher(job, *how)


def _fetcher(job: Any, mover: Any) -> Callable[[list[Any]], list[Any]]:
    """As the worker's own, without a note. It asks whether to move samples, which is no supervision."""
    dataset = job.dataset

    def fetch(indices: list[Any]) -> list[Any]:
        rest = iter(indices)
        samples = [dataset[index] for index in islice(rest, 1)]
        assert not mover.begin(samples[0], len(indices)), "these samples are too small to be moved"
        samples += [dataset[index] for index in rest]
        return samples

    return fetch


class _Unnoted:
    """In place of a logbook."""

    def note_fetching(self, batch: int) -> None: ...

    def note_collating(self) -> None: ...

    def note_sending(self) -> None: ...

    def note_done(self) -> None: ...
