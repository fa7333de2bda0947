"""Amounts as people write them: ``90s``, ``5m``; ``10%``."""

from __future__ import annotations

import re

import typer

_UNITS = {"ms": 0.001, "s": 1.0, "": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
_DURATION = re.compile(r"(\d+(?:\.\d*)?|\.\d+)\s*([a-z]*)")


def seconds(text: str) -> float:
    found = _DURATION.fullmatch(text.strip().lower())
    if not found or found[2] not in _UNITS or not float(found[1]):
        raise typer.BadParameter(f"{text!r} is no duration; valid are 500ms, 90s, 5m, 2h")
    return float(found[1]) * _UNITS[found[2]]


def share(text: str) -> float:
    number, percent = text.strip().removesuffix("%"), text.strip().endswith("%")
    try:
        value = float(number) / (100 if percent else 1)
    except ValueError:
        value = 0.0
    if not 0 < value <= 1:
        raise typer.BadParameter(f"{text!r} is no share of all samples; valid are 10% or 0.1")
    return value


def duration(value: float) -> str:
    """``340 µs``, ``12.5 ms``, ``3.21 s``, ``12 min``, ``3.4 h``."""
    for limit, factor, unit in ((1e-3, 1e6, "µs"), (1.0, 1e3, "ms"), (120.0, 1.0, "s"), (7200.0, 1 / 60, "min")):
        if value < limit:
            return f"{value * factor:.3g} {unit}"
    return f"{value / 3600:.3g} h" if value < 172800 else f"{value / 86400:.3g} days"
