"""The cases of each rule: Markdown, a heading that says the promise, a script below it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent / "cases"
_CASE = re.compile(r"^## (?P<promise>.+?)\n+```python\n(?P<text>.*?)^```", re.MULTILINE | re.DOTALL)
_MARK = re.compile(r"#\s*fires\s*$")


@dataclass(frozen=True)
class Case:
    """``fires`` are the lines on which the rule must fire; all others are near misses."""

    code: str
    promise: str
    text: str

    @property
    def fires(self) -> list[int]:
        return [number for number, line in enumerate(self.text.splitlines(), start=1) if _MARK.search(line)]

    def __str__(self) -> str:
        return f"{self.code}: {self.promise}"


def cases() -> list[Case]:
    return [
        Case(path.stem.upper(), found["promise"], found["text"])
        for path in sorted(FOLDER.glob("hl*.md"))
        for found in _CASE.finditer(path.read_text(encoding="utf-8"))
    ]


def examples(page: str) -> dict[str, str]:
    """The scripts of a page by their heading: Bad, Good."""
    return {found["promise"]: found["text"] for found in _CASE.finditer(page)}
