"""The worker's loop: one message in, one answer out."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Iterable
from typing import Any

import numpy
import torch
from torch.utils.data import IterDataPipe, default_collate
from torch.utils.data._utils import worker as torch_worker
from torch.utils.data.graph_settings import apply_random_seed

from holdfast._system.limits import memory_room
from holdfast._system.segments import Segment
from holdfast._transport.arena import Arena, ArenaFull, Writer
from holdfast._transport.channel import Channel
from holdfast._transport.codec import Encoder
from holdfast._transport.culprit import find_culprit
from holdfast._transport.faults import pack_error
from holdfast._transport.logbook import Logbook, Phase
from holdfast._transport.messages import (
    Begin,
    Close,
    Extended,
    InitFailed,
    Load,
    Loaded,
    Message,
    Raised,
    Ready,
    StreamOver,
    pack,
    unpack,
)
from holdfast.errors import CannotSend, SharedMemoryFull

from .collate import collate_into
from .fetch import EndOfStream, Fetch, fetcher
from .job import Job, Post
from .seeds import Seeder


class Worker:
    """Loads batches until it is told to close. Owns its end of the channel, its arena and the job's objects."""

    def __init__(
        self, job: Job, post: Post, channel: Channel, logbook: Logbook, segment: Segment, heard: Iterable[bytes]
    ) -> None:
        self._job, self._post, self._channel, self._logbook = job, post, channel, logbook
        self._arena = Arena(segment, post.arena_limit, memory_room, self._announce)
        self._encoder = Encoder(Writer(self._arena))
        self._collate = collate_into(self._encoder.tensor, job.collate_types)
        if job.collate_fn is not default_collate:
            self._collate = job.collate_fn
        self._seeder = Seeder(torch.initial_seed())
        self._inbox: deque[Message] = deque(map(unpack, heard))
        self._epoch = Begin(0, 0, 0, None, 0)
        self._fetch: Fetch | BaseException | None = None

    def initialise(self) -> None:
        """As torch does it: seed, worker info, worker_init_fn."""
        job, post = self._job, self._post
        seed = post.seed + post.seat
        random.seed(seed)
        torch.default_generator.manual_seed(seed)  # torch.manual_seed looks for accelerators: 3 ms in a new process
        numpy.random.seed(torch_worker._generate_state(post.seed, post.seat))
        torch_worker._worker_info = torch_worker.WorkerInfo(
            id=post.seat, num_workers=post.seats, seed=seed, dataset=job.dataset
        )
        if job.worker_init_fn is not None:
            job.worker_init_fn(post.seat)
        self._seeder = Seeder(seed)

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

    def _next_message(self) -> Message:
        while not self._inbox:
            self._inbox.extend(map(unpack, self._channel.receive()))
        return self._inbox.popleft()

    def _say(self, message: Message) -> None:
        self._channel.send(pack(message))

    def _announce(self, base: int, size: int) -> None:
        self._say(Extended(base, size))

    # -- an epoch ------------------------------------------------------------------------------

    def _begin(self, epoch: Begin) -> None:
        self._epoch = epoch
        if isinstance(self._job.dataset, IterDataPipe) and epoch.shared_seed is not None:
            generator = torch.Generator()
            generator.manual_seed(epoch.shared_seed)
            apply_random_seed(self._job.dataset, generator)
        try:
            self._seeder.seed(epoch.seed, self._post.seat)
            self._fetch = fetcher(self._job, self._logbook)
        except Exception as error:
            self._fetch = error  # told with the first batch that asks for it

    def _replay(self, places: Any) -> None:
        """Go past the batches that an earlier life of this seat has given already."""
        skip, self._epoch = self._epoch.skip, self._epoch._replace(skip=0)
        for number in range(skip):
            batch = number * self._post.seats + self._post.seat
            self._logbook.note(Phase.REPLAYING, self._epoch.first + batch)
            self._seeder.seed(self._epoch.seed, batch)
            self._fetched(places)

    # -- a batch -------------------------------------------------------------------------------

    def _load(self, load: Load) -> None:
        for block in load.freed:
            self._arena.give_back(block)
        batch = load.batch
        if batch < self._epoch.first:
            return  # of an epoch that is over
        try:
            if self._epoch.skip:
                self._replay(load.index)
            answer = self._make(batch, load.index)
        except EndOfStream:
            answer = StreamOver(batch)
        except Exception as error:
            self._encoder.abandon()
            entry = self._logbook.read()
            answer = Raised(batch, entry.sample if entry.phase is Phase.FETCHING else -1, pack_error(error))
        self._say(answer)
        self._logbook.note_done()

    def _make(self, batch: int, index: Any) -> Message:
        self._logbook.note(Phase.FETCHING, batch)
        self._seeder.seed(self._epoch.seed, batch - self._epoch.first)
        try:
            samples = self._fetched(index)
            self._logbook.note(Phase.COLLATING, batch)
            value = self._collate(samples)
            del samples
            self._logbook.note(Phase.SENDING, batch)
            return Loaded(batch, *self._encode(value))
        except ArenaFull as full:
            raise SharedMemoryFull(full.wanted, full.held, full.limit, full.reason) from None

    def _fetched(self, index: Any) -> Any:
        fetch = self._fetch
        if isinstance(fetch, BaseException):
            self._fetch = None
            raise fetch
        if fetch is None:
            raise EndOfStream
        return fetch(index)

    def _encode(self, value: object) -> Any:
        try:
            return self._encoder.encode(value)
        except ArenaFull:
            raise
        except Exception as error:
            culprit = find_culprit(value, "batch")
            if culprit is None or "requires_grad" in str(error):
                raise
            raise CannotSend(*culprit) from error


def report_failure(channel: Channel, error: BaseException) -> None:
    """The worker could not get ready."""
    channel.send(pack(InitFailed(pack_error(error))))
