"""``holdfast doctor``: what is wrong with a data pipeline, before it starts or while it runs."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .amounts import seconds
from .stdout import kept_clear
from .style import FOUND, AsJson, console, print_json, progress

if TYPE_CHECKING:
    from rich.console import Console

    from holdfast.doctor.examination import Examination
    from holdfast.doctor.step import Step
    from holdfast.doctor.symptom import Symptom

_COLOURS = {"error": "bold red", "warning": "bold yellow", "note": "bold cyan"}
_STAGES = 6  # of an examination, about


def doctor(
    target: Annotated[
        str | None,
        typer.Argument(help="module:attribute or file.py:attribute (data set, loader, function), or script.py."),
    ] = None,
    arguments: Annotated[list[str] | None, typer.Argument(help="Of the script, after --.")] = None,
    budget: Annotated[Any, typer.Option(parser=seconds, help="Time for all of it: 30s, 2m.", metavar="TIME")] = "60s",
    workers: Annotated[str, typer.Option(help="Numbers of workers to try, such as 0,1,2; otherwise 0, 1, 2, 4 …")] = "",
    no_ramp: Annotated[bool, typer.Option("--no-ramp", help="Only look; load no samples.")] = False,
    pid: Annotated[
        int | None, typer.Option("--pid", help="Instead: a process of a running job, its trainer, a worker, torchrun.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Examine a data set or loader: what will hang, crash, leak or come out wrong, and how many workers it needs.

    Your objects stay as they are: samples are loaded in forks of this process.

    With --pid, look at a job that runs or hangs, torch's or ours: which worker waits for what, in which line, and who
    owes whom. It goes on unharmed.

    Exit codes: 0 nothing worse than a note, 1 found something, or the job is stalled, 2 wrong usage.
    """
    if (target is None) == (pid is None):
        raise typer.BadParameter("give one: what is to be examined, or --pid of a job that runs", param_hint="TARGET")
    if target is None:
        assert pid is not None
        _look_at(pid, as_json)
        return
    until, numbers = time.monotonic() + budget, _numbers(workers)
    examination = _examined(target, arguments or [], until, numbers, ramps=not no_ramp)
    if as_json:
        print_json(examination.to_dict())
    else:
        _print(examination, console())
    if examination.is_ill:
        raise typer.Exit(FOUND)


def _look_at(pid: int, as_json: bool) -> None:
    from holdfast.doctor.live import look_at

    from .live import print_live

    report = look_at(pid)
    print_live(report, as_json)
    if report.is_stalled:
        raise typer.Exit(FOUND)


def _examined(text: str, arguments: list[str], until: float, numbers: list[int] | None, *, ramps: bool) -> Examination:
    with progress(still=True) as bar, kept_clear():  # what the user's own code prints is not our answer
        task = bar.add_task("loading the target", total=_STAGES)
        from holdfast.targets.target import find

        target = find(text, arguments, max(1.0, until - time.monotonic()))
        from holdfast.doctor.examination import examine  # only now: it imports torch, and there may be no target

        def stage(what: str) -> None:
            bar.update(task, description=what, advance=1, refresh=True)

        return examine(target, max(1.0, until - time.monotonic()), stage, numbers, ramps)


def _numbers(workers: str) -> list[int] | None:
    if not workers:
        return None
    parts = workers.replace(" ", "").split(",")
    if not all(part.isdigit() for part in parts):
        raise typer.BadParameter(f"{workers!r} is no list of numbers; valid is 0,1,2", param_hint="--workers")
    return sorted({int(part) for part in parts})


# -- text --------------------------------------------------------------------------------------


def _print(found: Examination, out: Console) -> None:
    from rich.text import Text

    compared = f": {found.compared} samples compared" if found.compared else ""
    out.print(Text.assemble((found.kind, "bold"), f" ({found.target}){compared}"))
    for symptom in found.symptoms:
        out.print()
        _print_symptom(symptom, out)
    if not found.symptoms:
        out.print(Text("nothing wrong was found" + (" in what was looked at" if found.unlooked else ""), "green"))
    if found.steps:
        out.print()
        _print_steps(found.steps, out)
    _print_end(found, out)


def _print_symptom(symptom: Symptom, out: Console) -> None:
    from rich.text import Text

    severity = symptom.severity.value
    out.print(Text.assemble((severity, _COLOURS[severity]), f"  {symptom.what} [{symptom.check}]"))
    lines = {"where": symptom.where, "seen": symptom.evidence, "fix": symptom.fix}
    lines["more"] = f"holdfast explain {symptom.check}"
    for label, text in lines.items():
        if text:
            _print_line(f"  {label:<6}", text, out)


def _print_line(label: str, text: str, out: Console) -> None:
    """What is too long for a terminal goes on below its beginning."""
    from rich.table import Table
    from rich.text import Text

    if not out.is_terminal:
        out.print(f"{label}{text}")
        return
    row = Table.grid()
    row.add_column(no_wrap=True, style="dim")
    row.add_column(overflow="fold")
    row.add_row(label, Text(text))
    out.print(row)


def _print_steps(steps: tuple[Step, ...], out: Console) -> None:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="dim")
    for name in ("workers", "samples/s", "CPU/sample", "on CPU", "queued", "own memory", "files", "start"):
        table.add_column(name, justify="right")
    for step in steps:
        table.add_row(
            str(step.workers),
            f"{step.rate:,.0f}",
            f"{step.cpu * 1e3:.2f} ms",
            f"{step.busy:.0%}",
            f"{step.queued:.0%}",
            f"{step.uss / 2**20:.0f} MiB",
            str(step.descriptors),
            f"{step.start:.2f} s",
        )
    out.print(table)


def _print_end(found: Examination, out: Console) -> None:
    from rich.text import Text

    for text in found.unlooked:
        _print_line("not looked at  ", text, out)
    if found.held is not None:
        _print_line("held back by   ", f"{found.held.by.value}: {found.held.why}", out)
    if found.advice is not None and found.advice.workers is not None:
        decisive, *others = found.advice.reasons
        out.print(Text.assemble("\n", (f"num_workers={found.advice.workers}", "bold green"), f"  {decisive}"))
        for reason in others:
            _print_line(" " * 15, reason, out)
