"""Findings as SARIF 2.1.0, which code hosts and editors read."""

from __future__ import annotations

from pathlib import PurePath
from typing import Any
from urllib.parse import quote

from .finding import Finding, Level
from .rule import all_rules, page
from .run import Report

_LEVELS = {Level.ERROR: "error", Level.WARNING: "warning", Level.INFO: "note"}


def as_sarif(report: Report, version: str) -> dict[str, Any]:
    rules = [_rule(code) for code in all_rules()]
    numbers = {rule["id"]: number for number, rule in enumerate(rules)}
    driver = {"name": "holdfast", "version": version, "rules": rules}
    results = [_result(finding, numbers[finding.code]) for finding in report.findings]
    run = {"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results}
    return {"$schema": "https://json.schemastore.org/sarif-2.1.0.json", "version": "2.1.0", "runs": [run]}


def _rule(code: str) -> dict[str, Any]:
    rule = all_rules()[code]
    return {
        "id": code,
        "shortDescription": {"text": rule.title},
        "help": {"text": f"holdfast explain {code}", "markdown": page(code)},
        "defaultConfiguration": {"level": _LEVELS[rule.level], "enabled": rule.level is not Level.INFO},
    }


def _result(finding: Finding, number: int) -> dict[str, Any]:
    cell = "" if finding.cell is None else f" (cell {finding.cell})"
    where = {
        "artifactLocation": {"uri": quote(PurePath(finding.path).as_posix())},
        "region": {"startLine": finding.line, "startColumn": finding.column},
    }
    return {
        "ruleId": finding.code,
        "ruleIndex": number,
        "level": _LEVELS[finding.level],
        "message": {"text": f"{finding.message}{cell}. Fix: {finding.fix}"},
        "locations": [{"physicalLocation": where}],
    }
