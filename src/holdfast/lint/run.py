"""All files, one after the other."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .checking import check, unreadable
from .files import STANDARD_INPUT, files
from .finding import Finding, Level
from .settings import Settings
from .sources import Source


@dataclass(frozen=True)
class Report:
    """What was found in how much."""

    findings: tuple[Finding, ...]
    files: int
    lines: int

    @property
    def counts(self) -> dict[str, int]:
        """How many of each code, most frequent first."""
        return dict(Counter(sorted(finding.code for finding in self.findings)).most_common())

    def of(self, level: Level) -> int:
        return sum(finding.level is level for finding in self.findings)

    def to_dict(self) -> dict[str, Any]:
        findings = [finding.to_dict() for finding in self.findings]
        return {"files": self.files, "lines": self.lines, "counts": self.counts, "findings": findings}


def lint(paths: Iterable[str], settings: Settings) -> Report:
    rules = settings.rules()
    found: list[Finding] = []
    lines = 0
    seen: set[Path] = set()
    for path in _chosen(paths, settings):
        if path.resolve() in seen:
            continue
        seen.add(path.resolve())
        try:
            source = Source.of_bytes(*_read(path))
        except (OSError, SyntaxError, ValueError) as error:
            found.append(unreadable(_shown(path), error))
            continue
        lines += source.lines
        found += [finding for finding in check(source, rules) if settings.keeps(finding, path)]
    return Report(tuple(found), len(seen), lines)


def _chosen(paths: Iterable[str], settings: Settings) -> Iterator[Path]:
    """A path that is given as a file is read, even if a pattern excludes it; those that a folder has are not."""
    for path in paths:
        if path == STANDARD_INPUT:
            yield Path(STANDARD_INPUT)
        else:
            yield from (one for one in files(path) if str(one) == str(Path(path)) or not settings.excludes(one))


def _shown(path: Path) -> str:
    return "<stdin>" if str(path) == STANDARD_INPUT else str(path)


def _read(path: Path) -> tuple[str, bytes]:
    if str(path) == STANDARD_INPUT:
        return _shown(path), sys.stdin.buffer.read()
    return _shown(path), path.read_bytes()
