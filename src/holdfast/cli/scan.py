"""``holdfast scan``: every sample read once, and what is wrong with which."""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .amounts import duration, seconds, share
from .stdout import kept_clear
from .style import FOUND, AsJson, console, print_json, progress

if TYPE_CHECKING:
    from holdfast.scanning.scan import Options, Scan
    from holdfast.scanning.survey import Survey

INTERRUPTED = 130
QUIET = 10.0  # seconds between two lines of progress where there is no terminal
KINDS = ("corrupt", "deadly", "odd", "slow")


def scan(
    target: Annotated[str, typer.Argument(help="module:attribute, file.py:attribute, or a script.")],
    arguments: Annotated[list[str] | None, typer.Argument(help="Those of a script, after --.")] = None,
    output: Annotated[Path | None, typer.Option(help="The quarantine file. [default: TARGET.bad.jsonl]")] = None,
    report: Annotated[Path | None, typer.Option(help="Write all that was found to this file, as JSON.")] = None,
    quarantine: Annotated[str, typer.Option(help="Which to list: corrupt, deadly, odd, slow.")] = "corrupt,deadly",
    workers: Annotated[int | None, typer.Option(min=1, help="Processes. [default: the CPUs that may be used]")] = None,
    timeout: Annotated[Any, typer.Option(parser=seconds, help="Longest time for one sample.", metavar="TIME")] = "60s",
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first so many samples.")] = None,
    sample: Annotated[Any, typer.Option(parser=share, help="Only some, by chance: 10%.", metavar="SHARE")] = None,
    seed: Annotated[int, typer.Option(help="Of that chance.")] = 0,
    budget: Annotated[Any, typer.Option(parser=seconds, help="Stop after this time.", metavar="TIME")] = None,
    restart: Annotated[bool, typer.Option("--restart", help="Forget an interrupted scan, and begin anew.")] = False,
    as_json: AsJson = False,
) -> None:
    """Read every sample once, and find those that are corrupt, deadly, slow or odd.

    Corrupt ones raise, deadly ones end their worker or do not end, odd ones differ from nearly all others (type, shape,
    NaN, ...). What is found is written to a file that a loader leaves out: on_error=holdfast.Quarantine(FILE). A scan
    that was interrupted goes on with the same command.

    Exit codes: 0 nothing found, 1 something found, 2 wrong usage, 130 interrupted.
    """
    from holdfast.scanning.report import findings, finished
    from holdfast.scanning.scan import Options

    chosen = _kinds(quarantine)
    file = output or Path(f"{_plain(target)}.bad.jsonl")
    options = Options(file, workers, timeout, limit, sample, seed, budget, chosen, restart)
    if report is not None:
        _write(report, "")  # now: to find out after hours that it cannot be written is too late
    with kept_clear(as_json):
        found = _scanned(target, arguments or [], options)
        told = finished(found)
    if report is not None:
        _write(report, json.dumps(told, indent=2, ensure_ascii=False) + "\n")
    if as_json:
        print_json(told)
    else:
        from .scan_text import print_report

        print_report(told, console())
    if found.stopped == "interrupted":
        raise typer.Exit(INTERRUPTED)
    if any(findings(told)):
        raise typer.Exit(FOUND)


def _scanned(text: str, arguments: list[str], options: Options) -> Scan:
    from holdfast.scanning import scan as samples
    from holdfast.scanning import streaming
    from holdfast.targets.target import find

    target = find(text, arguments)
    with _heard() as hear:
        read = streaming.scan if samples.is_stream(target.dataset) else samples.scan
        return read(target, options, hear)


def _write(file: Path, text: str) -> None:
    from holdfast.scanning.writing import writing

    with writing(file):
        file.write_text(text, encoding="utf-8")


def _kinds(text: str) -> frozenset[str]:
    chosen = frozenset(part.strip() for part in text.split(",") if part.strip())
    if unknown := sorted(chosen - set(KINDS) - {"none"}):
        raise typer.BadParameter(f"{unknown[0]!r} is none of {', '.join(KINDS)}", param_hint="--quarantine")
    return chosen - {"none"}


def _plain(target: str) -> str:
    """``data/train.py:make`` as the name of a file: ``train-make``."""
    place, _, attribute = target.rpartition(":")
    stem = Path(place or attribute).name.removesuffix(".py")
    return re.sub(r"[^\w.-]+", "-", f"{stem}-{attribute}" if place else stem)


# -- while it lasts ----------------------------------------------------------------------------


@contextmanager
def _heard() -> Iterator[Callable[[Survey], None]]:
    """A bar on a terminal, else a line from time to time; both on standard error."""
    with progress() as bar:
        lines = _Lines()

        def hear(survey: Survey) -> None:
            if not bar.tasks:  # what was read before this run does not count for the time that is left
                bar.add_task("", total=survey.total, completed=survey.count)
            bar.update(bar.task_ids[0], description=_bad(survey) or "reading", completed=survey.count)
            if bar.disable:
                lines.hear(survey)

        yield hear


class _Lines:
    def __init__(self) -> None:
        self._next = time.monotonic() + QUIET

    def hear(self, survey: Survey) -> None:
        now = time.monotonic()
        if now < self._next:
            return
        self._next = now + QUIET
        of, left = "", ""
        if survey.total is not None:
            of = f" of {survey.total:,}"
        if survey.total is not None and survey.seconds > 1:
            left = f", {duration((survey.total - survey.count) * survey.seconds / survey.count)} left"
        bad = _bad(survey)
        print(f"holdfast: {survey.count:,}{of} read{left}{bad and ': '}{bad}", file=sys.stderr, flush=True)


def _bad(survey: Survey) -> str:
    counts = {kind: survey.failed(kind) for kind in KINDS}
    return ", ".join(f"{count:,} {kind}" for kind, count in counts.items() if count)
