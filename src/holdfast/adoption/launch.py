"""The program's command and environment: Python's own, and the two things by which we come along."""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from holdfast.targets.mistake import Mistake

from .arrival import ROOT, TERMS
from .options import OF_THE_RUN

SITE = Path(__file__).resolve().parent / "site"


def command(program: str, arguments: Sequence[str], *, is_module: bool) -> list[str]:
    if not is_module and not os.path.exists(program):
        raise Mistake(f"there is no file {program}", "valid are script.py, and -m module")
    flags = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]
    return [sys.executable, *flags, *(["-m"] if is_module else []), program, *arguments]


def environ(options: Mapping[str, Any], program: str, *, is_module: bool) -> dict[str, str]:
    """``options`` as they were read; those of the loaders and those of the run part here."""
    terms = {
        "options": {name: value for name, value in options.items() if name not in OF_THE_RUN},
        "quiet": options.get("quiet", False),
        "report": options.get("report"),
        "script": None if is_module else os.path.abspath(program),
        "folder": os.path.join(tempfile.gettempdir(), f"holdfast-{os.getpid()}-run-{secrets.token_hex(8)}"),
    }
    found = {name: value for name, value in os.environ.items() if name != ROOT}
    theirs = found.get("PYTHONPATH")
    found["PYTHONPATH"] = os.pathsep.join([str(SITE), theirs] if theirs else [str(SITE)])
    found[TERMS] = json.dumps(terms)
    if not options.get("warm", True):
        found["HOLDFAST_WARM"] = "0"
    return found


def folder_of(program: str, *, is_module: bool) -> Path:
    """Where the search for ``pyproject.toml`` begins."""
    if is_module:
        return Path.cwd()
    path = Path(program).absolute()
    return path if path.is_dir() else path.parent
