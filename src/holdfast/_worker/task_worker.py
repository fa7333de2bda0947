"""A worker of a pool: tasks in, results out."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from holdfast._system.fence import fence
from holdfast._system.interrupting import on_interrupt
from holdfast._system.segments import Segment
from holdfast._transport.channel import Channel
from holdfast._transport.logbook import BEGUN, RECALLED, Logbook, Phase
from holdfast._transport.messages import Close, Drop, Extended, Kit, PassedOver, Ready, Task
from holdfast._transport.parcels import Packed

from . import life
from .calling import Calls, Tool
from .inlet import Inlet
from .job import Post
from .line import Line
from .seeding import seed_all
from .settings import Settings, take_over


class Host(NamedTuple):
    """What a guest finds in a worker of a pool: a function that was sent there and is more than a function."""

    post: Post
    logbook: Logbook
    line: Line
    seeded: bool


RECIPES = 32  # resources that a worker keeps at a time


@dataclass(slots=True)
class TaskJob:
    """What the workers of a pool are handed when they start."""

    initializer: Callable[..., object] | None
    initargs: tuple[Any, ...]
    seats: int
    settings: Settings
    inlet: Inlet
    seeded: bool  # each call has random numbers of its own
    authkey: bytes  # of multiprocessing, for what a manager of the parent's holds
    modules: ClassVar[tuple[str, ...]] = ()  # torch, if its functions need it: see `tasks/opening.py`
    parts: ClassVar[tuple[str, ...]] = ("initializer", "initargs")

    def worker(
        self, post: Post, channel: Channel, logbook: Logbook, segment: Segment, heard: Iterable[bytes]
    ) -> TaskWorker:
        from . import debugger  # late: the parent, too, has to know what a job is, and needs no pdb

        line = Line(channel, segment, post.arena_limit, heard)
        debugger.install(post.seat, line, logbook, logbook.of_guest())
        return TaskWorker(self, post, logbook, line)


class TaskWorker:
    """Owns its line and what it was sent to work with."""

    def __init__(self, job: TaskJob, post: Post, logbook: Logbook, line: Line) -> None:
        self._job, self._post, self._logbook, self._line = job, post, logbook, line
        self._tools: dict[int, Tool | Packed] = {}  # kits, packed until they are used
        self._recipes: dict[int, Any] = {}
        self._calls = Calls(logbook, line, job.inlet, post.seed if job.seeded else None)

    def initialise(self) -> None:
        job, post = self._job, self._post
        take_over(job.settings)
        multiprocessing.current_process().authkey = job.authkey
        seed_all(post.seed + post.seat)
        on_interrupt(self._calls.interrupted)
        life.current().made[Host] = Host(post, self._logbook, self._line, job.seeded)
        if job.initializer is not None:
            self._logbook.note(Phase.PREPARING)
            job.initializer(*job.initargs)

    def run(self) -> None:
        self._line.say(Ready())
        self._logbook.note(Phase.IDLE)
        while True:
            match message := self._line.hear():
                case Task():
                    self._work(message)
                case Kit():
                    self._tools[message.kit] = message.packed
                case Drop():
                    del self._tools[message.kit]
                case Extended():
                    self._job.inlet.extended(message.base, message.size)
                case Close():
                    return
                case _:
                    raise AssertionError(f"a pool does not send {message}")

    def _work(self, task: Task) -> None:
        self._line.give_back(task.freed)
        if self._was_recalled(task.turn):
            self._job.inlet.refuse(task.packed)
            self._line.say(PassedOver(task.task, task.turn, self._job.inlet.returned()))
            return
        self._logbook.note(Phase.RUNNING, task.task, task.todo[0] if task.timed else -1)
        self._calls.make(task, lambda: self._tool(task.kit))
        self._logbook.note_done()

    def _was_recalled(self, turn: int) -> bool:
        numbers = self._logbook.numbers
        numbers[BEGUN] = turn
        fence()
        return bool(numbers[RECALLED] <= turn < numbers[RECALLED + 1])

    def _tool(self, number: int) -> Tool:
        found = self._tools[number]
        if not isinstance(found, Tool):
            function, shape, numbered = self._job.inlet.unwrap(found, private=True)
            found = self._tools[number] = Tool(function, shape, self._resource(numbered))
        return found

    def _resource(self, numbered: tuple[int, Any] | None) -> Any:
        """The one that is known by this number. Old ones that nobody asks for any more are let go of, and closed."""
        if numbered is None:
            return None
        number, recipe = numbered
        for old in [old for old in self._recipes if old <= number - RECIPES]:
            del self._recipes[old]
        return self._recipes.setdefault(number, recipe)
