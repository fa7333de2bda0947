"""All failures: those with a program, and those without, with the reason."""

from __future__ import annotations

import re
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path

from holdfast.pages.failures import FAILURES

from .row import Row

_REASONS = {"F09": "nothing to run: holdfast explain F09 names the right call"}


def rows() -> list[Row]:
    """Each file of a failure here has one, in the order of their numbers."""
    names = sorted(path.stem for path in Path(__file__).parent.glob("f[0-9][0-9]_*.py"))
    return [import_module(f"{__package__}.{name}").ROW for name in names]


def absent() -> dict[str, str]:
    """Failures without a program, and why."""
    present = {row.id for row in rows()}
    return {id: _REASONS.get(id, "not in this version") for id in sorted(FAILURES) if id not in present}


def title(row: Row) -> str:
    failure = FAILURES[row.id].title
    return f"{failure} ({row.variant})" if row.variant else failure


def chosen(only: Iterable[str]) -> list[Row]:
    """The rows of these numbers (``F28``, ``28``) or names (``f28_killed_worker``); all when there are none."""
    known = rows()
    wanted = [_number(word) for word in only]
    for word in wanted:
        if not any(word in (row.id, row.name) for row in known):
            raise LookupError(f"{word}: {absent().get(word, 'there is no such failure')}; --list shows all")
    return [row for row in known if not wanted or row.id in wanted or row.name in wanted]


def _number(word: str) -> str:
    digits = re.fullmatch(r"[fF]?(\d{1,2})", word)
    return f"F{int(digits[1]):02}" if digits else word.lower()
