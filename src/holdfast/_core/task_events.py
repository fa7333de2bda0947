"""What can happen to a pool, and what its machine can decide, as plain values.

A *task* is what one worker is sent at a time: a call, or some calls of a map. Its number says nothing about what is in
it; the engine knows that. Not frozen, as the loader's are not.
"""

from __future__ import annotations

from dataclasses import dataclass

from .events import Ticked, Worker, WorkerReady


@dataclass(slots=True)
class Submitted:
    """There is a new task. Tasks of one ``kind`` take about as long."""

    task: int
    kind: int


@dataclass(slots=True)
class Withdrawn:
    """Nobody wants this task any more: answered by ``Forget`` if it has not been sent."""

    task: int


@dataclass(slots=True)
class TaskEnded:
    """The worker has done with it, well or not, after ``seconds`` of its own time."""

    who: Worker
    task: int
    seconds: float


@dataclass(slots=True)
class TaskFailed:
    """It failed in the worker, which goes on; it is to be tried again, not before ``again_at``."""

    who: Worker
    task: int
    again_at: float


@dataclass(slots=True)
class LifeEnded:
    """The process is gone. ``running`` is the task that it had begun; it is tried again at ``again_at``, or has an
    error for a result (None)."""

    who: Worker
    running: int | None = None
    again_at: float | None = None


@dataclass(slots=True)
class Recalled:
    """The answer to ``Recall``: what the worker will not do, in the order in which it was sent. None, if it had begun
    all of it meanwhile."""

    who: Worker
    tasks: tuple[int, ...]


@dataclass(slots=True)
class Opened:
    """Work is on its way: have everybody started."""


@dataclass(slots=True)
class Drained:
    """No more tasks will come. When all are done the workers may go."""


TaskEvent = (
    Submitted | Withdrawn | WorkerReady | TaskEnded | TaskFailed | Recalled | LifeEnded | Opened | Drained | Ticked
)


@dataclass(slots=True)
class Launch:
    """Start a process."""

    who: Worker


@dataclass(slots=True)
class Hand:
    """Send this worker a task. It does what it is sent in the order in which it was."""

    who: Worker
    task: int


@dataclass(slots=True)
class Recall:
    """Take back from this worker what it has not begun, and say so with ``Recalled``."""

    who: Worker


@dataclass(slots=True)
class Forget:
    """The task was withdrawn in time."""

    task: int


@dataclass(slots=True)
class Dismiss:
    """Tell the worker to end when it has done what it holds."""

    who: Worker


@dataclass(slots=True)
class GiveUp:
    """That many processes in a row ended before they were ready: the pool can do nothing, for any of its tasks."""

    deaths: int


@dataclass(slots=True)
class AllDone:
    """After ``Drained``: every task is done and every worker gone."""


TaskCommand = Launch | Hand | Recall | Forget | Dismiss | GiveUp | AllDone
