"""A worker as a thread of the trainer: the same loop, the trainer's own objects, batches handed over as they are.

It changes nothing that the process' other threads share: no seeds of global generators, no thread counts, no signals,
no environment, no map of collate functions. Random numbers that are the same for any number of workers come from
``holdfast.get_worker_info().rng``; those from the global generators of torch, numpy and Python are anybody's.
"""

from __future__ import annotations

import random
import time
from typing import Any, NamedTuple, Protocol

import numpy
import torch
from torch.utils.data import default_collate
from torch.utils.data._utils import worker as torch_worker

from holdfast._core.mixing import mix
from holdfast._transport.logbook import Logbook, Phase
from holdfast._transport.messages import Handed, InitFailed, Load, Message

from .baton import Baton, Hand
from .collate import collate_beside
from .collate_types import are_apart
from .info import of_thread
from .job import Job, Post
from .life import of_this_thread
from .loop import Loop
from .moving import Mover
from .noticing import Noticing
from .warm import LEAST, Warm

BRISK = 0.0005  # seconds: a batch that takes no longer
SPACIOUS = 32 << 20  # bytes of a batch in which samples are moved: each time, the thread gives up the interpreter


class Line(Protocol):
    """The thread's end of the conversation: messages as objects."""

    brisk: bool

    def has_more(self) -> bool: ...

    def say(self, message: Message) -> None: ...

    def next_message(self) -> Message: ...


class _OwnRNG(NamedTuple):
    """As torch's, for versions of torch that have none."""

    random_generator: random.Random
    torch_generator: torch.Generator
    numpy_generator: numpy.random.Generator


class OwnGenerators:
    """One thread's generators, made when somebody asks for them and set for each batch from then on: it takes longer
    than a small sample does."""

    def __init__(self) -> None:
        self._rng: Any = None
        self._batch = 0, 0

    @property
    def rng(self) -> Any:
        if self._rng is None:
            kind: Any = getattr(torch_worker, "_RNG", _OwnRNG)
            self._rng = kind(
                random_generator=random.Random(),
                torch_generator=torch.Generator(),
                numpy_generator=numpy.random.Generator(numpy.random.PCG64()),
            )
            self.seed(*self._batch)
        return self._rng

    def seed(self, seed: int, batch: int) -> None:
        self._batch = seed, batch
        if self._rng is not None:
            value = mix(seed, batch)
            self._rng.random_generator.seed(value)
            self._rng.torch_generator.manual_seed(value)
            self._rng.numpy_generator.bit_generator.state = numpy.random.PCG64(value).state


class ThreadInfo(torch_worker.WorkerInfo):
    """With generators that know when they are asked for."""

    def __init__(self, generators: OwnGenerators, **facts: Any) -> None:
        object.__setattr__(self, "_generators", generators)
        super().__init__(**facts, worker_method="thread")

    @property
    def rng(self) -> Any:
        return self._generators.rng  # type: ignore[attr-defined]

    @rng.setter
    def rng(self, _: Any) -> None:
        """What torch sets it to by default."""


class ThreadWorker(Loop):
    """Owns its generators; the job's objects are the trainer's own."""

    def __init__(self, job: Job, post: Post, line: Line, logbook: Logbook, baton: Baton | None) -> None:
        self._line, self._generators = line, OwnGenerators()
        self._hand = None if baton is None else Hand(baton)
        super().__init__(job, post, logbook, self._generators)
        self._collate = job.collate_fn
        if job.collate_fn is default_collate and are_apart(job.collate_types):
            new_tensor = Warm().tensor
            self._mover = Mover(new_tensor, SPACIOUS)
            self._collate = collate_beside(new_tensor, LEAST, self._mover)

    def initialise(self) -> None:
        job, post, generators = self._job, self._post, self._generators
        if post.tells_items:
            self._noticing = Noticing(job, post)
        seed = post.seed + post.seat
        generators.seed(post.seed, post.seat)
        self._introduce(seed)
        if job.worker_init_fn is not None:
            self._logbook.note(Phase.INITIALISING)
            job.worker_init_fn(post.seat)

    def _introduce(self, seed: int) -> None:
        job, post = self._job, self._post
        of_thread.info = ThreadInfo(
            self._generators, id=post.seat, num_workers=post.seats, seed=seed, dataset=job.dataset
        )

    def _load(self, load: Load) -> None:
        hand, line = self._hand, self._line
        if hand is None:
            began = time.perf_counter()
            super()._load(load)
            line.brisk = time.perf_counter() - began < BRISK
            return
        hand.begin()
        try:
            super()._load(load)
        finally:
            seconds = hand.end(more=line.has_more())
        line.brisk = seconds < BRISK

    def leave(self) -> None:
        if self._hand is not None:
            self._hand.pass_on()

    def _say(self, message: Message) -> None:
        self._line.say(message)

    def _next_message(self) -> Message:
        if not self._line.has_more():
            self.leave()  # whoever waits for an answer amid a batch does not keep the others from theirs
        return self._line.next_message()

    def _told(self, error: BaseException) -> BaseException:
        return error

    def _attempt(self, samples: Any) -> None:
        self._collate(samples)

    def _handed_over(self, batch: int, samples: Any) -> Handed:
        return Handed(batch, self._collate(samples))


@of_this_thread()
def work_in_thread(job: Job, post: Post, line: Line, logbook: Logbook, baton: Baton | None) -> None:
    """Entry of a worker thread: returns when told to close."""
    try:
        worker = ThreadWorker(job, post, line, logbook, baton)
        worker.initialise()
    except Exception as error:
        line.say(InitFailed(error))
        return
    try:
        worker.run()
    except BaseException as end:
        logbook.tell_end(end)
        raise
    finally:
        worker.leave()
