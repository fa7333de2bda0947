"""What supervision costs of the rate: the same crew with logbook, judge, ledger and story, and with none of them."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from typing import Any

import holdfast
from bench.contest import Turn
from bench.measures.opening import work_of

EPOCHS = 3


class Crews:
    """A new crew for each go, as where the scheduler and the memory put one makes more difference than what is
    measured; the best of a few epochs counts.

    Nothing turns supervision off in the product; the worker_init_fn of the other crew, and `_strip` for the trainer's
    part, do it from outside. Sentinels are in both: one descriptor more in a wait costs nothing per batch.
    """

    note = ""

    def __init__(self, turn: Turn) -> None:
        self._work, self._watched = work_of(turn), turn.contender == "holdfast"

    def go(self) -> float:
        work = self._work
        loader = holdfast.DataLoader(
            work.dataset, work.batch_size, num_workers=work.workers, persistent_workers=True,
            worker_init_fn=None if self._watched else _without_notes,
        )  # fmt: skip
        self._epoch(loader)
        if not self._watched:
            _strip(loader)
        best = min(self._epoch(loader) for _ in range(EPOCHS))
        loader._iterator = None
        return work.amount / best

    def _epoch(self, loader: Any) -> float:
        began = time.perf_counter()
        for batch in loader:
            self._work.touch(batch)
        return time.perf_counter() - began

    def close(self) -> None: ...


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


def _strip(loader: Any) -> None:
    iterator = loader._iterator
    iterator._judge = iterator._crew._judge = _NoJudge()
    iterator._crew._watch.next_look = iterator._crew._watch.timeout = float("inf")
    iterator._crew._machine.story.entries = deque(maxlen=0)


def _without_notes(_: int) -> None:
    """Runs in a worker: nothing is noted from here on."""
    from holdfast._transport.logbook import Logbook
    from holdfast._worker import loop

    def fetcher(job: Any, notes: Any, *_: Any) -> Callable[[Any], list[Any]]:
        dataset = job.dataset
        return lambda indices: [dataset[index] for index in indices]

    loop.fetcher = fetcher  # type: ignore[assignment]
    Logbook.note = Logbook.note_done = lambda *_: None  # type: ignore[method-assign, assignment]
