"""The calls of one task: made one after the other, with their random numbers, their errors and their time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice
from time import monotonic
from typing import Any

from holdfast._core.mixing import mix
from holdfast._transport.arena import ArenaFull
from holdfast._transport.culprit import find_culprit
from holdfast._transport.faults import pack_error
from holdfast._transport.logbook import OVERDUE, Logbook, Phase
from holdfast._transport.messages import Did, Task, in_full, shortened
from holdfast._transport.parcels import Packed, wrap
from holdfast.errors import CannotSend, SharedMemoryFull, TaskExited

from .drawing import cannot_draw
from .inlet import Inlet
from .life import unwrap
from .line import Line
from .seeding import seed_all

FLUSH = 0.005  # seconds after which results are handed over although there is more to do
BLOCK = 0.0005  # seconds that short calls may take together before the next note in the logbook


class Overdue(BaseException):
    """Raised inside of a call that takes too long: no ``except Exception`` catches it."""


class Tool:
    """A function, how it is called with an item (`Call.shape`), and what it is given in front of that."""

    def __init__(self, function: Callable[..., Any], shape: str, resource: Any) -> None:
        self.shape, self.may_draw = shape, resource is not None or not cannot_draw(function)
        self._function, self._resource = function, resource
        self._call: Callable[[Any], Any] | None = None

    def call(self) -> Callable[[Any], Any]:
        """The function of one item. The first time, its resource is made."""
        if self._call is None:
            function = self._function if self._resource is None else _with(self._function, unwrap(self._resource))
            self._call = {"map": _itself, "star": _starred, "call": _called}[self.shape](function)
        return self._call


def _with(function: Callable[..., Any], resource: Any) -> Callable[..., Any]:
    return lambda *args, **kwargs: function(resource, *args, **kwargs)


def _itself(function: Callable[..., Any]) -> Callable[[Any], Any]:
    return function


def _starred(function: Callable[..., Any]) -> Callable[[Any], Any]:
    return lambda item: function(*item)


def _called(function: Callable[..., Any]) -> Callable[[Any], Any]:
    return lambda item: function(*item[0], **item[1])


class Calls:
    """Owned by a worker. Makes the calls of one task at a time and says what came of them."""

    def __init__(self, logbook: Logbook, line: Line, inlet: Inlet, seed: int | None) -> None:
        self._logbook, self._line, self._inlet, self._seed = logbook, line, inlet, seed
        self._running = -1, -1  # the task and the item that may be interrupted now
        self._values: list[Any] = []
        self._errors: list[tuple[int, bytes]] = []
        self._task = Task(-1, 0, -1, b"", 0, [], 0, False, False, False, False, ())
        self._todo: Sequence[int] = ()
        self._done = 0  # how many of its items were handed over
        self._began = self._flushed = 0.0

    def make(self, task: Task, tool: Callable[[], Tool]) -> None:
        self._task, self._todo, self._done = task, in_full(task.todo), 0
        self._began = self._flushed = monotonic()
        found = self._prepared(task, tool)
        if found is not None:
            items, call, seed = found
            del found
            if seed is None and 1 < len(items) == len(self._todo) and not (task.timed or task.alone):
                self._in_blocks(items, call)
            else:
                self._one_by_one(items, call, seed)
            del items, call
        self._hand_over(over=True)

    def interrupted(self) -> None:
        """A signal came. It may be late: meant for a call that has ended meanwhile."""
        task, item = self._running
        if task >= 0 and self._logbook.numbers[OVERDUE] == task and self._logbook.numbers[OVERDUE + 1] == item:
            raise Overdue

    def _prepared(
        self, task: Task, tool: Callable[[], Tool]
    ) -> tuple[list[Any], Callable[[Any], Any], int | None] | None:
        """The items, the function, and the seed if it may draw. None: it failed, and so have all of the calls."""
        try:
            self._running = task.task, self._todo[0]
            found = self._tool(task, tool)
            items = self._inlet.unwrap(task.packed, task.private)
            call = found.call()
            self._running = -1, -1
        except BaseException as error:
            self._running = -1, -1
            told = self._told(error)
            self._errors = [(k, told) for k in self._todo]
            self._values = [None] * len(self._todo)
            return None
        return items, call, self._seed if found.may_draw or not task.plain else None

    def _tool(self, task: Task, tool: Callable[[], Tool]) -> Tool:
        try:
            return tool()
        except BaseException:
            self._inlet.refuse(task.packed)
            raise

    def _one_by_one(self, items: list[Any], call: Callable[[Any], Any], seed: int | None) -> None:
        task, place, since = self._task, self._logbook.place, self._logbook.since
        last = self._todo[-1]
        for k in self._todo:
            place[()] = k
            since[()] = monotonic()
            if seed is not None:
                seed_all(mix(seed, task.base + k))
            try:
                self._running = task.task, k
                value = call(items[k - task.first])
                self._running = -1, -1
            except BaseException as error:
                self._running = -1, -1
                value = None
                self._errors.append((k, self._told(error)))
            items[k - task.first] = None  # its memory may go
            self._values.append(value)
            value = None
            if k != last and (task.alone or monotonic() - self._flushed > FLUSH):
                self._hand_over(over=False)

    def _in_blocks(self, items: list[Any], call: Callable[[Any], Any]) -> None:
        """Short calls that draw no random numbers, at the speed of ``map``: one note for more and more of them."""
        first, place, values = self._task.first, self._logbook.place, self._values
        k, size, count = 0, 1, len(items)
        while k < count:
            place[()] = first + k if size == 1 else -1  # nobody can tell which of them it was
            began, before = monotonic(), len(values)
            try:
                values.extend(map(call, islice(items, k, k + size)))
                k += len(values) - before
            except BaseException as error:
                k += len(values) - before  # those before it are in their places
                values.append(None)
                self._errors.append((first + k, self._told(error)))
                k += 1
            now = monotonic()
            size = size * 2 if now - began < BLOCK else max(1, size // 2)
            if now - self._flushed > FLUSH and k < count:
                self._hand_over(over=False)
                values = self._values

    def _told(self, error: BaseException) -> bytes:
        if isinstance(error, SystemExit):
            exited = TaskExited(error.code)
            return pack_error(exited.with_traceback(error.__traceback__))
        return pack_error(error)

    # -- handing over --------------------------------------------------------------------------

    def _hand_over(self, over: bool) -> None:
        task, values = self._task, self._values
        items = self._todo[self._done : self._done + len(values)]
        self._logbook.note(Phase.RETURNING, task.task, items[0] if len(items) == 1 else -1)
        self._values, self._done = [], self._done + len(values)
        packed = self._wrapped(values, items)
        errors, self._errors = self._errors, []
        del values
        now, freed = monotonic(), self._inlet.returned()
        self._line.say(Did(task.task, shortened(items), packed, errors, over, now - self._began, freed))
        if not over:
            self._flushed = now
            self._logbook.note(Phase.RUNNING, task.task)

    def _wrapped(self, values: list[Any], items: Sequence[int]) -> Packed:
        try:
            return wrap(values, self._line.writer)
        except Exception:
            for place, k in enumerate(items):
                values[place] = self._value_or_none(values[place], k)
            try:
                return wrap(values, self._line.writer)
            except Exception as error:  # each alone would have had room, but not all of them
                failed = {k for k, _ in self._errors}
                self._errors += [(k, _not_sent(error)) for k in items if k not in failed]
                return wrap([None] * len(values), self._line.writer)

    def _value_or_none(self, value: Any, k: int) -> Any:
        """The value, if it can be sent; None, and the error that says why not."""
        try:
            wrap(value, self._line.writer)
            return value
        except Exception as error:
            culprit = None if isinstance(error, ArenaFull) else find_culprit(value, "result")
            self._errors.append((k, _not_sent(error, culprit)))
            return None
        finally:
            self._line.writer.abandon()


def _not_sent(error: Exception, culprit: tuple[str, str, str] | None = None) -> bytes:
    if isinstance(error, ArenaFull):
        return pack_error(SharedMemoryFull(error.wanted, error.held, error.limit, error.reason))
    if culprit is None or "requires_grad" in str(error):
        return pack_error(error)
    refusal = CannotSend(*culprit)
    refusal.__cause__ = error
    return pack_error(refusal)
