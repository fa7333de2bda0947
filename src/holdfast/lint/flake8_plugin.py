"""The rules as a plugin of flake8, which parses the file, and knows which codes its user wants."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from holdfast import __version__

from .checking import check_script
from .finding import Level
from .rule import all_rules
from .script import Script


class Plugin:
    """``# noqa: HL101`` is flake8's own affair; ``# holdfast: noqa`` is heeded too."""

    name = "holdfast"
    version = __version__

    def __init__(self, tree: ast.Module, lines: list[str]) -> None:
        self._script = Script("".join(lines), tree)

    @staticmethod
    def add_options(parser: Any) -> None:
        """Rules that are off by default are so here: ``--extend-select HL206`` turns one on."""
        parser.extend_default_ignore([code for code, rule in all_rules().items() if rule.level is Level.INFO])

    def run(self) -> Iterator[tuple[int, int, str, type[Plugin]]]:
        for finding in check_script(self._script, "", all_rules().values()):
            yield finding.line, finding.column - 1, f"{finding.code} {finding.message}", type(self)
