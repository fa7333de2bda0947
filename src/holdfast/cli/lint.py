"""``holdfast lint``: what a training script will do wrong in its workers, before it runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .style import FOUND, AsJson, console, print_json

if TYPE_CHECKING:
    from holdfast.lint.finding import Level
    from holdfast.lint.run import Report

_COLOURS = {"E": "red", "W": "yellow", "I": "blue"}
Codes = Annotated[list[str] | None, typer.Option(help="HL101, HL2 or several with commas; may be given again.")]


def lint(
    paths: Annotated[list[str] | None, typer.Argument(help="Files, folders, or - for standard input.")] = None,
    select: Codes = None,
    ignore: Codes = None,
    level: Annotated[str | None, typer.Option(help="E: errors only; W: warnings too; I: everything.")] = None,
    statistics: Annotated[bool, typer.Option("--statistics", help="How many of each, rather than where.")] = False,
    as_json: AsJson = False,
    rules: Annotated[bool, typer.Option("--rules", help="List the rules, and check nothing.")] = False,
    sarif: Annotated[bool, typer.Option("--sarif", help="As SARIF 2.1.0, for code hosts and editors.")] = False,
) -> None:
    """Look for what goes wrong in worker processes, in Python files and notebooks, without running them.

    A line that is right as it is: # holdfast: noqa HL101. Settings: [tool.holdfast.lint] in pyproject.toml. Each rule
    has a page: holdfast explain HL101.

    Exit codes: 0 nothing found, 1 something found, 2 wrong usage.
    """
    from holdfast.lint.run import lint as run
    from holdfast.lint.settings import settings_for

    if rules:
        _print_rules(as_json)
        return
    chosen = paths or ["."]
    settings = settings_for(Path(chosen[0]), select or (), ignore or (), _level(level))
    report = run(chosen, settings)
    if sarif:
        from holdfast import __version__
        from holdfast.lint.sarif import as_sarif

        print_json(as_sarif(report, __version__))
    elif as_json:
        print_json(report.to_dict())
    elif statistics:
        _print_statistics(report)
    else:
        _print(report)
    if report.findings:
        raise typer.Exit(FOUND)


def _print_rules(as_json: bool) -> None:
    from holdfast.lint.rule import all_rules

    listed = [{"code": one.code, "level": one.level.value, "title": one.title} for one in all_rules().values()]
    if as_json:
        print_json(listed)
    else:
        print("\n".join("{code} {level} {title}".format(**one) for one in listed))


def _level(text: str | None) -> Level | None:
    from holdfast.lint.settings import parsed_level

    return None if text is None else parsed_level(text, "--level")


def _print(report: Report) -> None:
    from rich.text import Text

    out = console()
    for finding in report.findings:
        level = finding.level.value
        code = (finding.code, f"bold {_COLOURS[level]}")
        out.print(Text.assemble(f"{finding.place} ", code, f" {level} {finding.message}"))
        if finding.fix:
            out.print(Text.assemble(("    fix: ", "dim"), finding.fix))
    out.print(_summary(report))


def _print_statistics(report: Report) -> None:
    from holdfast.lint.rule import all_rules

    for code, count in report.counts.items():
        rule = all_rules()[code]
        print(f"{count:>6}  {code} {rule.level.value} {rule.title}")
    print(_summary(report))


def _summary(report: Report) -> str:
    from holdfast.lint.finding import Level

    looked = f"{_counted(report.files, 'file')}, {_counted(report.lines, 'line')}"
    if not report.findings:
        return f"nothing found in {looked}"
    kinds = {"error": Level.ERROR, "warning": Level.WARNING, "note": Level.INFO}
    counts = [_counted(report.of(level), kind) for kind, level in kinds.items() if report.of(level)]
    worst = min(report.findings, key=lambda finding: finding.level.rank)
    return f"{', '.join(counts)} in {looked}; why: holdfast explain {worst.code}"


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
