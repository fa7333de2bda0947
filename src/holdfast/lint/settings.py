"""What is checked for, from the command line and from ``[tool.holdfast.lint]`` in pyproject.toml."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from holdfast.targets.mistake import Mistake
from holdfast.targets.project import project

from .finding import Finding, Level
from .rule import Rule, all_rules, codes

_KEYS = ("select", "ignore", "level", "exclude", "per-file-ignores")


@dataclass(frozen=True)
class Settings:
    """``select`` and ``ignore`` hold codes or their beginnings (``HL2``). A rule whose whole code is selected is run
    whatever its level. Patterns are matched with paths relative to ``root``."""

    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    level: Level = Level.WARNING
    exclude: tuple[str, ...] = ()
    per_file_ignores: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    root: Path = Path()

    def rules(self) -> list[Rule]:
        return [rule for rule in all_rules().values() if self._wants(rule)]

    def excludes(self, path: Path) -> bool:
        return any(self._matches(path, pattern) for pattern in self.exclude)

    def keeps(self, finding: Finding, path: Path) -> bool:
        here = (codes for pattern, codes in self.per_file_ignores.items() if self._matches(path, pattern))
        return not finding.code.startswith((*self.ignore, *(code for codes in here for code in codes)))

    def _wants(self, rule: Rule) -> bool:
        if rule.code.startswith(self.ignore):
            return False
        if rule.code in self.select:
            return True
        return rule.level.rank <= self.level.rank and (not self.select or rule.code.startswith(self.select))

    def _matches(self, path: Path, pattern: str) -> bool:
        """A name of the file or of a folder above it, or the path from the root."""
        absolute = path.resolve()
        inside = absolute.relative_to(self.root) if absolute.is_relative_to(self.root) else absolute
        wanted = pattern.removeprefix("./").rstrip("/")
        return fnmatch(inside.as_posix(), wanted) or any(
            fnmatch(name, wanted) or fnmatch(Path(*inside.parts[: number + 1]).as_posix(), wanted)
            for number, name in enumerate(inside.parts)
        )


def settings_for(path: Path, select: Iterable[str], ignore: Iterable[str], level: Level | None) -> Settings:
    """Those of the nearest pyproject.toml at or above a path; what the command line says goes before."""
    found = project(path)
    where = f"[tool.holdfast.lint] in {found.file}" if found.file else ""
    table = _known(found.part("lint"), where)
    named = tuple(parsed_codes(select, "--select"))
    return Settings(
        select=named or tuple(parsed_codes(_strings(table, "select", where), where)),
        ignore=(*parsed_codes(_strings(table, "ignore", where), where), *parsed_codes(ignore, "--ignore")),
        level=level or parsed_level(table.get("level", "W"), where),
        exclude=tuple(_strings(table, "exclude", where)),
        per_file_ignores=_per_file(table, where),
        root=found.file.parent if found.file else Path.cwd(),
    )


def parsed_codes(texts: Iterable[str], where: str) -> list[str]:
    """``HL101,HF2`` as ``HL101`` and ``HL2``. Numbers are those of lint rules here, so the prefix of errors will do."""
    found = []
    for text in (part.strip().upper() for one in texts for part in one.split(",")):
        code = f"HL{text[2:]}" if text.startswith("HF") else text
        if text and not any(known.startswith(code) for known in codes()):
            raise Mistake(f"{where}: there is no rule {text}", f"there are {', '.join(codes())}")
        found += [code] if text else []
    return found


def parsed_level(text: object, where: str) -> Level:
    for level in Level:
        if str(text).upper() in {level.value, level.name}:
            return level
    raise Mistake(f"{where}: there is no level {text!r}", "there are E (errors), W (warnings too), I (everything)")


def _known(table: dict[str, Any], where: str) -> dict[str, Any]:
    unknown = sorted(set(table) - set(_KEYS))
    if unknown:
        raise Mistake(f"{where} has {', '.join(unknown)}, which is no setting", f"there are {', '.join(_KEYS)}")
    return table


def _strings(table: Mapping[str, Any], key: str, where: str) -> list[str]:
    value = table.get(key, [])
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise Mistake(f"{where}: {key} is {value!r}", f'it is a list of texts: {key} = ["..."]')
    return value


def _per_file(table: Mapping[str, Any], where: str) -> dict[str, tuple[str, ...]]:
    patterns = table.get("per-file-ignores", {})
    if not isinstance(patterns, dict):
        raise Mistake(f"{where}: per-file-ignores is {patterns!r}", 'it is a table: "tests/*" = ["HL205"]')
    return {pattern: tuple(parsed_codes(_strings(patterns, pattern, where), where)) for pattern in patterns}
