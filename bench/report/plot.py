"""Plots of contests: bars for one, lines for the points of a curve."""

from __future__ import annotations

from collections.abc import Sequence

from bench.contest import Outcome, Result
from bench.report import words
from bench.report.svg import LETTER, Drawing, Scale, even_ticks, round_ticks, shortened

WIDTH = 780.0
# What others are a multiple of: the first of these that has a figure.
BASES = ("torch fork", "multiprocessing.Pool", "torch.multiprocessing.Pool", "ProcessPoolExecutor")
WIDE = 12.0  # from here on between the least and the most, the axis is logarithmic
_NAMES, _BARS, _ROW, _TOP = 205.0, 350.0, 24.0, 62.0


def bars(outcome: Outcome) -> str:
    """How many times the base each contender does; below, a dash and the reason for those without a figure."""
    contest, base = outcome.contest, base_of(outcome)
    rows, without = _sorted(outcome), [one for one in outcome.results if not one.figures]
    bottom = _TOP + _ROW * len(rows)
    drawing = Drawing(WIDTH, bottom + 32 + _ROW * len(without), f"{contest.title}: {words.direction(contest)}")
    drawing.text(12, 22, shortened(contest.title, WIDTH - 60), "title")
    multiples = [_multiple(outcome, one, base) for one in rows]
    log, scale = _axis(drawing, multiples, bottom)
    said = f"times {words.of_what(contest)} of {base}; {contest.better} is better"
    drawing.text(12, 42, f"{said}; logarithmic" if log else said, "muted small")
    for place, (result, multiple) in enumerate(zip(rows, multiples, strict=True)):
        _bar(drawing, scale, outcome, result, multiple, _TOP + _ROW * place, scale(1.0 if log else 0.0))
    drawing.line(scale(1.0), _TOP - 4, scale(1.0), bottom + 2, "base")
    for place, result in enumerate(without):
        y = bottom + 42 + _ROW * place
        drawing.text(_NAMES - 10, y, shortened(result.contender, _NAMES - 16), "", "end")
        drawing.text(_NAMES, y, shortened(f"– {words.why_none(result)}", WIDTH - _NAMES), "muted small")
    return str(drawing)


def lines(title: str, outcomes: Sequence[Outcome]) -> str:
    """The points of one curve: a line for each contender, on two logarithmic axes."""
    series = _series(outcomes)
    points = [point for line in series.values() for point in line]
    contest = outcomes[0].contest
    drawing = Drawing(WIDTH, 440, f"{title}: {words.direction(contest)}")
    drawing.text(12, 22, shortened(title, WIDTH - 40), "title")
    drawing.text(12, 42, words.direction(contest), "muted small")
    if not points:
        return str(drawing)
    left, right, top, bottom = 80.0, WIDTH - 200, 62.0, 386.0
    xs, ys = [x for x, _ in points], [y for _, y in points]
    across, up = _fitting(xs, left, right), _fitting(ys, bottom, top)
    _grid(drawing, across, up, sorted(set(xs)), ys, (left, right, top, bottom))
    drawing.text((left + right) / 2, bottom + 42, contest.curve, "muted", "middle")
    ends = []
    for number, (name, line) in enumerate(series.items()):
        colour, dashes, width = _stroke(name, number, contest.champion, contest.limits)
        placed = [(across(x), up(y)) for x, y in line]
        drawing.curve(placed, colour, width, dashes)
        for x, y in placed:
            drawing.dot(x, y, colour, 3.5 if name == contest.champion else 2.5)
        ends.append((placed[-1], name, colour))
    _labels(drawing, ends, right, (top, bottom))
    return str(drawing)


def base_of(outcome: Outcome) -> str:
    """Whom the bars are a multiple of: torch or Python's own, else holdfast, else the first with a figure."""
    for name in (*BASES, outcome.contest.champion, *(one.contender for one in outcome.results)):
        if outcome.figure(name):
            return name
    return outcome.contest.champion


def _sorted(outcome: Outcome) -> list[Result]:
    """The best first; limits after the contenders."""
    better, limits = outcome.contest.better, outcome.contest.limits
    sign = -1 if better == "more" else 1
    known = [one for one in outcome.results if one.figures]
    return sorted(known, key=lambda one: (one.contender in limits, sign * (one.best(better) or 0.0)))


def _multiple(outcome: Outcome, result: Result, base: str) -> float:
    value, unit = result.best(outcome.contest.better), outcome.figure(base)
    return value / unit if value is not None and unit else 0.0


def _axis(drawing: Drawing, multiples: list[float], bottom: float) -> tuple[bool, Scale]:
    low, high = min([1.0, *multiples]), max([1.0, *multiples])
    log = low > 0 and high / low > WIDE
    if log:
        low, high = low / 1.1, high * 1.02
        ticks = round_ticks(low, high)
    else:
        ticks = even_ticks(high)
        low, high = 0.0, ticks[-1]
    scale = Scale(low, high, _NAMES, _NAMES + _BARS, log=log)
    for tick in ticks:
        drawing.line(scale(tick), _TOP - 4, scale(tick), bottom + 2)
        drawing.text(scale(tick), bottom + 18, f"{tick:g}×", "muted small", "middle")
    return log, scale


def _bar(
    drawing: Drawing, scale: Scale, outcome: Outcome, result: Result, multiple: float, y: float, zero: float
) -> None:
    contest, name = outcome.contest, result.contender
    champion = name == contest.champion
    drawing.text(_NAMES - 10, y + 16, shortened(name, _NAMES - 16), "strong" if champion else "", "end")
    kind = "limit" if name in contest.limits else "ours" if champion else "kin" if result.ours else "peer"
    start, end = sorted((zero, scale(multiple)))
    drawing.rect(start, y + 4, max(2.0, end - start), _ROW - 8, f"bar {kind}")
    said = f"{words.ratio(multiple)}  ({words.figure(result.best(contest.better))} {contest.unit})"
    drawing.text(max(end, start + 2) + 6, y + 16, said, "small strong" if champion else "small")


def _series(outcomes: Sequence[Outcome]) -> dict[str, list[tuple[float, float]]]:
    """By contender, those with a figure somewhere; the champion last, so that it is drawn on top."""
    found: dict[str, list[tuple[float, float]]] = {}
    for outcome in sorted(outcomes, key=lambda one: one.contest.at):
        for result in outcome.results:
            value = result.best(outcome.contest.better)
            if value is not None and value > 0 and outcome.contest.at > 0:
                found.setdefault(result.contender, []).append((outcome.contest.at, value))
    champion = outcomes[0].contest.champion
    return {name: found[name] for name in sorted(found, key=lambda name: name == champion)}


def _fitting(values: list[float], start: float, end: float) -> Scale:
    low, high = min(values), max(values)
    if low == high:
        low, high = low / 2, high * 2
    return Scale(low / 1.1, high * 1.1, start, end, log=True)


def _grid(
    drawing: Drawing, across: Scale, up: Scale, xs: list[float], ys: list[float],
    frame: tuple[float, float, float, float],
) -> None:  # fmt: skip
    left, right, top, bottom = frame
    taken = -100.0
    for x in xs:
        drawing.line(across(x), top, across(x), bottom)
        said = f"{x:,.0f}" if x == int(x) else f"{x:g}"
        if across(x) - taken > LETTER * (len(said) + 1):  # points may lie too close for all of their names
            drawing.text(across(x), bottom + 18, said, "muted small", "middle")
            taken = across(x)
    for tick in round_ticks(min(ys) / 1.1, max(ys) * 1.1):
        drawing.line(left, up(tick), right, up(tick))
        drawing.text(left - 8, up(tick) + 4, words.figure(tick), "muted small", "end")


_COLOURS = ("#d9822b", "#2da44e", "#a371f7", "#e5534b", "#1b9aaa", "#bf8700", "#d2629a", "#7a8490")
_DASHES = ("", "7 4", "2 3")


def _stroke(name: str, number: int, champion: str, limits: Sequence[str]) -> tuple[str, str, float]:
    """Colour, dashes and width; middle tones, which can be seen on white and on black."""
    if name == champion:
        return "#3182f0", "", 3.2
    if name in limits:
        return "#8b949e", "1 4", 2.0
    return _COLOURS[number % len(_COLOURS)], _DASHES[number // len(_COLOURS) % len(_DASHES)], 1.8


def _labels(
    drawing: Drawing, ends: list[tuple[tuple[float, float], str, str]], right: float, frame: tuple[float, float]
) -> None:
    """Names beside the ends of their lines, moved apart where they would lie on each other."""
    top, bottom = frame
    ends = sorted(ends, key=lambda end: (end[0][1], end[1]))
    step = min(16.0, (bottom - top + 30) / max(1, len(ends)))
    places = [y for (_, y), _, _ in ends]
    for number in range(1, len(places)):
        places[number] = max(places[number], places[number - 1] + step)
    if places:
        places[-1] = min(places[-1], bottom + 20)
    for number in range(len(places) - 2, -1, -1):
        places[number] = min(places[number], places[number + 1] - step)
    for ((x, y), name, colour), place in zip(ends, places, strict=True):
        drawing.line(x + 4, y, right + 12, place, "grid")
        drawing.text(right + 16, place + 4, shortened(name, WIDTH - right - 20), "small", colour=colour)
