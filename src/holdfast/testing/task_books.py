"""What is really so in a pool's simulated world, as opposed to what the machine believes."""

from __future__ import annotations

from .._core.events import Worker
from .._core.task_events import AllDone, Dismiss, Forget, GiveUp, Hand, Launch, Recall, Recalled, TaskCommand
from .._core.tasks import TaskLimits


class TaskBooks:
    def __init__(self, limits: TaskLimits) -> None:
        self.limits, self.now = limits, 0.0
        # Processes
        self.starting: list[Worker] = []
        self.alive: list[Worker] = []
        self.dismissed: list[Worker] = []  # of both
        self.inbox: dict[Worker, list[int]] = {}  # with what it gave back, until that is heard
        self.asked: list[Worker] = []  # to give back what they have not begun
        self.answers: list[Recalled] = []  # not yet heard; those of the dead too
        self.has_answered: set[Worker] = set()  # since it ended a task
        self.taken: dict[Worker, int] = {}  # tasks that each life was sent
        self.dead: list[Worker] = []
        self.last_words: list[tuple[Worker, int]] = []  # on their way when their worker died
        # Tasks
        self.kind_of: list[int] = []  # of all there ever were: a task's number is its place
        self.line: list[int] = []  # with nobody, in the order in which they are to be sent
        self.later: dict[int, float] = {}  # to be tried again, and when
        self.withdrawn: int | None = None  # by the present event, and not yet forgotten
        self.opened = self.drained = self.over = False

    def process_in(self, seat: int) -> Worker | None:
        return next((who for who in self.starting + self.alive if who.seat == seat), None)

    def busy(self) -> list[Worker]:
        return [who for who in self.alive if self.inbox[who]]

    def at_hand(self, who: Worker) -> list[int]:
        """What it does, and then."""
        gone = {task for answer in self.answers if answer.who == who for task in answer.tasks}
        return [task for task in self.inbox[who] if task not in gone]

    def working(self) -> list[Worker]:
        return [who for who in self.busy() if self.at_hand(who)]

    def is_spent(self, who: Worker) -> bool:
        return self.limits.recycle_after is not None and self.taken[who] >= self.limits.recycle_after

    def outstanding(self) -> bool:
        return bool(self.line or self.later or self.busy())

    def carry_out(self, command: TaskCommand) -> None:
        match command:
            case Launch(who):
                self.starting.append(who)
                self.inbox[who], self.taken[who] = [], 0
            case Hand(who, task):
                self.line.remove(task)
                self.inbox[who].append(task)
                self.taken[who] += 1
            case Recall(who):
                self.asked.append(who)
            case Forget():
                self.withdrawn = None
            case Dismiss(who):
                self.dismissed.append(who)
            case GiveUp() | AllDone():
                self.over = True
