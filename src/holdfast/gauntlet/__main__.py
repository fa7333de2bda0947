"""`python -m holdfast.gauntlet`: the same as `holdfast gauntlet`."""

from __future__ import annotations

import typer

from holdfast.cli.gauntlet import gauntlet

if __name__ == "__main__":
    typer.run(gauntlet)
