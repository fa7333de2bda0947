"""Trainers in processes of their own, for what only the end of a process shows."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import psutil

HERE = Path(__file__).parent


def start(code: str, **environ: str) -> subprocess.Popen[str]:
    code = f"import sys; sys.path.insert(0, {str(HERE)!r})\n" + textwrap.dedent(code)
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen([sys.executable, "-c", code], text=True, env={**os.environ, **environ}, **pipes)


def run(code: str, **environ: str) -> str:
    program = start(code, **environ)
    out, err = program.communicate(timeout=60)
    assert program.returncode == 0, err
    return out


def gone(pids: list[int]) -> bool:
    """All of these end, soon."""
    processes = [psutil.Process(pid) for pid in pids if psutil.pid_exists(pid)]
    _, alive = psutil.wait_procs(processes, timeout=10)
    return not [process for process in alive if process.status() != psutil.STATUS_ZOMBIE]
