"""What every worker does, in a process or in a thread: one message in, one answer out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Protocol

import torch
from torch.utils.data import IterDataPipe
from torch.utils.data.graph_settings import apply_random_seed

from holdfast._transport.logbook import Logbook, Phase
from holdfast._transport.messages import Begin, Close, Load, Message, Raised, Ready, StreamOver

from .fetch import EndOfStream, Fetch, fetcher
from .job import Job, Post


class Seeds(Protocol):
    """Sets random state for a batch."""

    def seed(self, seed: int, batch: int) -> None: ...


class Loop(ABC):
    """Loads batches until it is told to close. The subclass knows how messages travel and how a batch is made."""

    def __init__(self, job: Job, post: Post, logbook: Logbook, seeds: Seeds) -> None:
        self._job, self._post, self._logbook, self._seeds = job, post, logbook, seeds
        self._epoch = Begin(0, 0, None, 0)
        self._fetch: Fetch | BaseException | None = None

    @abstractmethod
    def _next_message(self) -> Message:
        """Wait for the trainer; ``EOFError`` when it is gone."""

    @abstractmethod
    def _say(self, message: Message) -> None: ...

    @abstractmethod
    def _handed_over(self, batch: int, samples: Any) -> Message:
        """The samples collated, and the batch in the form in which it travels."""

    @abstractmethod
    def _told(self, error: Exception) -> Any:
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
                message = self._next_message()
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
            self._fetch = fetcher(self._job, self._logbook)
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
        except Exception as error:
            self._abandon()
            entry = self._logbook.read()
            # In no variable of ours: this frame is part of the error's traceback.
            self._say(Raised(batch, entry.sample if entry.phase is Phase.FETCHING else -1, self._told(error)))
        self._logbook.note_done()

    def _make(self, batch: int, index: Any) -> Message:
        self._logbook.note(Phase.FETCHING, batch)
        self._seeds.seed(self._epoch.seed, batch - self._epoch.first)
        samples = self._fetched(index)
        self._logbook.note(Phase.COLLATING, batch)
        return self._handed_over(batch, samples)

    def _fetched(self, index: Any) -> Any:
        fetch = self._fetch
        if isinstance(fetch, BaseException):
            self._fetch = None
            raise fetch
        if fetch is None:
            raise EndOfStream
        return fetch(index)
