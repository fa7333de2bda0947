"""What a worker is doing now, in a few bytes of shared memory that can be read after its death.

The worker writes, the trainer reads; there is no lock, because it is read in earnest only when the writer has stopped.
The rest of the segment takes the Python stack that ``faulthandler`` writes when the worker crashes.
"""

from __future__ import annotations

import enum
import mmap
import struct
import traceback
from dataclasses import dataclass
from time import monotonic
from typing import Any, Literal

SIZE = 1 << 16
STACK = 4096  # where the crash stack begins
GUEST = 512, 576  # where a second entry lies, in a worker of a pool: of the loader that it loads a batch for

_ENTRY = struct.Struct("=qqqd")
PHASE, BATCH, SAMPLE, SINCE = range(4)  # places among the entry's numbers of 8 bytes
MEMORY = 4  # the place behind the entry: bytes of memory that the worker uses, by its own account
OVERDUE = 5  # the trainer's, two places: the task and the call that are to be interrupted
BEGUN = 7  # which of the tasks that this worker was sent, by their order, it has begun
RECALLED = 8  # the trainer's, two places: from which on, and up to which, they are not to be begun


class Phase(enum.IntEnum):
    STARTING = 0
    IDLE = 1
    FETCHING = 2
    COLLATING = 3
    SENDING = 4
    REPLAYING = 5
    UNPACKING = 6  # the job
    INITIALISING = 7  # in worker_init_fn
    RUNNING = 8  # a task of a pool: ``batch`` is its number, ``sample`` which of its calls
    PREPARING = 9  # in the initializer of a pool
    RETURNING = 10  # results of a task


@dataclass(frozen=True, slots=True)
class Entry:
    """One reading. ``sample`` is the position in the batch, -1 when the batch is fetched as a whole."""

    phase: Phase
    batch: int
    sample: int
    since: float

    @property
    def loading(self) -> bool:
        return self.phase in (Phase.FETCHING, Phase.COLLATING, Phase.SENDING, Phase.REPLAYING)

    def words(self, indices: Any = None) -> str:
        """What it says, for a sentence: "fetching sample 7 of batch 3". With ``indices``, those of the batch, the
        sample goes by its index in the data set.
        """
        return _WORDS[self.phase].format(what=self._what(indices))

    def _what(self, indices: Any) -> str:
        if self.phase is not Phase.FETCHING or self.sample < 0:
            return f"batch {self.batch}"
        try:
            sample = indices[self.sample]
        except (TypeError, LookupError):
            sample = self.sample
        return f"sample {sample} of batch {self.batch}"


_WORDS = {
    Phase.STARTING: "starting",
    Phase.IDLE: "idle",
    Phase.FETCHING: "fetching {what}",
    Phase.COLLATING: "collating {what}",
    Phase.SENDING: "sending {what}",
    Phase.REPLAYING: "replaying {what}",
    Phase.UNPACKING: "unpacking the data set",
    Phase.INITIALISING: "running worker_init_fn",
    Phase.PREPARING: "running the initializer",
    Phase.RUNNING: "running its task",
    Phase.RETURNING: "sending results",
}


_IDLE, _FETCHING, _COLLATING, _SENDING = map(int, (Phase.IDLE, Phase.FETCHING, Phase.COLLATING, Phase.SENDING))


class Logbook:
    """Owned by both sides, each with its own mapping."""

    __slots__ = ("_batch", "_map", "_phase", "numbers", "place", "since")

    def __init__(self, mapping: mmap.mmap | memoryview) -> None:
        self._map = mapping
        self.numbers: Any = memoryview(mapping).cast("q")
        # The entry, number by number: `place[()] = 7` takes the fewest steps from Python to memory.
        self._phase, self._batch, self.place = (_number(mapping, at, "q") for at in (PHASE, BATCH, SAMPLE))
        self.since = _number(mapping, SINCE, "d")

    def revoke(self) -> None:
        """The next note is an error for whoever makes it; readers see what was noted before."""
        for view in (self.place, self._phase, self.numbers):
            view.release()

    def of_guest(self) -> Logbook:
        """The second entry, as a logbook of its own that has no room for a stack."""
        return Logbook(memoryview(self._map)[slice(*GUEST)])

    def note(self, phase: Phase, batch: int = -1, sample: int = -1) -> None:
        _ENTRY.pack_into(self._map, 0, phase, batch, sample, monotonic())

    # Four for every batch, written as they are because each microsecond counts there.

    def note_fetching(self, batch: int) -> None:
        self._batch[()], self.place[()], self.since[()], self._phase[()] = batch, -1, monotonic(), _FETCHING

    def note_collating(self) -> None:
        """What was fetched."""
        self.place[()], self.since[()], self._phase[()] = -1, monotonic(), _COLLATING

    def note_sending(self) -> None:
        """What was collated."""
        self.since[()], self._phase[()] = monotonic(), _SENDING

    def note_done(self) -> None:
        """And sent, which takes no time: it is idle since then."""
        self._phase[()] = _IDLE

    def read(self) -> Entry:
        phase, batch, sample, since = _ENTRY.unpack_from(self._map, 0)
        return Entry(Phase(phase), batch, sample, since)

    @property
    def memory(self) -> int:
        """What the worker last noted at ``numbers[MEMORY]``; 0 when it never did."""
        return int(self.numbers[MEMORY])

    def tell_end(self, end: BaseException) -> None:
        """An exception that ends the worker, written as ``faulthandler`` writes a crash."""
        frames = reversed(traceback.extract_tb(end.__traceback__))
        lines = [traceback.format_exception_only(type(end), end)[-1].strip(), ""]
        lines += [f'  File "{frame.filename}", line {frame.lineno} in {frame.name}' for frame in frames]
        text = "\n".join(lines).encode("utf-8", "replace")[: SIZE - STACK]
        self._map[STACK : STACK + len(text)] = text

    def crash_stack(self) -> str:
        """The Python stack at the moment of its end, innermost call first; empty when it was killed from outside."""
        text = bytes(self._map[STACK:]).split(b"\0", 1)[0]
        return text.decode("utf-8", "replace").strip()


def _number(mapping: mmap.mmap | memoryview, at: int, kind: Literal["q", "d"]) -> Any:
    """One number of 8 bytes, as a view without dimensions."""
    return memoryview(mapping)[8 * at : 8 * at + 8].cast(kind, shape=())
