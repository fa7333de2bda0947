"""A rule: a code, a level, a page and a check; each is a module of ``lint.rules``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path

from .finding import Level, Remark
from .script import Script

_FOLDER = Path(__file__).parent / "rules"


@dataclass(frozen=True)
class Rule:
    code: str
    title: str
    level: Level
    check: Callable[[Script], Iterator[Remark]]


def codes() -> list[str]:
    """Of all rules, in order, without importing one."""
    return sorted(path.stem.upper() for path in _FOLDER.glob("hl[0-9]*.py"))


@cache
def all_rules() -> dict[str, Rule]:
    return {code: _load(code) for code in codes()}


def page(code: str) -> str:
    """The page of a rule: Markdown whose first line is ``# code title``. It is the docstring of the rule's module, read
    from the file, so that ``holdfast explain`` need not import fifty of them."""
    return (_FOLDER / f"{code.lower()}.py").read_text(encoding="utf-8").split('"""')[1]


def _load(code: str) -> Rule:
    module = import_module(f".rules.{code.lower()}", __package__)
    title = page(code).partition("\n")[0].removeprefix(f"# {code} ")
    return Rule(code, title, module.LEVEL, module.check)
