"""A loader in a worker of a pool: the loop of any worker, that loads one batch for each call.

For the time of a call the process is a worker of the loader's, as its data set sees it: settings, torch's worker info,
what torch knows how to collate. Afterwards all of that is the pool's again, for the tasks of others.
"""

from __future__ import annotations

import mmap
import pickle
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any, NamedTuple

from torch.utils.data._utils import worker as torch_worker
from torch.utils.data._utils.collate import default_collate_fn_map

from holdfast._transport.codec import Encoded
from holdfast._transport.faults import pack_error
from holdfast._transport.layout import Layout
from holdfast._transport.logbook import SIZE, Entry, Logbook, Phase
from holdfast._transport.messages import Begin, InitFailed, Load, Message, pack, unpack

from . import life
from .collate_types import OURS
from .failing import Failures
from .job import Job
from .seeds import Enclosed
from .settings import Settings, gather, take_over
from .task_worker import Host
from .worker import Worker


class Left(NamedTuple):
    """The user's code was to end the process, which is not the loader's to end: this is what it would have left."""

    status: int
    stack: str
    entry: Entry


class Invitation:
    """What the workers of a pool are sent for a loader: its job. A guest comes of it where it is called."""

    def __init__(self, job: Job, tells_random: bool) -> None:
        self._job, self._tells_random = job, tells_random
        self._guest: Guest | None = None

    def __reduce__(self) -> Any:
        return Invitation, (self._job, self._tells_random)

    def __call__(self, asked: bytes) -> bytes:
        """A packed `Begin` and a packed `Load`; the packed answers to that, or what is `Left`."""
        begin, load = map(unpack, pickle.loads(asked))
        assert isinstance(begin, Begin)
        assert isinstance(load, Load)
        try:
            with _as_worker_of_a_loader(self._job.settings):
                return pickle.dumps(self._answers(begin, load))
        except Exception:
            raise
        except BaseException as end:
            self._guest = None  # the next one begins anew, as a process would
            return pickle.dumps(_left_by(end))

    def _answers(self, begin: Begin, load: Load) -> list[bytes]:
        if self._guest is None:
            host = _host()
            host.logbook.of_guest().note(Phase.UNPACKING)
            try:
                guest = Guest(self._job, host, begin.seed, tells_random=self._tells_random and host.post.seat == 0)
                guest.initialise()
            except Exception as error:
                return [pack(InitFailed(pack_error(error)))]
            self._guest = guest
        return self._guest.answers(begin, load)


class Guest(Worker):
    """Owned by its invitation. Uses the line and arena of the pool's worker, and the second entry of its logbook."""

    def __init__(self, job: Job, host: Host, seed: int, *, tells_random: bool) -> None:
        known = len(OURS)
        post = host.post._replace(seed=seed, tells_random=tells_random)
        super().__init__(job, post, host.logbook.of_guest(), host.line)
        self._failures = Failures(job, self._logbook, pack_error)  # not by a method: a cycle would keep the data set
        self._collating, self._ours = dict(default_collate_fn_map), OURS[known:]
        self._random = nullcontext() if host.seeded else Enclosed(seed)
        self._layouts: dict[int, Layout] = {}
        self._said: list[bytes] = []

    def initialise(self) -> None:
        with self._random:
            super().initialise()

    def answers(self, begin: Begin, load: Load) -> list[bytes]:
        default_collate_fn_map.update(self._collating)
        OURS.extend(self._ours)
        self._said = []
        try:
            with self._random:
                if begin != self._epoch:
                    self._begin(begin)
                self._introduce(begin.seed + self._post.seat)
                self._load(load)
        except BaseException:
            self._abandon()  # the arena is the pool's
            raise
        return self._said

    def _say(self, message: Message) -> None:
        self._said.append(pack(message))

    def _encode(self, value: object) -> Encoded:
        """With its layout each time: answers may overtake each other on their way through the pool."""
        encoded = super()._encode(value)
        if encoded.layout is None:
            return encoded._replace(layout=self._layouts[encoded.number])
        self._layouts[encoded.number] = encoded.layout
        return encoded


@contextmanager
def _as_worker_of_a_loader(settings: Settings) -> Iterator[None]:
    before, collating, known = gather(), dict(default_collate_fn_map), len(OURS)
    if before != settings:
        take_over(settings)
    try:
        yield
    finally:
        torch_worker._worker_info = None
        default_collate_fn_map.clear()
        default_collate_fn_map.update(collating)
        del OURS[known:]
        if before != settings:
            take_over(before)


def _host() -> Host:
    host: Host = life.current().made[Host]
    return host


def _left_by(end: BaseException) -> Left:
    code = end.code if isinstance(end, SystemExit) else 1
    page = Logbook(mmap.mmap(-1, SIZE))
    page.tell_end(end)
    status = code & 0xFF if isinstance(code, int) else int(code is not None)
    return Left(status, page.crash_stack(), _host().logbook.of_guest().read())
