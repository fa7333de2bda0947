"""Loading in the trainer itself (``num_workers=0``): the same seeds, policies and ledger, and nobody to wait for.

What would end a worker ends the trainer, and what would stall a worker stalls it.
"""

from __future__ import annotations

import time
from contextlib import AbstractContextManager
from typing import Any

from holdfast._core.mixing import mix
from holdfast._transport.messages import Begin, Plan, Report
from holdfast._worker.failing import Failures
from holdfast._worker.fetch import Fetch, Unnoted, fetch_planned, fetcher
from holdfast._worker.job import Job
from holdfast._worker.seeding import seed_all
from holdfast._worker.seeds import Fenced
from holdfast._worker.stream import EndOfStream, Passed, Refused, Stream, TriedAgain, opened

from .docket import Whose
from .draws import Draws
from .judge import Judge
from .trail import Trail

_NOBODY = Whose()


class Surroundings:
    """Random numbers for loading in the trainer, whose own are left as they were."""

    def __init__(self, epoch: Begin) -> None:
        self._epoch, self._fence = epoch, Fenced()

    def first(self) -> Fenced:
        """Of what is done before the first batch."""
        return self._fence.seed(self._epoch.seed, 0)

    def of(self, batch: int) -> Fenced:
        return self._fence.seed(self._epoch.seed, self._number(batch))

    def again(self, batch: int) -> None:
        """Those of another batch, where one has entered those of a batch."""
        seed_all(mix(self._epoch.seed, self._number(batch)))

    def _number(self, batch: int) -> int:
        return batch * self._epoch.stride + self._epoch.shift


class Serial:
    """Owned by an iterator, for one epoch."""

    def __init__(self, job: Job, judge: Judge) -> None:
        self._job, self._judge, self._notes = job, judge, Unnoted()
        self._failures = Failures(job, self._notes, lambda error: error)
        self._fetch: Fetch | None = None
        self._seeds = Surroundings(Begin(0, 0, None))
        self._trail: Trail | None = None
        self._to_replay = False
        self._batch = 0
        self._samples: Any = None

    def begin(self, epoch: Begin, trail: Trail | None) -> None:
        self._seeds, self._trail = Surroundings(epoch), trail
        with self._seeds.first():
            if trail is None:
                self._fetch = fetcher(self._job, self._notes)
                return
            past = trail.past(0, trail.given[0])
            self._fetch = stream = opened(self._job, self._notes, self._meet if self._job.tolerant else None, 0, past)
            self._to_replay = past.since > 0
            if not past.batches and past.state is None:
                trail.begin(0, stream.here())

    def batch(self, batch: int, index: Any, draws: Draws) -> Any:
        """The batch; its error is raised, and ``StopIteration`` at the end of a stream."""
        self._batch = batch
        if self._trail is not None:
            draws.forget_all_but(batch, index)
            if self._to_replay:
                self._replay(self._trail, index)
            return self._of_stream(batch, index, self._trail, self._seeds.of(batch))
        self._judge.draw(batch, index)
        failed = True
        try:
            data = self._of_map(batch, index, self._seeds.of(batch))
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
                self._failures.debug(error, plan)
                with seeded:  # the user's code runs once more, and its random numbers are its own
                    reports = self._reports(error, plan)
            except BaseException as end:
                self._judge.abandon(batch, index, end)
                raise
            ruling = self._judge.failed(batch, index, reports, _NOBODY)
            if ruling.error is not None:
                raise ruling.error
            time.sleep(ruling.after)

    def _of_stream(self, batch: int, places: Any, trail: Trail, seeded: AbstractContextManager[None]) -> Any:
        stream, data, reports = self._fetch, None, list[Report]()
        if not isinstance(stream, Stream):
            raise StopIteration  # nobody could get beyond what was given of it before
        try:
            with seeded:
                data, reports = self._attempted(places, reports)
                while self._can_mend(reports):
                    data, reports = self._attempted(places, reports)
                mark = stream.mark()
        except EndOfStream:
            trail.end(batch, stream.here())
            self._judge.finish()
            raise StopIteration from None
        finally:
            self._samples = None
        trail.answer(batch, mark)
        self._judge.streams.deliver(places)
        trail.deliver(batch)
        if reports:
            raise self._judge.streams.failed(batch, reports, _NOBODY, batch)
        return data

    def _replay(self, trail: Trail, places: Any) -> None:
        """Go past what was given in an earlier run. What cannot be passed is the end of the stream."""
        stream, self._fetch, self._to_replay = self._fetch, None, False
        assert isinstance(stream, Stream)
        past = trail.past(0, trail.given[0])
        with self._seeds.first():
            stream.replay(past, places, self._seeds.again)
        self._fetch = stream

    def _made(self, index: Any) -> Any:
        assert self._fetch is not None
        self._samples, self._notes.place[()] = None, -1
        samples = fetch_planned(index, self._job, self._notes) if type(index) is Plan else self._fetch(index)
        self._samples = samples
        return self._job.collate_fn(samples)

    def _reports(self, error: Exception, index: Any) -> list[Report]:
        samples, self._samples = self._samples, None
        if samples is None:
            return self._failures.of_fetch(error, index, self._notes.place[()])
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
            self._failures.debug(error, places)
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
