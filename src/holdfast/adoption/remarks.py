"""What lint has to say about the program: a defect in its text often lets it run, and nothing else would tell of it."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .places import shown

if TYPE_CHECKING:
    from holdfast.lint.finding import Finding


# Options that cure what a rule tells of.
_CURES = {"shard": "HL301"}


def on(script: str | None, options: Mapping[str, Any]) -> list[dict[str, Any]]:
    """On the program, errors first, as its ``pyproject.toml`` has it; of a module (None) Python knows the file.

    What the ``options`` of the run have cured is not said.
    """
    path = script or getattr(getattr(sys.modules.get("__main__"), "__spec__", None), "origin", None)
    if path is None or "site-packages" in Path(path).parts:  # a launcher, as a rule
        return []
    try:
        found = _found(Path(path))
    except Exception:  # the program has ended, and nothing of ours may change how: its text may be no Python, for one
        return []
    cured = {code for name, code in _CURES.items() if name in options}
    left = sorted((one for one in found if one.code not in cured), key=lambda one: one.level.rank)
    return [one.to_dict() | {"place": one.place} for one in left]


def _found(path: Path) -> list[Finding]:
    from holdfast.lint.checking import check_script, parse
    from holdfast.lint.script import Script
    from holdfast.lint.settings import settings_for

    text, settings = path.read_text(encoding="utf-8"), settings_for(path, (), (), None)
    script = Script(text, parse(text))
    script.is_adopted = True
    return [one for one in check_script(script, shown(path), settings.rules()) if settings.keeps(one, path)]
