"""What every code means: a page for each error and warning, for each check of the doctor, and for each lint rule (those
are with the rules); and the field guide of failures (``pages.failures``)."""

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


@cache
def rule_pages() -> dict[str, Page]:
    """The pages of all lint rules by their code, in order."""
    from holdfast.lint.rule import codes, page

    return {code: _page(page(code)) for code in codes()}


@cache
def check_pages() -> dict[str, Page]:
    """The pages of the doctor's checks by their code, in order."""
    return {path.stem: _read(path) for path in sorted(_FOLDER.glob("HD*.md"))}


def all_pages() -> dict[str, Page]:
    """Of everything that has a code of ours."""
    return pages() | rule_pages() | check_pages()


def _read(path: Path) -> Page:
    return _page(path.read_text(encoding="utf-8"))


def _page(body: str) -> Page:
    code, _, title = body.partition("\n")[0].removeprefix("# ").partition(" ")
    return Page(code, title, body)
