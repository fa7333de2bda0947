"""Which tasks there are, and which calls are not done."""

from __future__ import annotations

from holdfast._transport.faults import twin

from .calls import Call, Task
from .deliveries import Deliveries, Delivery
from .dispatch import Dispatch


class Accounts:
    """Owned by the works, and used under their lock; only ``deliveries`` are handed out without it."""

    def __init__(self, dispatch: Dispatch) -> None:
        self._dispatch = dispatch
        self._number = self._items = 0  # of the next task, and of the next item
        self.tasks: dict[int, Task] = {}
        self.deliveries = Deliveries()
        self.background = 0  # calls that are not done, and that nobody may be waiting for

    def open(self, call: Call) -> None:
        call.base, self._items = self._items, self._items + len(call.items)
        call.kit.users += 1
        self.background += call.background

    def cut(self, call: Call, chunk: int) -> range:
        """Into tasks of so many items: their numbers."""
        number, count = self._number, len(call.items)
        for start in range(0, count, chunk):
            self.tasks[self._number] = Task(self._number, call, start, min(start + chunk, count))
            self._number += 1
        call.tasks = numbers = range(number, self._number)
        return numbers

    def split(self, task: Task) -> range:
        """Into tasks of one item each, in its place: their numbers."""
        self.forget(task)
        first = self._number
        for item in task.todo:
            self.tasks[self._number] = Task(self._number, task.call, item, item + 1)
            self._number += 1
        numbers = range(first, self._number)
        task.call.tasks = [*task.call.tasks, *numbers]
        return numbers

    def settled(self, call: Call, count: int) -> None:
        """So many more of its items have a result, or will never have one."""
        call.left -= count
        if not call.left:
            self.background -= call.background
            self._dispatch.release(call.kit)

    def forget(self, task: Task) -> None:
        """It will not be sent again."""
        del self.tasks[task.number]
        self._dispatch.done(task)

    def fail_all(self, error: BaseException) -> None:
        for task in list(self.tasks.values()):
            self.fail(task, error)

    def fail(self, task: Task, error: BaseException | None) -> None:
        """What is left of it has this error for a result, or none."""
        if error is not None:
            own = twin(error)  # who raises it, hangs a traceback on it
            own.__cause__ = error.__cause__
            errors = dict.fromkeys(task.todo, own)
            self.deliveries.add(Delivery(task.call, task.todo, None, None, errors))
        self.forget(task)
        self.settled(task.call, len(task.todo))
