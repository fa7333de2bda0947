"""From the text of a file to its findings."""

from __future__ import annotations

import ast
import sys
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import replace

from .finding import Finding, Level, Remark
from .noqa import Noqa
from .rule import Rule
from .script import Script
from .sources import Source

UNREADABLE = "HL001"
# What ast.parse raises for a text that is no Python: the last two for one that is nested too deep.
_NO_PYTHON = (SyntaxError, ValueError, RecursionError, MemoryError)


def check(source: Source, rules: Iterable[Rule]) -> list[Finding]:
    """Findings in the order of the file. A text that is no Python is a finding itself; a notebook is checked without
    the cells that are none."""
    found: list[Finding] = []
    if source.is_notebook:
        source, found = _without_unreadable_cells(source)
    text = "".join(part.text for part in source.parts)
    try:
        script = Script(text, parse(text), source.is_notebook)
    except _NO_PYTHON as error:
        return [unreadable(source.path, error)]
    for finding in check_script(script, source.path, rules):
        cell, line = source.place(finding.line)
        found.append(replace(finding, cell=cell, line=line))
    return sorted(found, key=lambda one: (one.cell or 0, one.line, one.column, one.code))


def check_text(text: str, path: str, rules: Iterable[Rule]) -> list[Finding]:
    return check(Source.of_text(path, text), rules)


def check_script(script: Script, path: str, rules: Iterable[Rule]) -> Iterator[Finding]:
    lines = script.text.split("\n")  # splitlines() also splits at form feeds, which are no lines to Python
    noqa = Noqa(script.text)
    for rule in rules:
        for remark in rule.check(script):
            finding = _place(path, rule, remark, lines)
            if not noqa.silences(finding):
                yield finding


def _without_unreadable_cells(notebook: Source) -> tuple[Source, list[Finding]]:
    parts, found = [], []
    for part in notebook.parts:
        try:
            parse(part.text)
            parts.append(part)
        except _NO_PYTHON as error:
            found.append(replace(unreadable(notebook.path, error), cell=part.cell))
            parts.append(replace(part, text="\n" * part.text.count("\n")))
    return replace(notebook, parts=tuple(parts)), found


def parse(text: str) -> ast.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # invalid escapes in the user's strings are not for us to tell
        return ast.parse(text)


def unreadable(path: str, error: Exception) -> Finding:
    """HL001: no rule can see a file that cannot be parsed, and nobody should take that for a clean one."""
    python = f"Python {sys.version_info.major}.{sys.version_info.minor}"
    if isinstance(error, SyntaxError):
        what, line, column = f"{python} cannot parse this: {error.msg}", error.lineno or 1, error.offset or 1
        fix = "mend it, or run holdfast lint with the Python that runs this file"
    elif isinstance(error, UnicodeDecodeError):
        what, line, column = f"this file is not text in {error.encoding}: {error.reason}", 1, 1
        fix = "save it as UTF-8, or declare its encoding in the first line"
    else:
        what, line, column = f"this file cannot be read: {error or type(error).__name__}", 1, 1
        fix = "exclude it in pyproject.toml, [tool.holdfast.lint]"
    return Finding(path, line, max(column, 1), UNREADABLE, Level.ERROR, what, fix)


def _place(path: str, rule: Rule, remark: Remark, lines: list[str]) -> Finding:
    line, column = getattr(remark.node, "lineno", 1), getattr(remark.node, "col_offset", 0)
    text = lines[line - 1] if line <= len(lines) else ""
    if not text.isascii():  # ast counts bytes, people count characters
        column = len(text.encode()[:column].decode(errors="replace"))
    return Finding(path, line, column + 1, rule.code, rule.level, remark.message, remark.fix)
