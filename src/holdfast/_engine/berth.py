"""Everything the trainer holds of one life of a worker: its process, its channel, its logbook, its arena."""

from __future__ import annotations

import os
import pickle
import time
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection

from holdfast._system.process import Process
from holdfast._system.segments import MemfdSegment, NamedSegment
from holdfast._system.stderr import Stderr, above_standard
from holdfast._transport.arena import ArenaView
from holdfast._transport.channel import Channel, ConnectionChannel, PipeChannel
from holdfast._transport.codec import Decoder
from holdfast._transport.logbook import SIZE, Logbook
from holdfast._transport.messages import Message, pack, unpack


class Berth:
    """Owned by the crew. ``close`` gives up the descriptors; blocks of the arena that are lent out stay good."""

    def __init__(self, process: Process, channel: Channel, logbook: Logbook, arena: ArenaView) -> None:
        self.process, self.channel, self.logbook, self.arena = process, channel, logbook, arena
        self.decoder = Decoder(arena.lend)
        self.since = time.monotonic()

    def tell(self, message: Message) -> None:
        self.channel.send(pack(message))

    def put(self, message: Message) -> None:
        """As ``tell``, but not before the channel is flushed."""
        self.channel.put(pack(message))

    def hear(self) -> list[Message]:
        """What it has said; ``EOFError`` when it will say no more."""
        return [unpack(data) for data in self.channel.receive()]

    def close(self) -> None:
        """What it said on stderr is passed on first."""
        self.process.last_words()
        self.process.close()
        self.channel.close()
        self.arena.close()


def pipe_berth(launch: Callable[[list[int], int], Process]) -> Berth:
    """A berth made of pipes and anonymous memory; ``launch`` gets the worker's ends, and its stderr apart from
    them, and starts a process that holds them all.
    """
    opened: list[int] = []
    try:
        with above_standard():
            worker_reads, trainer_writes = _remember(opened, os.pipe())
            trainer_reads, worker_writes = _remember(opened, os.pipe())
            logbook = MemfdSegment.create("holdfast-logbook")
            opened.append(logbook.fd)
            arena = MemfdSegment.create("holdfast-arena")
            opened.append(arena.fd)
            stderr, worker_speaks = Stderr.pipe()
            opened += [stderr.fileno(), worker_speaks]
        logbook.extend(SIZE)
        process = launch([worker_reads, worker_writes, logbook.fd, arena.fd], worker_speaks)
        process.stderr = stderr
    except BaseException:
        for fd in opened:
            with suppress(OSError):
                os.close(fd)
        raise
    channel = PipeChannel(trainer_reads, trainer_writes, blocking=False)
    berth = Berth(process, channel, Logbook(logbook.map(0, SIZE)), ArenaView(arena))
    for fd in (worker_reads, worker_writes, worker_speaks):
        os.close(fd)
    logbook.close()
    return berth


def _remember(opened: list[int], pipe: tuple[int, int]) -> tuple[int, int]:
    opened.extend(pipe)
    return pipe


def named_berth(
    process: Process,
    connection: Connection,
    life: str,
    shipment: str,
    post: tuple[object, ...],
    manifest: tuple[int, ...],
) -> Berth:
    """A berth for a process that can be handed nothing but names: ``life`` begins those that are its own."""
    names = f"{life}-logbook", f"{life}-arena", shipment
    logbook = NamedSegment(names[0], unlink=False)
    logbook.extend(SIZE)
    arena = ArenaView(NamedSegment(names[1], unlink=True))
    berth = Berth(process, ConnectionChannel(connection), Logbook(logbook.map(0, SIZE)), arena)
    berth.channel.send(pickle.dumps((tuple(post), tuple(manifest), names), protocol=5))
    return berth


def introduce(channel: Channel, post: tuple[object, ...], manifest: tuple[int, ...]) -> None:
    """The first message to a worker that did not inherit its job."""
    channel.send(pickle.dumps((tuple(post), tuple(manifest)), protocol=5))
