"""A batch that met a fault: what it was to be, what became of its samples, and what is to be loaded now."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from holdfast._core.refill import Refill
from holdfast._transport.messages import Plan
from holdfast.fault import Fault
from holdfast.ledger import hashable
from holdfast.policies import Answer, Leave, Put, Repeat


class Case:
    """``indices`` as they were drawn. A place is a position among them; ``gone`` says what happened to it.

    What is to be loaded is worked out anew from both whenever something changes, never patched: so it is the same
    whether faults were met one by one, all at once, or known from the start.
    """

    def __init__(self, batch: int, indices: list[Any]) -> None:
        self.batch, self.indices = batch, indices
        self.gone: dict[int, Answer] = {}
        self.met: list[Fault] = []  # those that made places go
        self.tries: Counter[Any] = Counter()
        self.remade = 0  # times that it could not be put together
        self.careful = False
        self.slots: list[tuple[int, Any]] = list(enumerate(indices))  # (place, index) in the order of the batch

    def at(self, position: int | None) -> tuple[int | None, Any]:
        """Place and index of what is loaded in this position."""
        return (None, None) if position is None or position >= len(self.slots) else self.slots[position]

    def attempt(self, index: Any) -> int:
        key = hashable(index)
        self.tries[key] += 1
        return self.tries[key]

    def amend(self, place: int, answer: Answer, refill: Refill, fits: Callable[[Any], bool]) -> None:
        """This place goes. LookupError, and all is as before, when it cannot be filled, or nothing is left."""
        gone = {**self.gone, place: answer}
        self.slots, self.gone = self._slots(gone, refill, fits), gone

    def _slots(self, gone: dict[int, Answer], refill: Refill, fits: Callable[[Any], bool]) -> list[tuple[int, Any]]:
        chosen = {place: index for place, index in enumerate(self.indices) if place not in gone}
        for place in sorted(gone):
            own = list(chosen.values())
            match gone[place]:
                case Put():
                    chosen[place] = self.indices[place]
                case Repeat():
                    chosen[place] = self._repeated(refill, place, own, fits)
                case Leave(refill=True):
                    chosen[place] = refill.choose(self.batch, place, own, fits)
                case _:
                    pass
        if not chosen:
            raise LookupError("refill=False leaves nothing of it")
        return sorted(chosen.items())

    def _repeated(self, refill: Refill, place: int, own: list[Any], fits: Callable[[Any], bool]) -> Any:
        try:
            return refill.repeat(self.batch, place, own, fits)
        except LookupError:
            return refill.choose(self.batch, place, own, fits)

    def instead_of(self, place: int) -> Any:
        """The index that is loaded in this place; None when nothing is."""
        if isinstance(self.gone.get(place), Put | None):
            return None
        return next((index for slot, index in self.slots if slot == place), None)

    def before(self, position: int | None) -> list[Any]:
        """The indices that are fetched before what is in this position."""
        return [index for place, index in self.slots[: position or 0] if not isinstance(self.gone.get(place), Put)]

    def left(self) -> tuple[Any, ...]:
        """The indices that are still to be loaded, of those that were drawn."""
        return tuple(index for place, index in enumerate(self.indices) if place not in self.gone)

    def plan(self) -> Any:
        """What to send to a worker."""
        given = {}
        for position, (place, _) in enumerate(self.slots):
            answer = self.gone.get(place)
            if isinstance(answer, Put):
                given[position] = answer.value
        indices = [index for _, index in self.slots]
        return Plan(indices, given, self.careful) if given or self.careful else indices
