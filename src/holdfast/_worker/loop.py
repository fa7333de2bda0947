"""What every worker does, in a process or in a thread: one message in, one answer out."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections import deque
from typing import Any, Protocol

import torch
from torch.utils.data import IterDataPipe
from torch.utils.data.graph_settings import apply_random_seed

from holdfast._transport.logbook import Logbook, Phase
from holdfast._transport.messages import (
    Answered,
    Asked,
    Began,
    Begin,
    Close,
    Handed,
    Load,
    Loaded,
    Mark,
    Message,
    Noticed,
    Plan,
    Raised,
    Ready,
    Report,
    StreamOver,
)

from . import attributes
from .failing import Failures
from .fetch import Fetch, fetch_planned, fetcher
from .job import Job, Post
from .moving import Mover
from .noticing import Noticing
from .stream import EndOfStream, Interrupted, Passed, Refused, Stream, TriedAgain, opened

Made = Loaded | Handed


class Seeds(Protocol):
    """Sets random state for a batch."""

    def seed(self, seed: int, batch: int) -> None: ...


class Loop(ABC):
    """Loads batches until it is told to close. The subclass knows how messages travel and how a batch is made."""

    def __init__(self, job: Job, post: Post, logbook: Logbook, seeds: Seeds) -> None:
        self._job, self._post, self._logbook, self._seeds = job, post, logbook, seeds
        self._epoch = Begin(0, 0, None)
        self._fetch: Fetch | BaseException | None = None
        self._failures = Failures(job, logbook, self._told)
        self._batch = -1
        self._samples: Any = None  # of the batch that is being made, from when they are fetched
        self._put_off: deque[Message] = deque()  # came while we waited for an answer
        self._noticing: Noticing | None = None
        self._to_replay = False
        self._mover: Mover | None = None  # where batches are collated by default

    @abstractmethod
    def _next_message(self) -> Message:
        """Wait for the trainer; ``EOFError`` when it is gone."""

    @abstractmethod
    def _say(self, message: Message) -> None: ...

    @abstractmethod
    def _handed_over(self, batch: int, samples: Any) -> Made:
        """The samples collated, and the batch in the form in which it travels."""

    @abstractmethod
    def _attempt(self, samples: Any) -> None:
        """Make a batch of these and forget it: does that fail?"""

    @abstractmethod
    def _introduce(self, seed: int) -> None:
        """To the user's code, which may ask who it is."""

    @abstractmethod
    def _told(self, error: BaseException) -> Any:
        """The exception in the form in which it travels."""

    def _give_back(self, blocks: tuple[int, ...]) -> None:  # noqa: B027  # a thread has none
        """These blocks of memory are free again."""

    def _abandon(self) -> None:  # noqa: B027  # a thread has nothing
        """The batch failed: let go of what was prepared for it."""

    def run(self) -> None:
        """Until the trainer says close, or is gone."""
        self._say(Ready())
        self._logbook.note(Phase.IDLE)
        while True:
            try:
                message = self._put_off.popleft() if self._put_off else self._next_message()
            except EOFError:
                return
            match message:
                case Load():
                    self._load(message)
                case Begin():
                    self._begin(message)
                case Close():
                    return
                case _:
                    raise AssertionError(f"the trainer does not send {message}")

    # -- an epoch ------------------------------------------------------------------------------

    def _begin(self, epoch: Begin) -> None:
        self._epoch = epoch
        if isinstance(self._job.dataset, IterDataPipe) and epoch.shared_seed is not None:
            generator = torch.Generator()
            generator.manual_seed(epoch.shared_seed)
            apply_random_seed(self._job.dataset, generator)
        self._introduce(epoch.seed + self._post.seat)
        if self._noticing is not None:
            self._noticing.begin()
        try:
            if epoch.changes is not None:
                attributes.apply(self._job.dataset, epoch.changes)
            self._seeds.seed(epoch.seed, self._post.seat)
            self._fetch = self._opened() if self._job.iterable else fetcher(self._job, self._logbook, self._mover)
        except Exception as error:
            self._fetch = error  # told with the first batch that asks for it
        if self._job.iterable and not epoch.past.batches and epoch.past.state is None:
            mark = self._fetch.here() if isinstance(self._fetch, Stream) else Mark(0, 0, None)
            self._say(Began(epoch.first, mark))

    def _opened(self) -> Stream:
        meet = self._meet if self._job.tolerant else None
        self._to_replay = self._epoch.past.since > 0
        return opened(self._job, self._logbook, meet, self._post.seat, self._epoch.past)

    def _replay(self, places: Any) -> None:
        """Go past the batches that were given already. What cannot be passed is the end of the stream."""
        stream, self._fetch, self._to_replay = self._fetch, None, False
        if isinstance(stream, BaseException):
            raise stream
        assert isinstance(stream, Stream)
        stream.replay(self._epoch.past, places, self._begin_replayed)
        self._fetch = stream

    def _begin_replayed(self, number: int) -> None:
        batch = number * self._post.seats + self._post.seat
        self._batch = self._epoch.first + batch
        self._logbook.note(Phase.REPLAYING, self._batch)
        self._seed(batch)

    def _seed(self, batch: int) -> None:
        self._seeds.seed(self._epoch.seed, batch * self._epoch.stride + self._epoch.shift)

    # -- a batch -------------------------------------------------------------------------------

    def _load(self, load: Load) -> None:
        self._give_back(load.freed)
        if load.batch < self._epoch.first:
            return  # of an epoch that is over
        guilty = self._answer(load, [])
        while guilty:
            guilty = self._answer(load, guilty)
        self._samples = None
        if self._mover is not None:
            self._mover.forget()
        self._done()

    def _answer(self, load: Load, guilty: list[Report]) -> list[Report]:
        """Make the batch, without the ``guilty``, and say what came of it.

        If that is nothing yet: the samples without which it may be made in another attempt.
        """
        try:
            made = self._mended(load, guilty) if guilty else self._make(load.batch, load.index)
            if self._noticing is not None:
                self._tell(self._noticing.see(self._samples))
            if self._job.iterable:
                made = made._replace(mark=self._mark())
            self._say(made)
        except EndOfStream:
            if self._noticing is not None:
                self._tell(self._noticing.all_seen())
            self._say(StreamOver(load.batch, self._fetch.here() if isinstance(self._fetch, Stream) else None))
        except Interrupted:
            self._abandon()
        except Refused as refused:
            self._say(Raised(load.batch, [refused.report], self._mark()))
        except Exception as error:
            self._abandon()
            self._failures.debug(error, load.index)
            reports = self._reports(error, load.index)
            if self._can_mend(reports):
                return reports
            self._logbook.note_sending()
            self._say(Raised(load.batch, reports, self._mark()))
        return []

    def _mark(self) -> Mark | None:
        """Of a stream: it has one more batch behind it."""
        return self._fetch.mark() if isinstance(self._fetch, Stream) else None

    def _tell(self, noticed: Noticed | None) -> None:
        if noticed is not None:
            self._noticing = None
            self._say(noticed)

    def _done(self) -> None:
        self._logbook.note_done()

    def _make(self, batch: int, index: Any) -> Made:
        if self._to_replay:
            self._replay(index)
        self._logbook.note_fetching(batch)
        self._batch = batch
        self._seed(batch - self._epoch.first)
        if type(index) is Plan:
            return self._make_planned(batch, index)
        self._samples = samples = self._fetched(index)
        self._logbook.note_collating()
        return self._handed_over(batch, samples)

    def _make_planned(self, batch: int, plan: Plan) -> Made:
        self._samples = samples = fetch_planned(plan, self._job, self._logbook)
        if plan.careful and self._job.auto_collation:
            for position, sample in enumerate(samples):
                self._logbook.note(Phase.COLLATING, batch, position)
                self._attempt([sample])
            self._seed(batch - self._epoch.first)  # attempts may have drawn random numbers
            self._logbook.note_fetching(batch)
            self._samples = samples = fetch_planned(plan, self._job, self._logbook)
        self._logbook.note_collating()
        return self._handed_over(batch, samples)

    def _reports(self, error: Exception, index: Any) -> list[Report]:
        if self._samples is not None:
            return self._failures.of_making(error, index, self._samples, self._attempt, self._fetch)
        if self._job.iterable:
            return self._failures.of_stream(error, self._fetch)
        return self._failures.of_fetch(error, index, self._logbook.read().sample)

    # -- a stream, which nobody can load a second time -----------------------------------------

    def _meet(self, error: Exception, item: int) -> Any:
        """An item raised: what takes its place?"""
        try:
            return self._ask(self._failures.report(error, None, item=item))
        except Refused:
            raise error from None

    def _ask(self, report: Report) -> Any:
        """Ask the trainer and wait: there is nothing else that the worker of this stream could do."""
        self._say(Asked(self._batch, report))
        while not isinstance(message := self._next_message(), Answered):
            if isinstance(message, Begin | Close):
                self._forget_loads()
                self._put_off.append(message)
                raise Interrupted
            self._put_off.append(message)
        if message.action == "raise":
            raise Refused(report)
        self._logbook.since[()] = time.monotonic() + message.after  # who waits as it was told has not stalled
        time.sleep(message.after)
        return {"put": message.value, "again": TriedAgain}.get(message.action, Passed)

    def _forget_loads(self) -> None:
        """They are of an epoch that is over, and to begin one of them would be to ask, and wait, once more."""
        while self._put_off:
            message = self._put_off.popleft()
            if isinstance(message, Load):
                self._give_back(message.freed)

    def _can_mend(self, reports: list[Report]) -> bool:
        stream, there = self._fetch, self._samples is not None
        return there and isinstance(stream, Stream) and stream.can_mend(reports)

    def _mended(self, load: Load, guilty: list[Report]) -> Made:
        stream = self._fetch
        assert isinstance(stream, Stream)
        self._logbook.note_fetching(load.batch)
        self._samples = stream.mended(self._samples, load.index, guilty, self._ask)
        self._logbook.note_collating()
        return self._handed_over(load.batch, self._samples)

    def _fetched(self, index: Any) -> Any:
        fetch = self._fetch
        if isinstance(fetch, BaseException):
            self._fetch = None
            raise fetch
        if fetch is None:
            raise EndOfStream
        return fetch(index)
