"""One failure as a program: what a user writes, where it runs, and what must come of it on either side."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from textwrap import dedent

from .ran import NotSo, Ran
from .room import Room

__all__ = ["NotSo", "Ran", "Room", "Row", "Side"]


class Side(Enum):
    TORCH = "torch"
    HOLDFAST = "holdfast"


IMPORT = "from torch.utils.data import DataLoader"


@dataclass(frozen=True)
class Row:
    """A failure that this machine can show.

    The program is written for stock torch. For holdfast the import is changed, and where the promise is an option,
    what ``changes`` says; each text must be there exactly once. The checks return what they found in one line, or raise
    ``NotSo``.
    """

    module: str
    text: str | None  # the first line says what a user sees; the rest, why
    program: str
    on_torch: Callable[[Ran], str]
    on_holdfast: Callable[[Ran], str]
    variant: str = ""  # where a failure has several programs
    changes: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)  # other modules beside the program
    room: Room = field(default_factory=Room)
    without_file: bool = False  # the code is in no file, as in a notebook
    patience: float = 4.0  # seconds after its first line of output until torch's program counts as hung
    not_on_torch: str = ""  # why torch cannot show it on a Linux machine

    @property
    def name(self) -> str:
        return self.module.rpartition(".")[2]

    @property
    def id(self) -> str:
        return self.name.partition("_")[0].upper()

    @property
    def symptom(self) -> str:
        return (self.text or "").partition("\n")[0].rstrip(".")

    @property
    def story(self) -> str:
        return (self.text or "").partition("\n")[2].strip()

    def source(self, side: Side) -> str:
        source = dedent(self.program).lstrip("\n")
        if side is Side.TORCH:
            return source
        changes = dict(self.changes)
        if IMPORT in source and not any(IMPORT in old for old in changes):
            changes[f"{IMPORT}\n"] = "from holdfast import DataLoader\n"
        for old, new in changes.items():
            if source.count(old) != 1:
                raise ValueError(f"{self.name}: {old!r} is {source.count(old)} times in its program, not once")
            source = source.replace(old, new)
        return source

    def check(self, side: Side, ran: Ran) -> str:
        """What was found, in one line; ``NotSo`` when it is not what this side is to show."""
        try:
            return self.on_torch(ran) if side is Side.TORCH else self.on_holdfast(ran)
        except (LookupError, ValueError):  # numbers were expected in its output
            raise NotSo(f"expected another output, but {ran}") from None
