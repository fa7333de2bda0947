"""Tasks that are taken back from a worker that has not begun them.

They are in its pipe, or in its memory, where nobody else can reach them. But worker and parent share two words: the
worker writes down which of its tasks it is about to begin, and then looks whether that was recalled; the parent writes
down what is recalled, and then looks what was begun. Each writes before it looks, so at least one of them sees the
other; where both do, the worker has passed it over, and says so.
"""

from __future__ import annotations

from holdfast._core.events import Worker
from holdfast._engine.roster import Roster
from holdfast._system.fence import fence
from holdfast._transport.logbook import BEGUN, RECALLED


class Recalls:
    """Owned by the dispatch. ``number`` what is sent; the worker counts in the same way."""

    def __init__(self, roster: Roster) -> None:
        self._roster = roster
        self._last: dict[Worker, int] = {}
        self._sent: dict[Worker, dict[int, int]] = {}  # task -> its number among those of this life
        self._taken: set[tuple[Worker, int]] = set()  # numbers that were recalled, and are not yet passed over

    def number(self, who: Worker, task: int) -> int:
        self._last[who] = number = self._last.get(who, 0) + 1
        self._sent.setdefault(who, {})[task] = number
        return number

    def ended(self, who: Worker, task: int) -> None:
        self._sent[who].pop(task, None)

    def recall(self, who: Worker) -> tuple[int, ...]:
        """What it will not begin any more, in order."""
        numbers, sent = self._roster[who].logbook.numbers, self._sent.get(who, {})
        while True:
            begun = numbers[BEGUN]
            numbers[RECALLED] = begun + 1
            numbers[RECALLED + 1] = self._last.get(who, 0) + 1
            fence()
            if numbers[BEGUN] == begun:
                break
        tasks = tuple(task for task, number in sent.items() if number > begun)
        for task in tasks:
            self._taken.add((who, sent.pop(task)))
        return tasks

    def passed_over(self, who: Worker, task: int, number: int) -> bool:
        """The worker says so. True when that is news: we had seen it begin."""
        if (who, number) in self._taken:
            self._taken.remove((who, number))
            return False
        self.ended(who, task)
        return True

    def gone(self, who: Worker) -> None:
        self._last.pop(who, None)
        self._sent.pop(who, None)
        self._taken = {taken for taken in self._taken if taken[0] != who}
