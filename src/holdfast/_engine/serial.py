"""Loading in the trainer itself (``num_workers=0``): the same seeds, policies and ledger, and nobody to wait for.

What would end a worker ends the trainer, and what would stall a worker stalls it.
"""

from __future__ import annotations

import time
from contextlib import AbstractContextManager
from typing import Any

from holdfast._transport.logbook import SAMPLE
from holdfast._transport.messages import Plan
from holdfast._worker.failing import Failures
from holdfast._worker.fetch import EndOfStream, Fetch, Passed, Unnoted, fetch_planned, fetcher
from holdfast._worker.job import Job

from .draws import Draws
from .judge import Judge, Whose

_NOBODY = Whose()


class Serial:
    """Owned by an iterator, for one epoch."""

    def __init__(self, job: Job, judge: Judge) -> None:
        self._job, self._judge, self._notes = job, judge, Unnoted()
        self._failures = Failures(job, lambda error: error)
        self._fetch: Fetch | None = None
        self._batch = 0
        self._samples: Any = None

    def begin(self) -> None:
        self._fetch = fetcher(self._job, self._notes, self._meet if self._job.tolerant else None)

    def batch(self, batch: int, index: Any, draws: Draws, seeded: AbstractContextManager[None]) -> Any:
        """The batch; its error is raised, and ``StopIteration`` at the end of a stream."""
        self._batch = batch
        if self._job.iterable:
            draws.forget_all_but(batch, index)
            return self._of_stream(batch, index, seeded)
        self._judge.draw(batch, index)
        failed = True
        try:
            data = self._of_map(batch, index, seeded)
            failed = False
            return data
        finally:
            self._judge.deliver(batch, draws.deliver(batch), is_error=failed)

    def _of_map(self, batch: int, index: Any, seeded: AbstractContextManager[None]) -> Any:
        while True:
            plan = self._judge.plan(batch, index)
            try:
                with seeded:
                    return self._made(plan)
            except Exception as error:
                ruling = self._judge.failed(batch, index, self._reports(error, plan), _NOBODY)
            if ruling.error is not None:
                raise ruling.error
            time.sleep(ruling.after)

    def _of_stream(self, batch: int, places: Any, seeded: AbstractContextManager[None]) -> Any:
        try:
            with seeded:
                return self._made(places)
        except EndOfStream:
            self._judge.finish()
            raise StopIteration from None
        except Exception as error:
            reports = self._reports(error, places)
        raise self._judge.stream_failed(batch, reports, _NOBODY)

    def _made(self, index: Any) -> Any:
        assert self._fetch is not None
        self._samples, self._notes.numbers[SAMPLE] = None, -1
        samples = fetch_planned(index, self._job, self._notes) if type(index) is Plan else self._fetch(index)
        self._samples = samples
        return self._job.collate_fn(samples)

    def _reports(self, error: Exception, index: Any) -> Any:
        samples, self._samples = self._samples, None
        if samples is None:
            return self._failures.of_fetch(error, index, self._notes.numbers[SAMPLE])
        return self._failures.of_making(error, index, samples, self._job.collate_fn)

    def _meet(self, error: Exception, item: int) -> Any:
        answer = self._judge.asked(self._batch, item, self._failures.report(error, None, None), _NOBODY)
        if answer.action == "raise":
            raise error
        time.sleep(answer.after)
        return answer.value if answer.action == "put" else Passed
