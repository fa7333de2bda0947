"""``holdfast run``: a program as it is, with our loader wherever it asks for torch's."""

from __future__ import annotations

from typing import Annotated

import typer

Text = str | None
_NOT_OPTIONS = ("program", "arguments", "module", "no_warm")


def run(
    context: typer.Context,
    program: Annotated[str, typer.Argument(metavar="PROGRAM", help="script.py; with -m: a module.")],
    arguments: Annotated[list[str] | None, typer.Argument(metavar="ARGS", help="For the program.")] = None,
    module: Annotated[bool, typer.Option("-m", help="PROGRAM is a module, as for python -m.")] = False,
    on_error: Annotated[
        Text,
        typer.Option(
            metavar="POLICY",
            help="For samples that fail: raise, skip, skip:10, skip:0.01, replace, retry:3, wait, debug, "
            "quarantine:FILE; several in turn: retry:3,skip.",
        ),
    ] = None,
    num_workers: Annotated[Text, typer.Option(metavar="N", help="Of every loader, whatever it says itself.")] = None,
    stall_timeout: Annotated[
        Text, typer.Option(metavar="SECONDS", help="Without progress, after which a sample has failed.")
    ] = None,
    max_restarts: Annotated[Text, typer.Option(metavar="N", help="Workers that died and may be replaced.")] = None,
    start: Annotated[Text, typer.Option(metavar="HOW", help="auto, zygote, standby, fork, spawn, forkserver.")] = None,
    workers: Annotated[Text, typer.Option(metavar="KIND", help="process or thread.")] = None,
    shard: Annotated[
        Text, typer.Option(metavar="HOW", help="auto or worker: divides streams that do not divide themselves.")
    ] = None,
    recycle_after: Annotated[
        Text, typer.Option(metavar="BATCHES", help="After which a worker is replaced, against leaks.")
    ] = None,
    max_worker_memory: Annotated[Text, typer.Option(metavar="SIZE", help="2G: above it, a worker is replaced.")] = None,
    max_shared_memory: Annotated[Text, typer.Option(metavar="SIZE", help="512M: for the batches of a loader.")] = None,
    fault_log: Annotated[Text, typer.Option(metavar="FILE", help="A line of JSON for each fault, at once.")] = None,
    bundle: Annotated[Text, typer.Option(metavar="FOLDER", help="All that is known when a fault ends the run.")] = None,
    allow_empty: Annotated[bool | None, typer.Option("--allow-empty", help="A data set may have no samples.")] = None,
    report: Annotated[Text, typer.Option(metavar="FILE", help="The summary as JSON.")] = None,
    no_warm: Annotated[bool, typer.Option("--no-warm", help="Start no process before a loader asks for it.")] = False,
    quiet: Annotated[bool | None, typer.Option("--quiet", "-q", help="No summary.")] = None,
) -> None:
    """Run a program as it is, with holdfast's loader wherever it asks for torch's.

    Also inside Lightning and accelerate, and in every Python that the program starts: ranks, for example (holdfast run
    -m torch.distributed.run --nproc-per-node 2 train.py). What the loaders did is said at the end, on standard error.

    Options come before PROGRAM, or from [tool.holdfast] of the nearest pyproject.toml.

    Exit codes: the program's own; 2 wrong usage.
    """
    from holdfast._system.becoming import become
    from holdfast.adoption import launch
    from holdfast.adoption.options import read
    from holdfast.adoption.settings import settings

    command = launch.command(program, arguments or (), is_module=module)
    given = {name: value for name, value in context.params.items() if name not in _NOT_OPTIONS and value is not None}
    options = settings(launch.folder_of(program, is_module=module)) | read(given)
    if no_warm:
        options["warm"] = False
    become(command, launch.environ(options, program, is_module=module))
