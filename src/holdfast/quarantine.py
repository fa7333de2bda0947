"""Samples known to be bad, remembered across runs in a file with one line of JSON for each."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from .policies import Answer, Kinds, Skip

if TYPE_CHECKING:
    from .fault import Fault
    from .ledger import Ledger

FIELDS = ("index", "where", "kind", "error", "when")  # of a line


@dataclass(frozen=True, init=False)
class Quarantine(Skip):
    """Skips, and writes what it skipped to ``path``; what is listed there is left out before it is fetched.

    A line names a sample by its index and, where that is known, by what describes it (a path): when the data set
    was changed and the index means another sample now, the line does not count.
    """

    path: str | os.PathLike[str] = "bad.jsonl"
    limit: int | float | None = None
    refill: bool = True
    probation: int = 100
    on: Kinds | None = None
    never: Kinds = ()

    def __init__(self, path: str | os.PathLike[str], **options: Any) -> None:
        unknown = set(options) - {"limit", "refill", "probation", "on", "never"}
        if unknown:
            raise TypeError(f"Quarantine() got an unexpected keyword argument {unknown.pop()!r}")
        for name, value in {"path": os.fspath(path), **options}.items():
            object.__setattr__(self, name, value)
        self.__post_init__()

    def _answer(self, fault: Fault, ledger: Ledger) -> Answer | None:
        answer = super()._answer(fault, ledger)
        if fault.item is not None or (fault.index is not None and not ledger.is_bad(fault.index)):
            self._write(fault)
        return answer

    def _write(self, fault: Fault) -> None:
        facts = fault.to_dict()
        append(self.path, {name: facts[name] for name in FIELDS})

    def known(self, describe: Callable[[Any], str]) -> Iterator[tuple[Any, str]]:
        """(index, where) of every line that still holds. Items of a stream have no index by which to know them."""
        for index, where in listed(self.path):
            if index is not None and (not where or describe(index) in ("", where)):
                yield index, where


def append(path: str | os.PathLike[str], entry: Mapping[str, Any]) -> None:
    """One more line, with all of ``FIELDS``."""
    line = json.dumps(entry) + "\n"
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    with open(path, "ab+", buffering=0) as file:  # one write: several ranks may append to one file
        file.write((line if _ends_well(file) else f"\n{line}").encode())


def listed(path: str | os.PathLike[str]) -> Iterator[tuple[Any, str]]:
    """(index, where) of every line; nothing where there is no file."""
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return
    for line in lines:
        try:
            entry = json.loads(line)
            index, where = entry["index"], entry.get("where", "")
        except (ValueError, TypeError, KeyError):
            continue  # a line that was cut short when its writer was killed
        yield tuple(index) if isinstance(index, list) else index, where  # JSON has no tuples


def _ends_well(file: IO[bytes]) -> bool:
    """Whether its last line is complete: whoever wrote it may have been killed."""
    if not file.seek(0, os.SEEK_END):
        return True
    file.seek(-1, os.SEEK_END)
    return file.read(1) == b"\n"
