"""What every code means: a page for each error and warning, and the field guide of failures (``pages.failures``)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

_FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class Page:
    """Markdown, whose first line is ``# code title``."""

    code: str
    title: str
    body: str

    @property
    def name(self) -> str:
        """The class that has this code: titles begin with it."""
        return self.title.partition(":")[0]


@cache
def pages() -> dict[str, Page]:
    """All pages of errors and warnings by their code, in order."""
    return {path.stem: _read(path) for path in sorted(_FOLDER.glob("HF*.md"))}


def _read(path: Path) -> Page:
    body = path.read_text(encoding="utf-8")
    code, _, title = body.partition("\n")[0].removeprefix("# ").partition(" ")
    return Page(code, title, body)
