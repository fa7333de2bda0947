"""The last events and what was decided about them: printed with an error, read by the curious."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from typing import Generic, TypeVar

Event = TypeVar("Event")
Command = TypeVar("Command")

NOTABLE = 256  # entries


class Story(Generic[Event, Command]):
    """Keeps values as they are; words are made only when somebody reads.

    What is kept is let go of one day, when it is in no cache any more, and for what happens several times a batch
    that is most of what a story costs. So of ``routine`` events only those that led to something and make up the last
    ``length`` values are kept, one behind the other: a time, an event, what was decided, and the next time. All others
    are kept for longer.
    """

    __slots__ = ("_notable", "_routine", "values")

    def __init__(self, routine: frozenset[type], length: int) -> None:
        self._routine = routine
        self._notable: deque[tuple[float, Event, Sequence[Command]]] = deque(maxlen=NOTABLE)
        self.values: deque[float | Event | Command] = deque(maxlen=length)

    def tell(self, now: float, event: Event, commands: Sequence[Command]) -> None:
        if type(event) not in self._routine:
            self._notable.append((now, event, commands))
        elif not commands:
            return
        self.values.extend((now, event, *commands))

    def __iter__(self) -> Iterator[tuple[float, Event, Sequence[Command]]]:
        latest = list(self._latest())
        there = {id(event) for _, event, _ in latest}
        yield from (entry for entry in self._notable if id(entry[1]) not in there)
        yield from latest

    def _latest(self) -> Iterator[tuple[float, Event, Sequence[Command]]]:
        """Of the first one, the beginning may be gone: it is left out."""
        values = list(self.values)
        times = [at for at, value in enumerate(values) if isinstance(value, float)]
        for at, end in zip(times, [*times[1:], len(values)]):
            now, event, *commands = values[at:end]
            yield now, event, commands  # type: ignore[misc]

    def lines(self) -> list[str]:
        return [
            f"{now:.6f}  {event}" + (f"  ->  {', '.join(map(str, commands))}" if commands else "")
            for now, event, commands in self
        ]

    def __str__(self) -> str:
        return "\n".join(self.lines())
