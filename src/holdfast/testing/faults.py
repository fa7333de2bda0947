"""Named faults, for tests that want to see them survived.

A fault strikes when sample ``index`` is loaded::

    loader = DataLoader(Faulty(dataset, DiesAt(7, once=True)), num_workers=2)   # dies once, then all is well
    loader = DataLoader(Faulty(dataset, DiesAt(7)), num_workers=2)              # poison: dies whenever 7 is loaded

With ``once=True`` it strikes the first time only, in whichever process that is, under every way to start workers.
"""

from __future__ import annotations

import ctypes
import itertools
import os
import signal
import sys
import tempfile
import threading
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Any


class Fault(ABC):
    """Something that goes wrong when sample ``index`` is loaded."""

    def __init__(self, index: int, *facts: Any, once: bool = False) -> None:
        self.index, self.facts = index, facts
        self.once = Once() if once else None

    def meet(self, index: Any) -> None:
        """Strikes if ``index`` is the one; call it where a data set of your own loads a sample."""
        if index == self.index and (self.once is None or self.once.first()):
            self.strike()

    @abstractmethod
    def strike(self) -> None:
        """Do it now, to this process."""

    def __str__(self) -> str:
        said = [str(self.index), *map(_said, self.facts), *(["once"] if self.once else [])]
        return f"{type(self).__name__}({', '.join(said)})"

    __repr__ = __str__


class DiesAt(Fault):
    """The process sends itself a signal, SIGKILL unless told otherwise: what the kernel does when memory is out."""

    def __init__(self, index: int, number: int = signal.SIGKILL, *, once: bool = False) -> None:
        super().__init__(index, signal.Signals(number), once=once)

    def strike(self) -> None:
        os.kill(os.getpid(), self.facts[0])
        threading.Event().wait(10)  # until it is delivered


class ExitsAt(Fault):
    """The process ends by ``os._exit(status)``, as a C library does that gives up: no handler runs, nothing is said."""

    def __init__(self, index: int, status: int = 0, *, once: bool = False) -> None:
        super().__init__(index, status, once=once)

    def strike(self) -> None:
        os._exit(self.facts[0])


class QuitsAt(Fault):
    """``sys.exit(status)``, which is an exception that ``except Exception`` does not catch."""

    def __init__(self, index: int, status: int = 0, *, once: bool = False) -> None:
        super().__init__(index, status, once=once)

    def strike(self) -> None:
        sys.exit(self.facts[0])


class RaisesAt(Fault):
    """Raises ``error``: an exception, or a function of no arguments that makes one."""

    def __init__(self, index: int, error: BaseException | Callable[[], BaseException], *, once: bool = False) -> None:
        super().__init__(index, error, once=once)

    def strike(self) -> None:
        error = self.facts[0]
        raise error if isinstance(error, BaseException) else error()


class SegfaultsAt(Fault):
    """Reads address 0 in C code, as a decoder does that meets a rotten file. Leaves no core file."""

    def strike(self) -> None:
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        ctypes.string_at(0)


class AbortsAt(Fault):
    """``abort()``, as a C library does whose assertion failed. Leaves no core file."""

    def strike(self) -> None:
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        os.abort()


class StopsAt(Fault):
    """The process stops itself by SIGSTOP, as a debugger or a batch system does: it neither runs nor ends."""

    def strike(self) -> None:
        os.kill(os.getpid(), signal.SIGSTOP)


class StarvesAt(Fault):
    """A real ``MemoryError``: the process may have no more memory (RLIMIT_AS), and asks for ``size`` bytes more."""

    def __init__(self, index: int, size: int = 1 << 30, *, once: bool = False) -> None:
        super().__init__(index, size, once=once)

    def strike(self) -> None:
        import resource

        before = resource.getrlimit(resource.RLIMIT_AS)
        with open("/proc/self/statm") as file:
            used = int(file.read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + self.facts[0] // 2, before[1]))
        try:
            bytearray(self.facts[0])
        finally:
            resource.setrlimit(resource.RLIMIT_AS, before)


class GivesAt(Fault):
    """The sample is ``value``, or what this function returns: None, or something that no batch can hold."""

    def __init__(self, index: int, value: Any = None, *, once: bool = False) -> None:
        super().__init__(index, value, once=once)

    def strike(self) -> None:
        raise Instead(self.facts[0])


class HangsAt(Fault):
    """Waits for something that never comes, as on a dead socket. Python's other threads and signal handlers run."""

    def strike(self) -> None:
        while True:
            threading.Event().wait(3600)


class SpinsAt(Fault):
    """Never comes back from C code and never lets go of the GIL: no thread or signal handler of Python runs again."""

    def strike(self) -> None:
        sum(itertools.repeat(0))


class Instead(Exception):
    """Carries the value of `GivesAt` to whoever loads the sample."""


class Faulty:
    """A map-style data set with faults: ``dataset[i]``, unless one of them strikes first."""

    def __init__(self, dataset: Any, *faults: Fault) -> None:
        self.dataset, self.faults = dataset, faults

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitem__(self, index: Any) -> Any:
        try:
            for fault in self.faults:
                fault.meet(index)
        except Instead as instead:
            value = instead.args[0]
            return value() if callable(value) else value
        return self.dataset[index]


class Once:
    """True the first time in any process. A file remembers; it is removed with the object that was made first.

    A file, and neither a lock nor shared memory: it passes through every pickle, and a process that is killed while it
    looks leaves nothing half done.
    """

    def __init__(self) -> None:
        self.path = Path(tempfile.gettempdir()) / f"fault-{os.getpid()}-{os.urandom(6).hex()}"
        weakref.finalize(self, _remove, self.path, os.getpid())

    def first(self) -> bool:
        """Whether nobody asked before."""
        try:
            os.close(os.open(self.path, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return False
        return True

    def struck(self) -> bool:
        """Whether somebody has asked."""
        return self.path.exists()


def _remove(path: Path, owner: int) -> None:
    if os.getpid() == owner:
        path.unlink(missing_ok=True)


def _said(fact: Any) -> str:
    if isinstance(fact, signal.Signals):
        return fact.name
    return getattr(fact, "__name__", None) or repr(fact)
