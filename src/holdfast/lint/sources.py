"""What is checked: a file, standard input, or the code cells of a notebook."""

from __future__ import annotations

import io
import json
import re
import tokenize
from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

_MAGIC = re.compile(r"^(\s*)(%[\w%]|!|\?)|^(\s*)[\w.]+\?+\s*$")  # "% b" goes on with an expression
_ASSIGNED = re.compile(r"^(\s*[\w.,\s]+=\s*)(!|%\w)")


@dataclass(frozen=True)
class Part:
    """Text that can be parsed on its own. ``cell`` counts a notebook's code cells from 1, and is None for a file."""

    text: str
    cell: int | None = None


@dataclass(frozen=True)
class Source:
    path: str
    parts: tuple[Part, ...]
    is_notebook: bool = False

    @classmethod
    def of_text(cls, path: str, text: str) -> Source:
        return cls(path, (Part(text),))

    @classmethod
    def of_bytes(cls, path: str, data: bytes) -> Source:
        """Decoded as Python does: by its first lines, or as UTF-8. Raises what that raises."""
        if Path(path).suffix == ".ipynb":
            return cls(path, tuple(_cells(json.loads(data))), is_notebook=True)
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
        return cls.of_text(path, io.TextIOWrapper(io.BytesIO(data), encoding).read())

    @property
    def lines(self) -> int:
        return sum(part.text.count("\n") + (not part.text.endswith("\n")) for part in self.parts if part.text)

    @cached_property
    def _first_lines(self) -> list[int]:
        first = [1]
        for part in self.parts:
            first.append(first[-1] + part.text.count("\n"))
        return first

    def place(self, line: int) -> tuple[int | None, int]:
        """From a line of all parts together to the cell, and the line in it."""
        number = min(bisect_right(self._first_lines, line), len(self.parts)) - 1
        return self.parts[number].cell, line - self._first_lines[number] + 1


def _cells(notebook: Any) -> list[Part]:
    if not isinstance(notebook, dict) or not isinstance(notebook.get("cells"), list):
        raise ValueError("this is no notebook of version 4: it has no list of cells")
    code = [cell for cell in notebook["cells"] if cell.get("cell_type") == "code"]
    return [Part(_without_magics("".join(cell.get("source", ()))), number) for number, cell in enumerate(code, start=1)]


def _without_magics(text: str) -> str:
    """What IPython alone understands becomes ``pass`` or ``...``, and a cell in another language empty; lines
    stay where they are, and each cell ends with one."""
    lines = text.removesuffix("\n").split("\n")
    if lines and lines[0].startswith("%%") and not lines[0].startswith(("%%time", "%%capture")):
        return "\n" * len(lines)
    return "".join(f"{_plain(line)}\n" for line in lines)


def _plain(line: str) -> str:
    if assigned := _ASSIGNED.match(line):
        return f"{assigned[1]}..."
    magic = _MAGIC.match(line)
    return f"{magic[1] or magic[3] or ''}pass" if magic else line
