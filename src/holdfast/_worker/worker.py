"""A worker as a process: its loop, with batches through the arena."""

from __future__ import annotations

import random
import time
from typing import Any

import numpy
import torch
from torch.utils.data import default_collate
from torch.utils.data._utils import worker as torch_worker

from holdfast._system.limits import own_memory
from holdfast._transport.arena import ArenaFull
from holdfast._transport.codec import Encoded, Encoder
from holdfast._transport.culprit import find_culprit
from holdfast._transport.faults import pack_error
from holdfast._transport.layout import INLINE
from holdfast._transport.logbook import MEMORY, Logbook, Phase
from holdfast._transport.messages import Loaded, Message
from holdfast.errors import CannotSend, SharedMemoryFull

from .collate import collate_into
from .collate_types import are_apart
from .job import Job, Post
from .line import Line
from .loop import Loop
from .moving import Mover
from .noticing import Noticing
from .seeds import Seeder
from .settings import take_over

MEASURE_EVERY = 0.25  # seconds; it takes 150 µs


class Worker(Loop):
    """Owns its line, with its end of the channel and its arena, and its copy of the job's objects."""

    def __init__(self, job: Job, post: Post, logbook: Logbook, line: Line) -> None:
        super().__init__(job, post, logbook, Seeder(torch.initial_seed()))
        self._line, self._encoder = line, Encoder(line.writer)
        mover = Mover(self._encoder.tensor, INLINE)
        self._collate = collate_into(self._encoder.tensor, job.collate_types, mover)
        if job.collate_fn is not default_collate:
            self._collate = job.collate_fn
        elif are_apart(job.collate_types):
            self._mover = mover
        self._measured = 0.0  # when

    def initialise(self) -> None:
        """As torch does it: seed, worker info, worker_init_fn."""
        job, post = self._job, self._post
        take_over(job.settings)
        if post.tells_items or post.tells_random:
            self._noticing = Noticing(job, post)
        seed = post.seed + post.seat
        random.seed(seed)
        torch.default_generator.manual_seed(seed)  # torch.manual_seed looks for accelerators: 3 ms in a new process
        numpy.random.seed(torch_worker._generate_state(post.seed, post.seat))
        self._introduce(seed)
        if job.worker_init_fn is not None:
            self._logbook.note(Phase.INITIALISING)
            job.worker_init_fn(post.seat)
        self._seeds = Seeder(seed)
        if self._noticing is not None:
            self._noticing.initialised()

    def _introduce(self, seed: int) -> None:
        job, post = self._job, self._post
        torch_worker._worker_info = torch_worker.WorkerInfo(
            id=post.seat, num_workers=post.seats, seed=seed, dataset=job.dataset
        )

    def _next_message(self) -> Message:
        return self._line.hear()

    def _say(self, message: Message) -> None:
        self._line.say(message)

    def _done(self) -> None:
        super()._done()
        if self._post.measures_memory and time.monotonic() > self._measured + MEASURE_EVERY:
            self._measured = time.monotonic()
            self._logbook.numbers[MEMORY] = own_memory()

    def _give_back(self, blocks: tuple[int, ...]) -> None:
        self._line.give_back(blocks)

    def _abandon(self) -> None:
        self._encoder.abandon()

    def _told(self, error: BaseException) -> bytes:
        return pack_error(error)

    def _attempt(self, samples: Any) -> None:
        try:
            culprit = find_culprit(self._collate(samples), "batch")  # not encoded, which would announce a layout
        finally:
            self._encoder.abandon()
        if culprit is not None:
            raise CannotSend(*culprit)

    def _handed_over(self, batch: int, samples: Any) -> Loaded:
        try:
            value = self._collate(samples)
            if self._mover is None:  # by torch's own rules, it lies in the arena when it is collated
                self._logbook.note_sending()
            return Loaded(batch, *self._encode(value))
        except ArenaFull as full:
            raise SharedMemoryFull(full.wanted, full.held, full.limit, full.reason) from None

    def _encode(self, value: object) -> Encoded:
        try:
            return self._encoder.encode(value)
        except ArenaFull:
            raise
        except Exception as error:
            culprit = find_culprit(value, "batch")
            if culprit is None or "requires_grad" in str(error):
                raise
            raise CannotSend(*culprit) from error
