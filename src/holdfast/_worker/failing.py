"""From an exception to reports: which samples of the batch failed, where they come from, and whose fault it is.

Runs only after something failed. When a policy may leave samples out, all the bad ones of a batch are found at once, so
that it has to be loaded only once more.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from time import monotonic
from typing import Any

from torch.utils.data import default_collate

from holdfast._transport.faults import add_note
from holdfast._transport.messages import Plan, Report
from holdfast.policies import is_programming_error

from .culprits import Item, explain_collate, guilty, none_in, odd_ones
from .debugged import is_for_debugger
from .describe import describe
from .fetch import Notes, listed, one_by_one
from .job import Job
from .life import unwrap
from .stream import Stream
from .transforms import failing_transform

Pack = Callable[[BaseException], Any]
Attempt = Callable[[Any], object]  # makes a batch of samples, and forgets it


class Failures:
    """Writes reports for one worker. ``pack`` puts an exception into the form in which it travels."""

    def __init__(self, job: Job, notes: Notes, pack: Pack) -> None:
        self._job, self._notes, self._pack = job, notes, pack

    def of_fetch(self, error: Exception, index: Any, position: int) -> list[Report]:
        """The samples could not be fetched. ``position``: of the one that failed; -1: it was asked for all at once."""
        indices = _indices(index, self._job)
        if not self._job.auto_collation:
            return [self.report(error, 0, indices[0])]
        first = [self.report(error, position, indices[position])] if 0 <= position < len(indices) else []
        if not self._job.tolerant or self._is_fatal(error):
            return first or [self.report(error, None)]
        return first + self._others(indices, position + 1, index) or [self.report(error, None)]

    def of_stream(self, error: Exception, stream: object) -> list[Report]:
        """The item that a stream was last asked for could not be had; or there is no stream."""
        return [self.report(error, None, item=stream.items - 1 if isinstance(stream, Stream) else None)]

    def of_making(
        self, error: Exception, index: Any, samples: Any, attempt: Attempt, stream: object = None
    ) -> list[Report]:
        """The samples are there, and no batch could be made of them, or it could not be sent."""
        items = stream.origins if isinstance(stream, Stream) else None
        names = _indices(index, self._job) if items is None else [Item(f"item {item}") for item in items]
        if not self._job.auto_collation:
            return [self._of_place(error, 0, names, items)]
        if not isinstance(samples, list):
            return [self.report(error, None, whole=True)]
        blamed = self._blamed(error, samples, attempt)
        told = [self._told(error, place, blamed, samples, attempt) for place in blamed]
        reports = [
            self._of_place(self._explained(own, places, samples, names), place, names, items)
            for place, (own, places) in zip(blamed, told)
        ]
        everybody = list(range(len(samples)))
        return reports or [self.report(self._explained(error, everybody, samples, names), None, whole=True)]

    def _of_place(self, error: Exception, place: int, names: list[Any], items: list[int] | None) -> Report:
        if items is not None:
            return self.report(error, place, whole=True, item=items[place])
        return self.report(error, place, names[place], whole=True)

    def report(
        self, error: Exception, place: int | None, index: Any = None, *, whole: bool = False, item: int | None = None
    ) -> Report:
        if isinstance(error, StopIteration):  # out of collate_fn: to raise it would end the epoch, and silently
            stop, error = error, RuntimeError("collate_fn raised StopIteration")
            error.__cause__ = stop
        known = index is not None or self._job.iterable
        where = describe(self._job.dataset, index, error) if known else ""
        return Report(place, self._pack(error), where, failing_transform(error), self._is_fatal(error), whole, item)

    def debug(self, error: Exception, index: Any) -> None:
        """Have the user look at it, where the policy says so: here are its frames, and nowhere else."""
        attempt = index.attempt if type(index) is Plan else 1
        if self._job.iterable:
            attempt = sys.maxsize  # the trainer was asked, and said to raise
        if is_for_debugger(self._job.debugged, error, attempt, fatal=self._is_fatal(error)):
            from .debugger import post_mortem  # late: pdb takes 10 ms

            post_mortem(error, self._note_since)

    def _note_since(self, when: float) -> None:
        self._notes.since[()] = when

    def _is_fatal(self, error: Exception) -> bool:
        return is_programming_error(error, unwrap(self._job.dataset))

    def _others(self, indices: Sequence[Any], start: int, index: Any) -> list[Report]:
        """The rest of the batch, for those that fail as well."""
        given, fetch, reports = index.given if type(index) is Plan else {}, one_by_one(self._job), []
        for place in range(start, len(indices)):
            self._notes.place[()], self._notes.since[()] = place, monotonic()
            if place not in given:
                try:
                    fetch(indices[place])
                except Exception as error:
                    reports.append(self.report(error, place, indices[place]))
        return reports

    def _blamed(self, error: Exception, samples: list[Any], attempt: Attempt) -> list[int]:
        """Which samples are at fault; none when nobody would leave them out, or when it is not theirs."""
        if not self._job.tolerant or self._is_fatal(error):
            return []
        if self._job.collate_fn is default_collate:
            found = sorted({place for place, _ in none_in(samples)}) or odd_ones(samples)
            if found:
                return found
        return guilty(samples, attempt)

    def _told(
        self, error: Exception, place: int, blamed: list[int], samples: list[Any], attempt: Attempt
    ) -> tuple[Exception, list[int]]:
        """What is wrong with this sample, and which tell: it when it is alone, or that it does not go with another."""
        try:
            attempt([samples[place]])
        except Exception as own:
            return own, [place]
        usual = next((other for other in range(len(samples)) if other not in blamed), place)
        return error, [usual, place]

    def _explained(self, error: Exception, places: list[int], samples: list[Any], names: list[Any]) -> Exception:
        if self._job.collate_fn is not default_collate:
            return error

        def where(position: int) -> str:
            return "" if self._job.iterable else describe(self._job.dataset, names[places[position]])

        better = explain_collate(error, [samples[place] for place in places], [names[place] for place in places], where)
        if better is error:
            return error
        if not isinstance(better, type(error)):  # somebody may catch the one that torch raises
            add_note(error, str(better))
            return error
        better.__cause__ = error
        return better


def _indices(index: Any, job: Job) -> list[Any]:
    if type(index) is Plan:
        return list(index.indices)
    return listed(index) if job.auto_collation else [index]
