"""What supervision costs of the rate: the same crew with logbook, judge, ledger and story, and with none of them."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

from bench.datasets import FromMemory
from bench.harness import Options, Row, Target, best_of, close, consume, holdfast_loader, warm_up

BATCH_SIZE = 64
GENERATIONS = 4


def supervision(options: Options) -> Iterator[Row]:
    """Middling batches from memory: a microsecond of work per sample, so that every note counts.

    Nothing turns supervision off in the product; the worker_init_fn of the other crew, and `_strip` for the trainer's
    part, do it from outside. Sentinels are in both: one descriptor more in a wait costs nothing per batch.
    """
    batches = options.scaled(600, 60)
    dataset = FromMemory(batches * BATCH_SIZE, (3, 64, 64))
    best = {"without": math.inf, "supervised": math.inf}
    # Where the scheduler and the memory put a crew makes more difference than what is measured: several crews of each.
    for generation in range(GENERATIONS):
        watched = holdfast_loader(dataset, BATCH_SIZE, persistent_workers=True)
        unwatched = holdfast_loader(dataset, BATCH_SIZE, persistent_workers=True, worker_init_fn=_without_notes)
        try:
            for loader in (watched, unwatched) if generation % 2 else (unwatched, watched):
                warm_up(loader)
            _strip(unwatched)
            found = best_of(options.rounds, without=lambda: consume(unwatched), supervised=lambda: consume(watched))  # noqa: B023  # called at once
        finally:
            close(watched)
            close(unwatched)
        best = {name: min(seconds, found[name]) for name, seconds in best.items()}
    without, supervised = batches / best["without"], batches / best["supervised"]
    yield Row("supervision: all of it", "holdfast without", "batches/s", without, supervised, target=Target(0.98))


class _NoJudge:
    """Lets every batch through, and counts nothing."""

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
