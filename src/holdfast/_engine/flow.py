"""Streams of a crew: what their workers say of them, and what the workers are told."""

from __future__ import annotations

from typing import Any

from holdfast._core.events import Worker
from holdfast._core.machine import Machine
from holdfast._transport.messages import NO_PAST, Answered, Asked, Began, Mark, Past, Raised, StreamOver

from .docket import Whose
from .streams import Streams
from .trail import Trail


class Flow:
    """Owned by the crew; without a ``trail`` there are no streams. Batches are numbered as the machine does."""

    def __init__(self, machine: Machine, streams: Streams) -> None:
        self._machine, self._streams = machine, streams
        self._trail: Trail | None = None

    def begin(self, trail: Trail | None) -> None:
        self._trail = trail

    @property
    def begun(self) -> bool:
        return self._trail is None or self._trail.begun

    @property
    def given(self) -> tuple[int, ...]:
        return self._trail.given if self._trail is not None else ()

    @property
    def ended(self) -> frozenset[int]:
        return self._trail.ended if self._trail is not None else frozenset()

    def past(self, seat: int, batches: int | None = None) -> Past:
        """For a worker that goes on behind so many batches; None: behind those that were delivered."""
        if self._trail is None:
            return NO_PAST
        return self._trail.past(seat, self._trail.given[seat] if batches is None else batches)

    def began(self, who: Worker, message: Began) -> None:
        if self._trail is not None and message.first == self._machine.first:
            self._trail.begin(who.seat, message.mark)

    def answered(self, who: Worker, batch: int, mark: Mark | None) -> None:
        if self._trail is not None and self._machine.expects(who, batch):
            self._trail.answer(batch - self._machine.first, mark)

    def over(self, who: Worker, message: StreamOver) -> None:
        if self._trail is not None and self._machine.expects(who, message.batch):
            self._trail.end(message.batch - self._machine.first, message.mark)

    def asked(self, who: Worker, message: Asked, whose: Whose) -> Answered | None:
        """None: the question is of an epoch that is over, as the worker has been told."""
        batch, replayed = message.batch - self._machine.first, not self._machine.expects(who, message.batch)
        return self._streams.asked(batch, message.report, whose, replayed=replayed) if batch >= 0 else None

    def failed(self, message: Raised, whose: Whose) -> BaseException:
        batch = message.batch - self._machine.first
        return self._streams.failed(batch, message.reports, whose, batch // self._machine.limits.seats)

    def deliver(self, batch: int, places: Any) -> None:
        assert self._trail is not None
        self._streams.deliver(places)
        self._trail.deliver(batch - self._machine.first)
