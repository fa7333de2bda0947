"""A worker's end of what connects it with the trainer: its channel, and the arena that its answers lie in."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from holdfast._system.limits import memory_room
from holdfast._system.segments import Segment
from holdfast._transport.arena import Arena, Writer
from holdfast._transport.channel import Channel
from holdfast._transport.messages import Close, Extended, Message, Typed, pack, unpack


class Line:
    """Owned by the worker. ``heard`` is what came with the first message."""

    def __init__(self, channel: Channel, segment: Segment, limit: int | None, heard: Iterable[bytes]) -> None:
        self._channel = channel
        self._arena = Arena(segment, limit, memory_room, self._announce)
        self._inbox: deque[Message] = deque(map(unpack, heard))
        self.writer = Writer(self._arena)

    def hear(self) -> Message:
        """Wait for the trainer; ``EOFError`` when it is gone."""
        while not self._inbox:
            self._inbox.extend(map(unpack, self._channel.receive()))
        return self._inbox.popleft()

    def say(self, message: Message) -> None:
        self._channel.send(pack(message))

    def converse(self, message: Message) -> Typed:
        """Say it, and wait for what the user types. Whatever else comes meanwhile is heard later.

        Who is told to close has nobody to talk to any more.
        """
        self.say(message)
        later: list[Message] = []
        while not isinstance(heard := self.hear(), Typed):
            later.append(heard)
            if isinstance(heard, Close):
                heard = Typed(None)
                break
        self._inbox.extendleft(reversed(later))
        return heard

    def give_back(self, blocks: tuple[int, ...]) -> None:
        """The trainer is done with these."""
        for block in blocks:
            self._arena.give_back(block)

    def _announce(self, base: int, size: int) -> None:
        self.say(Extended(base, size))
