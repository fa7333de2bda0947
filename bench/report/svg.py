"""A small SVG writer. The same calls give the same bytes; colours suit light and dark backgrounds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

_STYLE = """
text{font-family:system-ui,-apple-system,"Segoe UI",Helvetica,Arial,sans-serif;font-size:13px;fill:#1f2328}
.title{font-size:15px;font-weight:600}.muted{fill:#59636e}.small{font-size:12px}.strong{font-weight:600}
.grid{stroke:#8b949e;stroke-opacity:.3}.base{stroke:#59636e}
.bar{fill:#9aa4af}.ours{fill:#1f6feb}.kin{fill:#79b0f5}
.limit{fill:#9aa4af;fill-opacity:.15;stroke:#76808b;stroke-dasharray:4 3}
@media (prefers-color-scheme:dark){text{fill:#e6edf3}.muted{fill:#9198a1}.base{stroke:#9198a1}
.bar{fill:#6e7681}.ours{fill:#4493f8}.kin{fill:#2c5a94}.limit{fill:#6e7681;fill-opacity:.2;stroke:#9198a1}}
"""
LETTER = 6.9  # pixels that a letter of the usual size takes, more or less


class Drawing:
    """Shapes in the order in which they are drawn. `title` is read out by screen readers."""

    def __init__(self, width: float, height: float, title: str) -> None:
        self._size, self._title = (width, height), title
        self._parts: list[str] = []

    def rect(self, x: float, y: float, width: float, height: float, kind: str) -> None:
        self._parts.append(
            f'<rect class="{escape(kind)}" x="{_n(x)}" y="{_n(y)}" width="{_n(width)}" height="{_n(height)}" rx="2"/>'
        )

    def line(self, x: float, y: float, to_x: float, to_y: float, kind: str = "grid") -> None:
        place = f'x1="{_n(x)}" y1="{_n(y)}" x2="{_n(to_x)}" y2="{_n(to_y)}"'
        self._parts.append(f'<line class="{escape(kind)}" {place}/>')

    def curve(self, points: Sequence[tuple[float, float]], colour: str, width: float, dashes: str = "") -> None:
        places = " ".join(f"{_n(x)},{_n(y)}" for x, y in points)
        dashed = f' stroke-dasharray="{dashes}"' if dashes else ""
        self._parts.append(
            f'<polyline class="curve" fill="none" stroke="{colour}" stroke-width="{_n(width)}" stroke-linejoin="round"'
            f'{dashed} points="{places}"/>'
        )

    def dot(self, x: float, y: float, colour: str, radius: float = 3) -> None:
        self._parts.append(f'<circle cx="{_n(x)}" cy="{_n(y)}" r="{_n(radius)}" fill="{colour}"/>')

    def text(self, x: float, y: float, text: str, kind: str = "", anchor: str = "start", colour: str = "") -> None:
        """`anchor`: start, middle or end."""
        style = f' style="fill:{colour}"' if colour else ""
        name = f' class="{escape(kind)}"' if kind else ""
        place = f'x="{_n(x)}" y="{_n(y)}" text-anchor="{anchor}"'
        self._parts.append(f"<text{name}{style} {place}>{escape(text, quote=False)}</text>")

    def __str__(self) -> str:
        width, height = (_n(size) for size in self._size)
        size = f'width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
        name = escape(self._title, quote=False)
        body = "\n".join(self._parts)
        head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">'
        return f"{head}\n<title>{name}</title>\n<style>{_STYLE}</style>\n{body}\n</svg>\n"


class Scale:
    """From values to pixels, by their size or by their logarithm."""

    def __init__(self, low: float, high: float, start: float, end: float, *, log: bool) -> None:
        self._log = log
        self._low, self._high = self._of(low), self._of(high)
        self._start, self._end = start, end

    def __call__(self, value: float) -> float:
        span = self._high - self._low
        part = (self._of(value) - self._low) / span if span else 0.5
        return self._start + part * (self._end - self._start)

    def _of(self, value: float) -> float:
        return math.log10(value) if self._log else value


def round_ticks(low: float, high: float, most: int = 8) -> list[float]:
    """Round numbers from `low` to `high` for a logarithmic axis, no more than `most`."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    for steps in ((1, 2, 5), (1, 3), (1,)):
        ticks = [step * 10.0**power for power in range(first, last + 1) for step in steps]
        ticks = [tick for tick in ticks if low * 0.999 <= tick <= high * 1.001]
        if 2 <= len(ticks) <= most:
            return ticks
    every = max(1, math.ceil(len(ticks) / most))
    return ticks[::every] if len(ticks) >= 2 else [low, high]


def even_ticks(high: float, most: int = 6) -> list[float]:
    """From 0, in round steps, to the first that is not below `high`."""
    step = 10.0 ** math.floor(math.log10(high / most))
    factor = next(one for one in (1, 2, 5, 10) if one * step * most >= high)
    return [number * factor * step for number in range(math.ceil(high / (factor * step) - 1e-9) + 1)]


def shortened(text: str, pixels: float) -> str:
    letters = max(2, int(pixels / LETTER))
    return text if len(text) <= letters else text[: letters - 1].rstrip() + "…"


def _n(value: float) -> str:
    """One decimal place at most, and no minus zero."""
    text = f"{value:.1f}"
    text = text[:-2] if text.endswith(".0") else text
    return "0" if text == "-0" else text
