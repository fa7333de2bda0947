"""What a curve of rates against batch sizes says: the cost of a batch, and of each sample in it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from bench.contest import Outcome


@dataclass(frozen=True)
class Costs:
    """The line seconds = per_batch + batch size × per_sample, and the farthest that a point lies from it."""

    per_batch: float
    per_sample: float
    off: float  # as a part of the point: 0.1 is 10 %


def costs(rates: Mapping[float, float]) -> Costs:
    """The line through batches per second by batch size, by least squares of what it is off in relative terms.

    In absolute terms, the largest batches alone would decide. No cost is negative: where the best line had one, it is
    the best of those with none.
    """
    if len(rates) < 2:
        raise ValueError(f"a line needs two points, not {len(rates)}")
    points = [(size, 1 / rate) for size, rate in sorted(rates.items())]
    lines = [line for line in _lines(points) if min(line) >= 0]
    per_batch, per_sample = min(lines, key=lambda line: sum(_off(line, point) ** 2 for point in points))
    return Costs(per_batch, per_sample, max(abs(_off((per_batch, per_sample), point)) for point in points))


def _lines(points: list[tuple[float, float]]) -> Iterable[tuple[float, float]]:
    """The best line, and the best ones without a cost per sample and without one per batch.

    Each minimises Σ (u·a + v·b − 1)², where u = 1 / seconds and v = size / seconds.
    """
    u, v = [1 / seconds for _, seconds in points], [size / seconds for size, seconds in points]
    uu, uv, vv = sum(x * x for x in u), sum(x * y for x, y in zip(u, v)), sum(y * y for y in v)
    determinant = uu * vv - uv * uv
    yield (sum(u) * vv - sum(v) * uv) / determinant, (sum(v) * uu - sum(u) * uv) / determinant
    yield sum(u) / uu, 0.0
    yield 0.0, sum(v) / vv


def _off(line: tuple[float, float], point: tuple[float, float]) -> float:
    (per_batch, per_sample), (size, seconds) = line, point
    return (per_batch + size * per_sample) / seconds - 1


def costs_by_contender(outcomes: Iterable[Outcome], curve: str = "batch size") -> dict[str, Costs]:
    """Of each contender that has at least two points on that curve, in the order of the first of them."""
    rates: dict[str, dict[float, float]] = {}
    for outcome in outcomes:
        if outcome.contest.curve == curve:
            for result in outcome.results:
                figure = result.best(outcome.contest.better)
                if figure is not None:
                    rates.setdefault(result.contender, {})[outcome.contest.at] = figure
    return {contender: costs(points) for contender, points in rates.items() if len(points) > 1}
