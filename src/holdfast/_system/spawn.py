"""Workers as new interpreters."""

from __future__ import annotations

import importlib
import os
import subprocess
import threading
from collections.abc import Sequence

from .interpreter import command, deaf_to_interrupts, worker_environ
from .process import ChildProcess


def worker(fds: list[int], stderr: int, modules: Sequence[str]) -> ChildProcess:
    """A new interpreter that holds ``fds``, speaks to ``stderr``, imports ``modules`` and becomes a worker."""
    from_main = threading.current_thread() is threading.main_thread()
    its_part = f"become_worker({fds!r}, {os.getpid()}, {from_main}, {tuple(modules)!r})"
    with deaf_to_interrupts():
        popen = subprocess.Popen(
            command(f"from holdfast._system.spawn import become_worker; {its_part}"),
            pass_fds=fds,
            stdin=subprocess.DEVNULL,
            stderr=stderr,
            env=worker_environ(),
        )
    process = ChildProcess(popen.pid)
    popen.returncode = 0  # the pidfd tells; subprocess must not wait for it as well
    return process


def become_worker(fds: list[int], parent: int, from_main: bool, modules: Sequence[str]) -> None:
    """Runs in the new interpreter."""
    from . import posix_child

    posix_child.reset_signals()
    posix_child.tie_to(parent, from_main)
    posix_child.reset_affinity()
    for fd in fds:
        os.set_inheritable(fd, False)
    from holdfast._worker.process import work

    for name in modules:
        importlib.import_module(name)
    work(fds)
