"""What a rule says, and what becomes of it."""

from __future__ import annotations

import ast
from dataclasses import asdict, dataclass
from enum import Enum
from typing import Any


class Level(Enum):
    """How bad, in the letter that is printed."""

    ERROR = "E"  # wrong data, a crash or a hang, whenever this line runs in a worker
    WARNING = "W"  # the same, under circumstances that the file does not show
    INFO = "I"  # worth knowing; not shown unless asked for

    @property
    def rank(self) -> int:
        """0 is the worst."""
        return "EWI".index(self.value)


@dataclass(frozen=True)
class Remark:
    """What a rule yields: the node at fault, a sentence without its full stop that stands alone, and a fix as code."""

    node: ast.AST
    message: str
    fix: str


@dataclass(frozen=True)
class Finding:
    """A remark in its place. Lines and columns count from 1; ``cell`` is the number of a notebook's code cell."""

    path: str
    line: int
    column: int
    code: str
    level: Level
    message: str
    fix: str = ""
    cell: int | None = None

    @property
    def place(self) -> str:
        """``train.py:12:9``, in a notebook ``train.ipynb:cell 3:2:9``."""
        cell = "" if self.cell is None else f"cell {self.cell}:"
        return f"{self.path}:{cell}{self.line}:{self.column}"

    def to_dict(self) -> dict[str, Any]:
        return asdict(self) | {"level": self.level.value}
