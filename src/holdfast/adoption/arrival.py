"""What happens in each interpreter of the program before its first line, and after its last.

Of the standard library only what every Python has imported by then, or nearly: most interpreters that a program starts
never see a loader, and wait for us all the same.
"""

from __future__ import annotations

import atexit
import os
import sys
import time
from typing import Any

TERMS = "HOLDFAST_RUN"  # what was asked for, as JSON
ROOT = "HOLDFAST_RUN_ROOT"  # the process that sums up: the program itself, and not its children
# They start the processes that load, and load nothing themselves: modules, and scripts.
_LAUNCHERS = {
    *("torch.distributed.run", "torch.distributed.launch", "accelerate.commands.launch"),
    *("torchrun", "accelerate"),
}


def arrive() -> None:
    """Harmless where nobody asked for us."""
    if TERMS not in os.environ:
        return
    import json

    from .diversion import Diversion
    from .hook import when_imported

    began, terms = time.monotonic(), json.loads(os.environ[TERMS])
    is_root = os.environ.setdefault(ROOT, str(os.getpid())) == str(os.getpid())
    if is_root:
        atexit.register(_sum_up, terms, began, os.getpid())  # the first to be registered is the last to be called
    if is_root and not _launches():
        _warm()
    diversion = Diversion(terms["options"], "" if is_root else terms["folder"], began)
    when_imported("torch", diversion.begin)
    when_imported("holdfast.loader", diversion.make_ready)


def _launches() -> bool:
    """Whether this is ``python -m`` a launcher, or its script."""
    return any(os.path.basename(word) in _LAUNCHERS for word in sys.orig_argv[1:4])


def _warm() -> None:
    if os.environ.get("HOLDFAST_WARM", "1") != "0":
        from holdfast._system.starts import resolve, warm_for

        warm_for(resolve("auto", None), 0)


def _sum_up(terms: Any, began: float, root: int) -> None:
    if os.getpid() != root:
        return  # a fork of the program, that ends as it would
    from .summary import conclude

    conclude(terms, time.monotonic() - began)
    if getattr(sys, "last_type", None) is KeyboardInterrupt:
        _remember_interrupt()


def _remember_interrupt() -> None:
    """By which Python ends, with the exit status of that signal; but it forgets it with the next text that it executes.

    Modules with named tuples or data classes do that when they are imported. An interrupted text reminds it.
    """
    try:
        exec("raise KeyboardInterrupt")
    except KeyboardInterrupt:
        pass
