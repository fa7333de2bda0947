"""The last events and what was decided about them: printed with an error, read by the curious."""

from __future__ import annotations

from collections import deque

from .commands import Command
from .events import Event

LENGTH = 256


class Story:
    """Keeps values as they are; words are made only when somebody reads."""

    __slots__ = ("entries",)

    def __init__(self) -> None:
        self.entries: deque[tuple[float, Event, list[Command]]] = deque(maxlen=LENGTH)

    def __len__(self) -> int:
        return len(self.entries)

    def lines(self) -> list[str]:
        return [
            f"{now:.6f}  {event}" + (f"  ->  {', '.join(map(str, commands))}" if commands else "")
            for now, event, commands in self.entries
        ]

    def __str__(self) -> str:
        return "\n".join(self.lines())
