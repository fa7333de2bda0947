"""Faults of iterable data sets. A stream goes one way only: a worker asks about an item that failed, and waits.

What was said about an item holds for the epoch: a later life of the same seat, which has to go past it once more, is
told the same, and the ledger has it once.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any, NamedTuple

from holdfast._transport.messages import Answered, Report
from holdfast.errors import StreamLost, WorkerDied, WorkerStalled
from holdfast.fault import Fault
from holdfast.policies import Again, Answer, Leave, Put, Repeat, Stand

from .docket import Docket, Ruling, Whose

Ended = WorkerDied | WorkerStalled
_ACTIONS = {"again": "tried again", "skip": "skipped", "put": "replaced"}
_END = {"death": "ends", "stall": "holds up"}


class History(NamedTuple):
    """Of one worker's stream: its batches that failed, items that went into no batch, items that raised and were left
    out."""

    failed: tuple[int, ...] = ()
    taken_out: tuple[int, ...] = ()
    skipped: tuple[int, ...] = ()


class Streams:
    """Owned by a judge. Items are counted by each worker, from 0, and include those that failed."""

    def __init__(self, docket: Docket) -> None:
        self._docket = docket
        self._answers: dict[tuple[int | None, int], list[Answered]] = {}  # by seat and item, in order
        self._told: Counter[tuple[Whose, int]] = Counter()  # how many of them this life has heard
        self._deaths: Counter[tuple[int | None, int]] = Counter()
        self._stands: dict[int, Fault] = {}  # by batch: its error is to be raised, when the worker tells it
        self._failed: defaultdict[int | None, list[int]] = defaultdict(list)  # by seat: batches of its own
        self._taken_out: defaultdict[int | None, list[int]] = defaultdict(list)  # by seat: items that did not fit

    def begin(self) -> None:
        for kept in (self._answers, self._told, self._deaths, self._stands, self._failed, self._taken_out):
            kept.clear()

    def deliver(self, places: Any) -> None:
        """A batch of this many items, or its error, is handed to the user; the last one may have fewer."""
        self._docket.ledger.seen += len(places) if isinstance(places, list) else 1

    def asked(self, batch: int, report: Report, whose: Whose, *, replayed: bool = False) -> Answered:
        """An item raised, or no batch can be made with it. ``replayed``: the batch was given by an earlier life."""
        assert report.item is not None
        history = self._answers.setdefault((whose.seat, report.item), [])
        turn = self._told[whose, report.item]
        self._told[whose, report.item] += 1
        if turn < len(history):
            return history[turn]._replace(after=0.0)
        fault = self._docket.reported(report, whose, batch=batch, attempts=len(history) + 1)
        answer = Stand() if report.fatal else self._docket.ask(fault)
        if replayed and not isinstance(answer, Again):
            return Answered("put", 0.0, None)  # it was well then; now it only has to count
        history.append(said := _in_short(answer))
        if said.action == "raise":
            self._stands[batch] = fault
        else:
            self._docket.note(fault, _ACTIONS[said.action])
        if said.action == "skip" and report.whole:
            self._taken_out[whose.seat].append(report.item)
        return said

    def failed(self, batch: int, reports: list[Report], whose: Whose, number: int) -> BaseException:
        """A batch could not be made, and what could be asked about it was asked: what to raise in its place.

        ``number``: which one of this stream it is.
        """
        fault = self._stands.pop(batch, None) or self._docket.reported(reports[0], whose, batch=batch)
        error = fault.error
        self._failed[whose.seat].append(number)
        self._docket.note(fault, "raised")
        return error

    def lost(self, batch: int, place: int, error: Ended, whose: Whose) -> Ruling:
        """An item ended its worker, or does not come: nobody can get beyond it.

        ``place``: among the items of this worker that were not left out.
        """
        kind, item = "stall" if isinstance(error, WorkerStalled) else "death", self._item(whose.seat, place)
        self._deaths[whose.seat, item] += error.attempts if isinstance(error, WorkerDied) else 1
        tries = self._deaths[whose.seat, item]
        fault = self._docket.fault(kind, error, whose, batch=batch, item=item, attempts=tries)
        answer = self._docket.ask(fault)
        ruling = self._docket.settled(fault, answer)
        if ruling is not None:
            return ruling
        if not isinstance(answer, Stand):  # who leaves out an item has not asked to lose the rest of a stream
            fault.error = StreamLost(whose.seat, item, f"it {_END[kind]} whoever loads it")
            fault.error.__cause__ = error
        final = fault.error
        self._docket.note(fault, "raised")
        return Ruling(final)

    def history(self, seat: int | None) -> History:
        """What a new life of this seat, or a later run, has to know."""
        skipped = (
            item
            for (whose, item), answers in self._answers.items()
            if whose == seat and answers[-1].action == "skip" and item not in self._taken_out[seat]
        )
        return History(tuple(self._failed[seat]), tuple(self._taken_out[seat]), tuple(sorted(skipped)))

    def resume(self, seat: int | None, history: History) -> None:
        """What an earlier run has told of this stream."""
        self._failed[seat] += history.failed
        self._taken_out[seat] += history.taken_out
        for item in history.skipped:
            self._answers[seat, item] = [Answered("skip", 0.0, None)]

    def _item(self, seat: int | None, place: int) -> int:
        left_out = (
            item
            for (whose, item), history in sorted(self._answers.items(), key=lambda entry: entry[0][1])
            if whose == seat and history[-1].action == "skip"
        )
        for item in left_out:
            place += item <= place
        return place


def _in_short(answer: Answer) -> Answered:
    match answer:
        case Again():
            return Answered("again", answer.after, None)
        case Leave() | Repeat():
            return Answered("skip", 0.0, None)
        case Put():
            return Answered("put", 0.0, answer.value)
        case _:
            return Answered("raise", 0.0, None)
