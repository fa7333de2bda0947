"""The command ``holdfast``. Its commands gather facts and print them; torch is not imported."""

from __future__ import annotations

import typer

from .explain import explain
from .gauntlet import gauntlet

app = typer.Typer(
    name="holdfast",
    help="Data loading for PyTorch that holds.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # help in plain text: half the time
)
app.command()(explain)
app.command()(gauntlet)


@app.callback()
def _holdfast() -> None:
    """Data loading for PyTorch that holds."""  # with a callback, commands keep their names however few they are


def main() -> None:
    """Entry point of the command."""
    app()
