"""This process becomes another program; where the system cannot do that, it runs it and ends as it does."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import NoReturn


def become(command: Sequence[str], environ: Mapping[str, str]) -> NoReturn:
    """The terminal, its signals, and the exit status are the program's; it has our pid where there is exec."""
    for stream in filter(None, (sys.stdout, sys.stderr)):  # None where it was closed before Python came
        stream.flush()
    if sys.platform != "win32":
        os.execve(command[0], list(command), environ)
    else:
        process = subprocess.Popen(command, env=environ)
        while True:
            try:
                sys.exit(process.wait())
            except KeyboardInterrupt:
                pass  # Ctrl-C reaches the program as well: what it means is for the program to say
