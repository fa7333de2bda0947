"""Do the walks of a pool have teeth? Each bug here is planted in a copy of its machine, and a walk must find it."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import pytest

from holdfast._core import task_paces, task_seats, tasks
from holdfast.testing import BrokenPromise, task_walk, task_world

SOURCES = {module: Path(module.__file__).read_text() for module in (task_paces, task_seats, tasks)}
WALKS = 200

# what it is: (the text, the text with the bug)
BUGS = {
    # Deaths
    "what a dead worker had not begun is forgotten": (
        "                self._put_first(task, kind)\n            elif",
        "                pass\n            elif",
    ),
    "what a dead worker had not begun goes to the end": ("        self.queue.move_to_end(task, last=False)\n", ""),
    "what a dead worker had not begun is turned round": (
        "task, kind = seat.held.popitem()",
        "task = next(iter(seat.held))\n            kind = seat.held.pop(task)",
    ),
    "a task that killed is run again unasked": (
        "elif event.again_at is not None:",
        "else:\n                event.again_at = event.again_at or self.now",
    ),
    "a task that killed is not tried again": (
        "                insort(self.later, (event.again_at, task, kind))\n\n",
        "                pass\n\n",
    ),
    "a word of the dead is taken": (
        "if who.life != seat.life or task not in held:",
        "if task not in held:",
    ),
    "a dead worker is taken for the living": ("        self.life += 1\n", ""),
    "the exit of an old life counts": (
        "if event.who.life != seat.life or seat.phase is Phase.EMPTY:",
        "if seat.phase is Phase.EMPTY:",
    ),
    "an old life gets ready": ("if who.life == seat.life and seat.phase is", "if seat.phase is"),
    "the dead are sent tasks": ("        self.able.pop(seat, None)\n        seat.vacate()", "        seat.vacate()"),
    "the dead are thought to have tasks": (
        "return who.life == seat.life and task in seat.held",
        "return task in seat.held or who.life != seat.life",
    ),
    "a death is not counted": ("            self.restarts += 1\n", ""),
    "one who was let go counts as dead": ("if phase is not Phase.RETIRING:", "if True:"),
    "no pause": ("seat.start_at = self.now + pause(seat.deaths)", "seat.start_at = self.now"),
    "a pause that does not end": (
        "seat.phase is Phase.EMPTY and seat.start_at <= self.now",
        "seat.phase is Phase.EMPTY and seat.start_at < self.now",
    ),
    "a task that is done does not end the pauses": ("        seat.deaths = 0\n", ""),
    "a task with an error for a result makes a seat pause": ("0 if task_is_done else seat.deaths", "seat.deaths"),
    "a task that it did not have counts as done": ("event.running in seat.held and", "event.running is not None and"),
    # Giving up
    "a crash loop goes on": (">= self.limits.deaths_in_a_row", "> self.limits.deaths_in_a_row"),
    "one that gets ready does not end the row": ("seat.phase, self.row = Phase.READY, 0", "seat.phase = Phase.READY"),
    "every death is one of the row": (
        "if phase is Phase.STARTING:\n            self.row",
        "if True:\n            self.row",
    ),
    "it gives up and goes on": ("self.over = True\n                commands.append(GiveUp", "commands.append(GiveUp"),
    # Trying again
    "what failed is forgotten": ("insort(self.later, (event.again_at, event.task, kind))", "pass"),
    "what failed is tried again too soon": (
        "for entry in self.later if entry[0] <= self.now]",
        "for entry in self.later]",
    ),
    "what failed is tried again too late": (
        "self.later and self.later[0][0] <= self.now",
        "self.later and self.later[0][0] < self.now",
    ),
    "nobody wakes to try again": ("due = self.later[0][0] if self.later else math.inf", "due = math.inf"),
    "what is due is turned round": ("in reversed(due)", "in due"),
    # Withdrawing
    "what was withdrawn is run": ("self.queue.pop(task, None) is None", "self.queue.get(task) is None"),
    "what was withdrawn is tried again": ("            self.later = left\n", ""),
    "what somebody runs is forgotten": ("            if len(left) == len(self.later):\n                return\n", ""),
    "what was withdrawn is not forgotten": ("        commands.append(Forget(task))\n", ""),
    # Who gets what
    "one too many behind a task": ("or waiting > ahead.get", "or waiting - 1 > ahead.get"),
    "a slow task is put behind a short one": (
        " or waiting > ahead.get(queue[next(iter(queue))], 0):",
        ":",
    ),
    "a short task is put behind a slow one": (
        "return waiting <= ahead.get(held[next(iter(held))], 0)",
        "return True",
    ),
    "no end of tasks behind a short one": ("if pace.observed < MOST_AHEAD else MOST_AHEAD", ""),
    "the first task is taken for an example": ("most = pace.observed if pace.observed < MOST_AHEAD else", "most ="),
    "one that was not sent is taken for an example": ("if kind is None or event.seconds <= 0.0:", "if kind is None:"),
    "too much behind a task": (
        "int(AHEAD / pace.typical) if pace.typical",
        "1 + int(AHEAD / pace.typical) if pace.typical",
    ),
    "nobody is known to leave": ("return who.life == seat.life and seat.phase is Phase.RETIRING", "return False"),
    "nothing behind a short task": (
        "            self.able[seat] = None\n        elif",
        "            pass\n        elif",
    ),
    "others have no part in what is short": ("(seat, None) for seat in self.seats if seat.held", ""),
    "the busy come before the idle": ("        self.able.move_to_end(seat, last=False)\n", ""),
    "one gets everything": ("            able.move_to_end(seat)  # the next one is for somebody else\n", ""),
    "one that fails is idle": (
        "        elif seat.taken < self.lifetime:\n            self._becomes_free(seat)\n",
        "        elif seat.taken < self.lifetime:\n            pass\n",
    ),
    # Taking back
    "what waits behind a long task stays there": ("if self.look_at <= self.now and not self.queue:", "if False:"),
    "nobody wakes to take back": ("            due = min(due, self._recall_at())\n", "            pass\n"),
    "it wakes too often": ("if self.look_at < math.inf and not self.queue:", "if self.look_at < math.inf:"),
    "it wakes to take back though nobody is free": (
        "max(self._free_at(), min(",
        "max(-math.inf, min(",
    ),
    "taken back though nobody is free": ("        if self._free_at() > self.now:\n            return\n", ""),
    "taken back though others wait as well": (
        "if self.look_at <= self.now and not self.queue:",
        "if self.look_at <= self.now:",
    ),
    "taken back from those who are not late": ("if seat.long_at <= self.now:", "if True:"),
    "taken back too late": ("if seat.long_at <= self.now:", "if seat.long_at < self.now:"),
    "taken back from those who have nothing to give": ("len(seat.held) > 1 and", "seat.held and"),
    "taken back from one of two": (
        "commands.append(Recall(seat.who))",
        "commands.append(Recall(seat.who))\n                break",
    ),
    "taken back again and again": (" and not seat.recalled]", "]"),
    "those that are not late yet are not looked at again": (
        "                self.look_at = min(self.look_at, seat.long_at)\n\n    def _recall_at",
        "                pass\n\n    def _recall_at",
    ),
    "taken back once, and never more": (
        "                seat.recalled = False\n                self.look_at",
        "                self.look_at",
    ),
    "after it gave back nobody looks at it again": (
        "                self.look_at = min(self.look_at, seat.long_at)\n        kind",
        "        kind",
    ),
    "a new life is thought to have been asked": ("= Phase.EMPTY, 0, False", "= Phase.EMPTY, 0, self.recalled"),
    "who had begun nothing is thought to be at work": (
        "            seat.recalled = False\n            self._becomes_free(seat)\n",
        "            pass\n",
    ),
    "who had begun nothing has still been asked": (
        "            seat.recalled = False\n            self._becomes_free(seat)\n",
        "            self._becomes_free(seat)\n",
    ),
    "more is put behind a long task": ("if seat.recalled or seat.taken", "if seat.taken"),
    "what is given back is forgotten": ("self._put_first(task, seat.held.pop(task))", "seat.held.pop(task)"),
    "what is given back is held as well": ("seat.held.pop(task))", "seat.held[task])"),
    "what is given back is turned round": ("in reversed(event.tasks)", "in event.tasks"),
    "what is given back goes to the end": (
        "self._put_first(task, seat.held.pop(task))",
        "self.queue[task] = seat.held.pop(task)",
    ),
    "what is given back counts as done": ("                seat.taken -= 1\n", ""),
    "the dead give back": ("if event.who.life != seat.life or not seat.held:", "if not seat.held:"),
    "who gave back has no room any more": (
        "        if seat.held:\n            self.able[seat] = None\n        else:  # it",
        "        if not seat.held:  # it",
    ),
    "a task that was not sent is the end of the one in front": ("if task == next(iter(held)):", "if True:"),
    "a task is as old as the one before it": (
        "            seat.long_at = self.now + PATIENCE\n            if",
        "            if",
    ),
    "a task is as old as the last of this worker": (
        "                seat.long_at = self.now + PATIENCE\n            elif",
        "                pass\n            elif",
    ),
    "a task behind a long one is not looked at": (
        "            elif seat.long_at < self.look_at:\n                self.look_at = seat.long_at\n",
        "",
    ),
    "an empty seat is nobody": ("is Phase.EMPTY] if self.vacant else []", "is Phase.EMPTY] if False else []"),
    "an empty seat that pauses is somebody": (
        "return min((seat.start_at for seat in empty), default=math.inf)",
        "return -math.inf if empty else math.inf",
    ),
    # Starting
    "somebody is started though others are on their way": (
        "len(self.queue) - sum(seat.phase is Phase.STARTING for seat in self.seats)",
        "len(self.queue)",
    ),
    "everybody is started unasked": (
        "        if self.eager:\n            return",
        "        if True:\n            return",
    ),
    "nobody is started before there is work": ("self.eager = not self.draining", "pass"),
    "everybody is kept until the end": ("self.draining, self.eager = True, False", "self.draining = True"),
    "everybody is started at the end": ("self.eager = not self.draining", "self.eager = True"),
    "somebody is started in a seat that is taken": ("seat.phase is Phase.EMPTY and seat.start_at", "seat.start_at"),
    "seats are taken for vacant": ("                self.vacant -= 1\n", ""),
    "nobody wakes to start a worker": ("if self.vacant else due", "if False else due"),
    "we wait for a worker that nobody needs": (" if self._wanted() > 0 else []", ""),
    # Letting go
    "a worker is used beyond its time": (" or seat.taken >= self.lifetime or", " or"),
    "a worker stays beyond its time": ("elif seat.taken < self.lifetime:", "elif True:"),
    "a new life is as old as the last": ("= Phase.EMPTY, 0, False", "= Phase.EMPTY, self.taken, False"),
    "one who was let go is sent tasks": ("Phase.RETIRING\n        self.able.pop(seat, None)\n", "Phase.RETIRING\n"),
    "no end": ("if self.draining and not self._has_tasks():", "if False:"),
    "the end comes before the last task": (" or any(seat.held for seat in self.seats)", ""),
    "the end comes before what is to be tried again": ("bool(self.queue or self.later)", "bool(self.queue)"),
    "the end comes before the last worker is gone": ("if self.vacant == len(self.seats):", "if True:"),
    "those who start are kept": ("in (Phase.READY, Phase.STARTING)", "is Phase.READY"),
    "somebody is let go twice": ("in (Phase.READY, Phase.STARTING)", "is not Phase.EMPTY"),
    "the end is told again and again": (
        "self.over = True\n            commands.append(AllDone",
        "commands.append(AllDone",
    ),
}


@pytest.fixture(autouse=True)
def leaves_nothing():
    """There is nothing but values here that could be left, and to look for more takes longer than to find a bug."""


def a_copy(name: str, text: str) -> ModuleType:
    module = ModuleType(f"holdfast._core.{name}_with_a_bug")
    module.__package__ = "holdfast._core"
    sys.modules[module.__name__] = module  # where dataclasses look
    exec(compile(text, f"{name}_with_a_bug.py", "exec"), module.__dict__)
    return module


def a_machine(texts: dict[ModuleType, str]) -> type:
    """The class, of copies of the modules that it consists of."""
    copies = {module: a_copy(module.__name__.rpartition(".")[2], text) for module, text in texts.items()}
    machine = copies[tasks]
    vars(machine).update(TaskPaces=copies[task_paces].TaskPaces, TaskSeat=copies[task_seats].TaskSeat)
    return machine.TaskMachine


@pytest.fixture
def live(monkeypatch: pytest.MonkeyPatch):
    def live(texts: dict[ModuleType, str]) -> None:
        monkeypatch.setattr(task_world, "TaskMachine", a_machine(texts))
        for seed in range(WALKS):
            task_walk(seed)

    yield live
    for name in [name for name in sys.modules if name.endswith("_with_a_bug")]:
        del sys.modules[name]


@pytest.mark.parametrize("bug", BUGS)
def test_a_planted_bug_is_caught(bug: str, live):
    right, wrong = BUGS[bug]
    times = sum(text.count(right) for text in SOURCES.values())
    assert times == 1, f"{bug}: the text to replace occurs {times} times"
    with pytest.raises(BrokenPromise):
        live({module: text.replace(right, wrong) for module, text in SOURCES.items()})


def test_the_machine_without_a_bug_passes_the_same_walks(live):
    live(SOURCES)
