"""Loading in the trainer itself (``num_workers=0``): the same seeds, policies and ledger, and nobody to wait for.

What would end a worker ends the trainer, and what would stall a worker stalls it.
"""

from __future__ import annotations

import time
from contextlib import AbstractContextManager
from typing import Any

from holdfast._transport.logbook import SAMPLE
from holdfast._transport.messages import Plan, Report
from holdfast._worker.failing import Failures
from holdfast._worker.fetch import (
    EndOfStream,
    Fetch,
    Passed,
    Refused,
    Stream,
    TriedAgain,
    Unnoted,
    fetch_planned,
    fetcher,
)
from holdfast._worker.job import Job

from .docket import Whose
from .draws import Draws
from .judge import Judge

_NOBODY = Whose()


class Serial:
    """Owned by an iterator, for one epoch."""

    def __init__(self, job: Job, judge: Judge) -> None:
        self._job, self._judge, self._notes = job, judge, Unnoted()
        self._failures = Failures(job, self._notes, lambda error: error)
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
                with seeded:  # the user's code runs once more, and its random numbers are its own
                    reports = self._reports(error, plan)
            except BaseException as end:
                self._judge.abandon(batch, index, end)
                raise
            ruling = self._judge.failed(batch, index, reports, _NOBODY)
            if ruling.error is not None:
                raise ruling.error
            time.sleep(ruling.after)

    def _of_stream(self, batch: int, places: Any, seeded: AbstractContextManager[None]) -> Any:
        data, reports = None, list[Report]()
        try:
            with seeded:
                data, reports = self._attempted(places, reports)
                while self._can_mend(reports):
                    data, reports = self._attempted(places, reports)
        except EndOfStream:
            self._judge.finish()
            raise StopIteration from None
        finally:
            self._samples = None
        self._judge.streams.deliver(places)
        if reports:
            raise self._judge.streams.failed(batch, reports, _NOBODY)
        return data

    def _made(self, index: Any) -> Any:
        assert self._fetch is not None
        self._samples, self._notes.numbers[SAMPLE] = None, -1
        samples = fetch_planned(index, self._job, self._notes) if type(index) is Plan else self._fetch(index)
        self._samples = samples
        return self._job.collate_fn(samples)

    def _reports(self, error: Exception, index: Any) -> list[Report]:
        samples, self._samples = self._samples, None
        if samples is None:
            return self._failures.of_fetch(error, index, self._notes.numbers[SAMPLE])
        return self._failures.of_making(error, index, samples, self._job.collate_fn)

    # -- a stream ------------------------------------------------------------------------------

    def _attempted(self, places: Any, guilty: list[Report]) -> tuple[Any, list[Report]]:
        """A batch made without the ``guilty``; or what is in its way."""
        try:
            if not guilty:
                return self._made(places), []
            assert isinstance(self._fetch, Stream)
            self._samples = self._fetch.mended(self._samples, places, guilty, self._ask)
            return self._job.collate_fn(self._samples), []
        except EndOfStream:
            raise
        except Refused as refused:
            self._samples = None
            return None, [refused.report]
        except Exception as error:
            if self._samples is None:
                return None, self._failures.of_stream(error, self._fetch)
            return None, self._failures.of_making(error, places, self._samples, self._job.collate_fn, self._fetch)

    def _can_mend(self, reports: list[Report]) -> bool:
        fetch, there = self._fetch, self._samples is not None
        return bool(reports) and there and isinstance(fetch, Stream) and fetch.can_mend(reports)

    def _meet(self, error: Exception, item: int) -> Any:
        try:
            return self._ask(self._failures.report(error, None, item=item))
        except Refused:
            raise error from None

    def _ask(self, report: Report) -> Any:
        answer = self._judge.streams.asked(self._batch, report, _NOBODY)
        if answer.action == "raise":
            raise Refused(report)
        time.sleep(answer.after)
        return {"put": answer.value, "again": TriedAgain}.get(answer.action, Passed)
