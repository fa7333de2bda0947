"""``holdfast run`` as a user starts it, and the same program with plain Python."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

HOLDFAST = [sys.executable, "-c", "from holdfast.cli import main; main()"]
Ended = subprocess.CompletedProcess


def run(folder: Path, *words: str, stdin: str = "", timeout: float = 100, **environ: str) -> Ended[str]:
    """``holdfast run`` with these words, in that folder."""
    return _ended([*HOLDFAST, "run", *words], folder, stdin, timeout, environ)


def python(folder: Path, *words: str, stdin: str = "", timeout: float = 100, **environ: str) -> Ended[str]:
    return _ended([sys.executable, *words], folder, stdin, timeout, environ)


def _ended(command: Sequence[str], folder: Path, stdin: str, timeout: float, environ: dict[str, str]) -> Ended[str]:
    return subprocess.run(
        command, cwd=folder, input=stdin, capture_output=True, text=True, timeout=timeout, env={**os.environ, **environ}
    )
