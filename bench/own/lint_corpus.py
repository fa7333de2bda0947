"""What ``holdfast lint`` finds in installed packages, and how fast: ``python -m bench.own.lint_corpus torch``.

These are large and mostly clean, so nearly every finding would be a false alarm. Data sets, loaders and item functions
are counted too: rules that have nothing to look at find nothing.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from importlib.util import find_spec
from pathlib import Path

from holdfast.lint.checking import parse
from holdfast.lint.files import files
from holdfast.lint.run import Report, lint
from holdfast.lint.script import Script
from holdfast.lint.settings import Settings

PACKAGES = ("torch", "lightning", "transformers", "accelerate")
SETTINGS = Settings()


def folder(package: str) -> Path:
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        raise SystemExit(f"{package} is not installed")
    return Path(spec.origin).parent


def timed(path: Path) -> tuple[Report, float]:
    """In seconds of CPU time: one process, and the machine may be busy with others."""
    begin = time.process_time()
    report = lint([str(path)], SETTINGS)
    return report, time.process_time() - begin


def subjects(path: Path) -> Counter[str]:
    """How much there is for rules to look at."""
    counted: Counter[str] = Counter()
    for file in files(str(path)):
        try:
            text = file.read_text(encoding="utf-8")
            script = Script(text, parse(text))
        except (SyntaxError, ValueError):
            continue
        counted += Counter(
            {"data sets": len(script.datasets), "loaders": len(script.loaders), "functions": len(script.items)}
        )
    return counted


def main(packages: list[str]) -> None:
    for package in packages or PACKAGES:
        report, seconds = timed(folder(package))
        speed = f"{report.lines:,} lines in {seconds:.1f} s, {report.lines / seconds:,.0f} lines/s"
        looked = ", ".join(f"{count} {what}" for what, count in subjects(folder(package)).items())
        print(f"{package}: {report.files:,} files, {speed}; {looked or 'no data sets'}")
        for code, count in report.counts.items():
            print(f"  {count:>4}  {code}")
        for finding in report.findings:
            print(f"        {finding.place} {finding.code} {finding.message}")


if __name__ == "__main__":
    main(sys.argv[1:])
