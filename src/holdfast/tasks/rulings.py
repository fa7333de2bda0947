"""What the judge says of items that failed, entered into the results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from holdfast._engine.docket import Whose
from holdfast._transport.arena import ArenaView
from holdfast._transport.messages import Did

from .accounts import Accounts
from .calls import Task
from .deliveries import Delivery
from .judge import Ruling, TaskJudge


class Rulings:
    """Owned by the works, and used under their lock."""

    def __init__(self, judge: TaskJudge, accounts: Accounts) -> None:
        self._judge, self._accounts = judge, accounts

    def deliver(
        self, task: Task, items: Sequence[int], message: Did, arena: ArenaView, whose: Whose
    ) -> tuple[list[int], float]:
        """Results among which there are errors: which items are tried again, and after how long."""
        errors: dict[int, BaseException | None] = {}
        instead: dict[int, Any] = {}
        pause = 0.0
        for item, packed in message.errors:
            ruling = self._judge.raised(task.call, item, packed, whose)
            ruling.enter(item, errors, instead)
            pause = max(pause, ruling.after or 0.0)
        self._accounts.deliveries.add(Delivery(task.call, items, message.packed, arena, errors, instead))
        return [item for item, error in errors.items() if error is None], pause

    def settle(self, task: Task, item: int, ruling: Ruling) -> None:
        """One that has no result because its worker is gone."""
        if ruling.after is not None:
            return
        errors: dict[int, BaseException | None] = {}
        instead: dict[int, Any] = {}
        ruling.enter(item, errors, instead)
        task.take_out([item])
        self._accounts.deliveries.add(Delivery(task.call, [item], None, None, errors, instead))
        self._accounts.settled(task.call, 1)
