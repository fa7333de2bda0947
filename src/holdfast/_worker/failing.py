"""From an exception to reports: which samples of the batch failed, where they come from, and whose fault it is.

Runs only after something failed. When a policy may leave samples out, all the bad ones of a batch are found at once, so
that it has to be loaded only once more.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch.utils.data import default_collate

from holdfast._transport.faults import add_note
from holdfast._transport.messages import Plan, Report
from holdfast.policies import is_programming_error

from .culprits import explain_collate, guilty, none_in, odd_ones
from .describe import describe
from .fetch import one_by_one
from .job import Job
from .transforms import failing_transform

Pack = Callable[[BaseException], Any]


class Failures:
    """Writes reports for one worker. ``pack`` puts an exception into the form in which it travels."""

    def __init__(self, job: Job, pack: Pack) -> None:
        self._job, self._pack = job, pack

    def of_fetch(self, error: Exception, index: Any, position: int) -> list[Report]:
        """The samples could not be fetched. ``position``: of the one that failed; -1: it was asked for all at once."""
        indices = _indices(index)
        if self._job.iterable or not self._job.auto_collation:
            return [self.report(error, 0 if indices is None else max(0, position), None if self._job.iterable else index)]
        if indices is None:
            return [self.report(error, None, index)]
        first = [self.report(error, position, indices[position])] if 0 <= position < len(indices) else []
        if not self._job.tolerant or is_programming_error(error, self._job.dataset):
            return first or [self.report(error, None, indices)]
        return first + self._others(indices, position + 1, index) or [self.report(error, None, indices)]

    def of_making(self, error: Exception, index: Any, samples: Any, attempt: Callable[[Any], object]) -> list[Report]:
        """The samples are there, and no batch could be made of them, or it could not be sent."""
        if not isinstance(samples, list) or not self._job.auto_collation:
            return [self.report(error, None if self._job.auto_collation else 0, index, whole=True)]
        indices = None if self._job.iterable else _indices(index)
        if not self._job.tolerant or is_programming_error(error, self._job.dataset):
            return [self.report(self._explained(error, samples, indices), None, index, whole=True)]
        reports = []
        for place in self._guilty(samples, attempt):
            told = self._told(error, place, samples, indices, attempt)
            reports.append(self.report(told, place, indices[place] if indices else None, whole=True))
        return reports or [self.report(self._explained(error, samples, indices), None, index, whole=True)]

    def report(self, error: Exception, place: int | None, index: Any, *, whole: bool = False) -> Report:
        dataset = self._job.dataset
        known = place is not None and index is not None
        where = describe(dataset, index if known else None, error) if known or self._job.iterable else ""
        fatal = is_programming_error(error, dataset)
        return Report(place, self._pack(error), where, failing_transform(error), fatal, whole)

    def _others(self, indices: list[Any], start: int, index: Any) -> list[Report]:
        """The rest of the batch, for those that fail as well."""
        given, fetch, reports = index.given if type(index) is Plan else {}, one_by_one(self._job), []
        for place in range(start, len(indices)):
            if place not in given:
                try:
                    fetch(indices[place])
                except Exception as error:
                    reports.append(self.report(error, place, indices[place]))
        return reports

    def _guilty(self, samples: list[Any], attempt: Callable[[Any], object]) -> list[int]:
        if self._job.collate_fn is default_collate:
            found = [place for place, _ in none_in(samples)] or odd_ones(samples)
            if found:
                return found
        return guilty(samples, attempt)

    def _told(
        self, error: Exception, place: int, samples: list[Any], indices: list[Any] | None, attempt: Callable[[Any], Any]
    ) -> Exception:
        """What is wrong with this sample: what it says when it is alone, or that it does not go with the others."""
        try:
            attempt([samples[place]])
        except Exception as own:
            return self._explained(own, [samples[place]], [indices[place]] if indices else None)
        usual = next((other for other in range(len(samples)) if other not in self._guilty(samples, attempt)), place)
        pair = [usual, place]
        return self._explained(error, [samples[at] for at in pair], [indices[at] for at in pair] if indices else None)

    def _explained(self, error: Exception, samples: list[Any], indices: list[Any] | None) -> Exception:
        if self._job.collate_fn is not default_collate:
            return error

        def where(position: int) -> str:
            return describe(self._job.dataset, indices[position]) if indices else ""

        better = explain_collate(error, samples, indices, where)
        if better is error:
            return error
        if not isinstance(better, type(error)):  # somebody may catch the one that torch raises
            add_note(error, str(better))
            return error
        better.__cause__ = error
        return better


def _indices(index: Any) -> list[Any] | None:
    if type(index) is Plan:
        return list(index.indices)
    return list(index) if isinstance(index, list | tuple) else None
