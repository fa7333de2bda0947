"""Figures and ratios in words, the same in the terminal, on the page and in plots."""

from __future__ import annotations

from bench.contest import Contest, Outcome, Result

_TIMES = {"s", "ms", "µs", "us", "seconds"}
_SIZES = {"B", "KB", "MB", "GB", "KiB", "MiB", "GiB", "bytes"}


def figure(value: float | None) -> str:
    """Three digits that count, and no exponent."""
    if value is None:
        return "–"
    size = abs(value)
    if size >= 1000:
        digits = max(0, len(str(int(size))) - 3)
        return f"{round(value, -digits):,.0f}"
    if size >= 100:
        return f"{value:.0f}"
    if size == 0:
        return "0"
    if size < 0.0001:
        return f"{value:.0e}"
    places = 0
    while size * 10**places < 100:
        places += 1
    text = f"{value:.{places}f}"
    return text.rstrip("0").rstrip(".") if "." in text and value == int(value) else text


def ratio(value: float | None) -> str:
    if value is None or value >= 10 or value < 0.01:
        return figure(value) if value is None else f"{figure(value)}×"
    return f"{value:.2f}×" if value >= 0.1 else f"{value:.3f}×"


def of_what(contest: Contest) -> str:
    """What a ratio is a multiple of."""
    if contest.unit.endswith("/s"):
        return "the rate"
    unit = contest.unit.split()[0].split("/")[0] if contest.unit else ""
    return "the time" if unit in _TIMES else "the memory" if unit in _SIZES else "the figure"


def direction(contest: Contest) -> str:
    return f"{contest.unit}, {contest.better} is better"


def spread(result: Result) -> str:
    return "" if result.spread is None else f"±{100 * result.spread / 2:.0f} %"


def rounds(outcome: Outcome) -> int:
    return max((len(result.figures) for result in outcome.results), default=0)


def seconds(value: float | None) -> str:
    return "" if value is None else f"{figure(value)} s"


def winner(outcome: Outcome) -> str:
    """Who is best, physical limits aside; "" where nobody has a figure."""
    better = outcome.contest.better
    takes_part = [one for one in outcome.results if one.contender not in outcome.contest.limits]
    figures = [(value, one.contender) for one in takes_part if (value := one.best(better)) is not None]
    if not figures:
        return ""
    best = max if better == "more" else min
    return best(figures, key=lambda pair: pair[0])[1]


def duration(value: float) -> str:
    """Seconds as people say them."""
    whole = round(value)
    if whole < 90:
        return f"{whole} s"
    if whole < 5400:
        return f"{round(whole / 60)} min"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


def why_none(result: Result) -> str:
    """The reason of a dash."""
    if result.cannot:
        return result.cannot
    return f"failed: {result.failed}" if result.failed else "not measured"


def bound(outcome: Outcome, contender: str) -> str:
    """The target against one contender, and whether it was reached; "" where there is none."""
    target, reached = outcome.contest.targets.get(contender), outcome.reached(contender)
    if target is None:
        return ""
    return f"{target} {'not measured' if reached is None else 'reached' if reached else 'MISSED'}"


def slug(name: str) -> str:
    """For file names and the command line."""
    kept = "".join(letter if letter.isalnum() and letter.isascii() else "-" for letter in name.lower())
    return "-".join(part for part in kept.split("-") if part)
