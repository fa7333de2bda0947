"""How numbers read in symptoms."""

from __future__ import annotations


def number(count: float) -> str:
    return f"{count:.2g}" if count < 10 else f"{count:.0f}"


def counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"
