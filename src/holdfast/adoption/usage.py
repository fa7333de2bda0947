"""What the loaders of this process did, by the place where they were made."""

from __future__ import annotations

import atexit
import os
import sys
import sysconfig
import time
import weakref
from collections import Counter
from dataclasses import asdict, astuple
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast._engine.tally import Tally
from holdfast.fault import HEAD, Fault, row

from . import letters
from .places import shown

if TYPE_CHECKING:
    from types import FrameType

    from holdfast.ledger import Ledger
    from holdfast.loader import DataLoader

KEPT = 20  # faults of each place
_LIBRARIES = tuple({sysconfig.get_path(name) + os.sep for name in ("stdlib", "purelib", "platlib")})
_OURS = str(Path(__file__).parent.parent) + os.sep


class Place:
    """Where loaders were made, and all that those did together."""

    def __init__(self, line: str, dataset: str) -> None:
        self.line, self.dataset = line, dataset
        self._made, self._samples, self._sum = 0, 0, Tally()
        self._counts: Counter[tuple[str, str]] = Counter()
        self._faults: list[Fault] = []
        self._alive: weakref.WeakSet[_Counted] = weakref.WeakSet()

    def add(self, loader: DataLoader[Any]) -> None:
        self._made += 1
        loader._tally = _Counted(self, loader.faults)
        self._alive.add(loader._tally)

    def take(self, tally: Tally, ledger: Ledger) -> None:
        self._sum += tally
        self._samples += ledger.seen - ledger.carried
        self._counts.update(ledger.counts())
        self._faults += ledger[: KEPT - len(self._faults)]

    def facts(self) -> dict[str, Any]:
        """Plain values, that JSON can carry."""
        for tally in list(self._alive):
            tally.settle()
        found = {"place": self.line, "dataset": self.dataset, "made": self._made, "samples": self._samples}
        counts = [{"kind": kind, "action": action, "count": count} for (kind, action), count in self._counts.items()]
        faults = [fault.to_dict() | {"row": dict(zip(HEAD, row(fault)))} for fault in self._faults]
        return found | asdict(self._sum) | {"counts": counts, "faults": faults}


class _Counted(Tally):
    """Goes into the sum of its place when neither the loader nor an iterator of it has any more use for it.

    So a program that makes a loader for every step keeps nothing of them. Not a finalizer of the loader, which may be
    gone long before its iterator is: ``for batch in DataLoader(dataset)``.
    """

    def __init__(self, place: Place, ledger: Ledger) -> None:
        super().__init__()
        self._place, self._ledger = place, ledger
        self._settled = False

    def settle(self) -> None:
        if not self._settled:
            self._settled = True
            self._place.take(self, self._ledger)

    def __del__(self) -> None:
        self.settle()

    def __reduce__(self) -> Any:
        return Tally, astuple(self)  # a copy, or a loader in another process, is nobody's to count


_places: dict[tuple[str, str], Place] = {}
_folder = ""  # for the letter of a process that is not the program itself


def note(loader: DataLoader[Any]) -> None:
    line, dataset = _where(sys._getframe(1)), type(loader.dataset).__name__
    if not _places and _folder:
        letters.announce(_folder)
    _places.setdefault((line, dataset), Place(line, dataset)).add(loader)


def facts(seconds: float) -> dict[str, Any]:
    """Of this process, which has run for so long."""
    rank = os.environ.get("RANK", os.environ.get("LOCAL_RANK"))
    loaders = [place.facts() for place in _places.values()]
    return {"pid": os.getpid(), "rank": rank, "seconds": seconds, "loaders": loaders}


def tell_at_end(folder: str, began: float) -> None:
    global _folder
    _folder = folder
    atexit.register(_tell, began)


def _tell(began: float) -> None:
    if _places:
        letters.send(_folder, facts(time.monotonic() - began))


def _where(frame: FrameType | None) -> str:
    """The line of the program, and not of a library that makes loaders for it; that one, where it is all there is."""
    library = ""
    while frame is not None:
        path = frame.f_code.co_filename
        if not path.startswith((_OURS, "<")):
            line = f"{shown(path)}:{frame.f_lineno}"
            if not path.startswith(_LIBRARIES):
                return line
            library = library or line
        frame = frame.f_back
    return library or "<unknown>"


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_places.clear)  # they are the parent's
