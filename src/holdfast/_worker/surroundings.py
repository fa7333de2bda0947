"""The trainer's surroundings, taken over by a process that did not inherit them."""

from __future__ import annotations

import os
import sys

from holdfast._system.interpreter import current_directory

Surroundings = tuple[dict[str, str], str, list[str], list[str]]
_SAME: Surroundings = {}, "", [], []  # threads are in them already


def gather() -> Surroundings:
    """Environment, directory, import path and arguments of this process, as they are now."""
    return dict(os.environ), current_directory(), list(sys.path), list(sys.argv)


def of(workers: str) -> Surroundings:
    """What workers of this kind have to be told of them, now."""
    return _SAME if workers == "thread" else gather()


def take_over(environ: dict[str, str], cwd: str, sys_path: list[str]) -> None:
    """Environment, directory and import path of the trainer as they were when the crew was started."""
    if dict(os.environ) != environ:
        for name in os.environ.keys() - environ.keys():
            del os.environ[name]
        os.environ.update(environ)
    if cwd:
        os.chdir(cwd)  # without asking where we are: that directory may have been removed since
    sys.path[:] = sys_path
