"""A worker that was spawned ahead of need: told where to call through its stdin, handed its work through that call."""

from __future__ import annotations

import os
import pickle
import sys
import threading
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client
from queue import SimpleQueue
from typing import Any, NamedTuple

from holdfast._system import child
from holdfast._system.segments import NamedSegment
from holdfast._transport.channel import ConnectionChannel


class Names(NamedTuple):
    """By which a worker finds its memory."""

    logbook: str
    arena: str
    shipment: str


class AttentiveChannel(ConnectionChannel):
    """The worker's end. A thread of it reads all the time, for three reasons: the trainer's messages never have to wait
    for a sample to be loaded; modules can be imported before the trainer answers the call; and the end of the trainer
    is the end of this process at once, also while it is busy, on systems that have nothing better."""

    def __init__(self, address: Any, key: bytes, trainer: int) -> None:
        self._arrived: SimpleQueue[bytes] = SimpleQueue()
        self._trainer = trainer
        threading.Thread(target=self._listen, args=(address, key), name="holdfast-listen", daemon=True).start()

    def _listen(self, address: Any, key: bytes) -> None:
        try:
            self._connection = Client(address, authkey=key)
            while True:
                self._arrived.put(self._connection.recv_bytes())
        except (EOFError, OSError, AuthenticationError):
            child.clear_up_after(self._trainer)
        finally:
            os._exit(1)

    def receive(self) -> list[bytes]:
        messages = [self._arrived.get()]
        while not self._arrived.empty():
            messages.append(self._arrived.get())
        return messages


def main() -> None:
    """Entry of the new interpreter. Does not return."""
    address, key, trainer, from_main = pickle.load(sys.stdin.buffer)
    child.settle()
    channel = AttentiveChannel(address, key, trainer)
    import holdfast._worker.process
    import holdfast._worker.worker  # noqa: F401  # torch and all that a worker needs, before there is work

    introduction, *heard = channel.receive()
    # Not sooner: a spare that is idle notices the end of the trainer by itself, and has the time to clear up after it.
    child.tie_to(trainer, from_main)
    _work(channel, introduction, heard)


def _work(channel: AttentiveChannel, introduction: bytes, heard: list[bytes]) -> None:
    from holdfast._transport.logbook import SIZE, STACK, Logbook
    from holdfast._transport.shipment import Manifest, unload

    from .job import Errand, Post
    from .process import serve

    post, of_shipment, names = pickle.loads(introduction)
    manifest, found = Manifest(*of_shipment), Names(*names)

    def job() -> Errand:
        shipment = NamedSegment(found.shipment, unlink=False)
        loaded: Errand = unload(shipment.map_private(manifest.total), manifest, [])
        return loaded

    pages = NamedSegment(found.logbook, unlink=True)
    child.write_crashes_into(pages, STACK)
    logbook = Logbook(pages.map(0, SIZE))
    serve(job, Post(*post), channel, logbook, NamedSegment(found.arena, unlink=False), heard)
