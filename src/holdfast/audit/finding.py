"""One thing that will hurt: where it is, what it is, why, and what to write instead."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum

_LAST = re.compile(r"\.(<\w+>\.)?([A-Za-z_]\w*(?:\[[^\]]*\])*)$")


class Severity(Enum):
    ERROR = "error"  # wrong data, or a worker that hangs or crashes
    WARNING = "warning"  # the same, under circumstances that cannot be seen from here
    NOTE = "note"  # worth knowing


@dataclass(frozen=True)
class Finding:
    """``fix`` is a line of code, ``why`` a sentence without its full stop."""

    path: str
    kind: str
    why: str
    fix: str
    severity: Severity

    def __str__(self) -> str:
        return f"{self.path} ({self.kind}): {self.why}. Instead: {self.fix}"


def target(path: str) -> str:
    """How the line that made the object at ``path`` began: ``self.file`` for ``dataset.store.file``."""
    last = _LAST.search(path)
    if last is None:
        return path
    return last[2] if last[1] else f"self.{last[2]}"
