"""The command ``holdfast``. Its commands gather facts and print them; torch is imported by those that need it."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from holdfast import __version__

from .doctor import doctor
from .env import env
from .explain import explain
from .gauntlet import gauntlet
from .lint import lint
from .replay import replay
from .run import run
from .scan import scan
from .style import USAGE, print_any_text, print_mistake

app = typer.Typer(
    name="holdfast",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # help in plain text: half the time
)
_OPTIONS_FIRST = {"allow_interspersed_args": False}  # what stands behind the script is the script's
# In the order in which one meets them.
app.command(short_help="Run a script with our loaders in place of torch's.", context_settings=_OPTIONS_FIRST)(run)
app.command(short_help="What is wrong with a loader, or with a job that hangs.")(doctor)
app.command(short_help="What will go wrong in workers, seen in the source.")(lint)
app.command(short_help="Read every sample once; list the bad ones.")(scan)
app.command(short_help="One sample again, with the random numbers it had.")(replay)
app.command(short_help="What an error means, ours or torch's, and what to do.")(explain)
app.command(short_help="Every failure that we know, with torch and with us.")(gauntlet)
app.command(short_help="What a bug report needs to know of this machine.")(env)


def _print_version(asked: bool) -> None:
    if asked:
        print(f"holdfast {__version__}")
        raise typer.Exit


@app.callback()
def _holdfast(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Data loading for PyTorch that holds.

    \b
      holdfast run train.py           your script as it is, with our loaders
      holdfast doctor train.py        what is wrong with its data, and how many workers
      holdfast doctor --pid 4711      what a job that hangs is waiting for
      holdfast lint src/              mistakes that can be seen in the source
      holdfast scan data.py:dataset   which samples are corrupt, slow or deadly
      holdfast explain "pasted error" what it means, and what to do
    """


def main() -> None:
    """Entry point of the command."""
    from holdfast.targets.mistake import Mistake

    print_any_text()
    try:
        app()
    except Mistake as mistake:
        print_mistake(mistake)
        sys.exit(USAGE)
