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
from holdfast._transport.messages import Answered, Asked, Begin, Close, Load, Message, Plan, Raised, Ready, StreamOver

from .failing import Failures
from .fetch import EndOfStream, Fetch, Passed, Stream, fetch_planned, fetcher
from .job import Job, Post


class Interrupted(Exception):
    """The epoch ended, or everything did, while we waited for an answer."""


class Seeds(Protocol):
    """Sets random state for a batch."""

    def seed(self, seed: int, batch: int) -> None: ...


class Loop(ABC):
    """Loads batches until it is told to close. The subclass knows how messages travel and how a batch is made."""

    def __init__(self, job: Job, post: Post, logbook: Logbook, seeds: Seeds) -> None:
        self._job, self._post, self._logbook, self._seeds = job, post, logbook, seeds
        self._epoch = Begin(0, 0, None, 0)
        self._fetch: Fetch | BaseException | None = None
        self._failures = Failures(job, self._told)
        self._batch = -1
        self._samples: Any = None  # of the batch that is being made, from when they are fetched
        self._put_off: deque[Message] = deque()  # came while we waited for an answer

    @abstractmethod
    def _next_message(self) -> Message:
        """Wait for the trainer; ``EOFError`` when it is gone."""

    @abstractmethod
    def _say(self, message: Message) -> None: ...

    @abstractmethod
    def _handed_over(self, batch: int, samples: Any) -> Message:
        """The samples collated, and the batch in the form in which it travels."""

    @abstractmethod
    def _attempt(self, samples: Any) -> None:
        """Make a batch of these and forget it: does that fail?"""

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
        try:
            self._seeds.seed(epoch.seed, self._post.seat)
            self._fetch = fetcher(self._job, self._logbook, self._meet if self._job.tolerant else None)
        except Exception as error:
            self._fetch = error  # told with the first batch that asks for it

    def _replay(self, places: Any) -> None:
        """Go past the batches that an earlier life of this seat has given already."""
        skip, self._epoch = self._epoch.skip, self._epoch._replace(skip=0)
        for number in range(skip):
            batch = number * self._post.seats + self._post.seat
            self._logbook.note(Phase.REPLAYING, self._epoch.first + batch)
            self._seeds.seed(self._epoch.seed, batch)
            self._fetched(places)

    # -- a batch -------------------------------------------------------------------------------

    def _load(self, load: Load) -> None:
        self._give_back(load.freed)
        batch = load.batch
        if batch < self._epoch.first:
            return  # of an epoch that is over
        try:
            if self._epoch.skip:
                self._replay(load.index)
            self._say(self._make(batch, load.index))
        except EndOfStream:
            self._say(StreamOver(batch))
        except Interrupted:
            self._abandon()
        except Exception as error:
            self._abandon()
            self._fail(error, load)
        self._samples = None
        self._logbook.note_done()

    def _make(self, batch: int, index: Any) -> Message:
        self._logbook.note(Phase.FETCHING, batch)
        self._batch = batch
        self._seeds.seed(self._epoch.seed, batch - self._epoch.first)
        if type(index) is Plan:
            return self._make_planned(batch, index)
        self._samples = samples = self._fetched(index)
        self._logbook.note(Phase.COLLATING, batch)
        return self._handed_over(batch, samples)

    def _make_planned(self, batch: int, plan: Plan) -> Message:
        self._samples = samples = fetch_planned(plan, self._job, self._logbook)
        if plan.careful and self._job.auto_collation:
            for position, sample in enumerate(samples):
                self._logbook.note(Phase.COLLATING, batch, position)
                self._attempt([sample])
        self._logbook.note(Phase.COLLATING, batch)
        return self._handed_over(batch, samples)

    def _fail(self, error: Exception, load: Load) -> None:
        samples, entry = self._samples, self._logbook.read()
        if samples is None:
            self._say(Raised(load.batch, self._failures.of_fetch(error, load.index, entry.sample)))
        elif isinstance(self._fetch, Stream) and self._job.tolerant and self._job.auto_collation:
            self._mend(error, load, self._fetch)
        else:
            self._say(Raised(load.batch, self._failures.of_making(error, load.index, samples, self._attempt)))

    # -- a stream, which nobody can load a second time -----------------------------------------

    def _meet(self, error: Exception, item: int) -> Any:
        """An item raised: ask the trainer, and wait, as there is nothing else that this worker could do."""
        return self._ask(self._failures.report(error, None, None), item, error)

    def _ask(self, report: Any, item: int, error: Exception) -> Any:
        self._say(Asked(self._batch, item, report))
        while True:
            message = self._next_message()
            match message:
                case Answered():
                    break
                case Begin() | Close():
                    self._put_off.append(message)
                    raise Interrupted
                case _:
                    self._put_off.append(message)
        if message.action == "raise":
            raise error
        time.sleep(message.after)
        return message.value if message.action == "put" else Passed

    def _mend(self, error: Exception, load: Load, stream: Stream) -> None:
        """No batch could be made of these items: without the guilty ones, and with others in their place, it may."""
        samples, size = self._samples, len(load.index)
        try:
            while True:
                reports = self._failures.of_making(error, load.index, samples, self._attempt)
                guilty = [report for report in reports if report.place is not None]
                if not guilty:
                    self._say(Raised(load.batch, reports))
                    return
                for report in reversed(guilty):
                    assert report.place is not None
                    value = self._ask(report, stream.origins[report.place], error)
                    if value is Passed:
                        del samples[report.place], stream.origins[report.place]
                    else:
                        samples[report.place] = value
                stream.fill(samples, size)
                try:
                    self._say(self._handed_over(load.batch, stream.checked(samples, size)))
                    return
                except Exception as another:
                    error = another
                    self._abandon()
                    if isinstance(error, EndOfStream):
                        raise
        except EndOfStream:
            self._say(StreamOver(load.batch))
        except Interrupted:
            pass
        except Exception as last:
            self._say(Raised(load.batch, [self._failures.report(last, None, None, whole=True)]))

    def _fetched(self, index: Any) -> Any:
        fetch = self._fetch
        if isinstance(fetch, BaseException):
            self._fetch = None
            raise fetch
        if fetch is None:
            raise EndOfStream
        return fetch(index)
