"""Both ends of the transport in one process, over real shared memory."""

from __future__ import annotations

import os
from typing import Any

from holdfast._system.segments import MemfdSegment
from holdfast._transport.arena import Arena, ArenaView, Writer
from holdfast._transport.codec import Decoder, Encoded, Encoder
from holdfast._transport.messages import Loaded, pack, unpack


class Carrier:
    """A worker's encoder and the trainer's decoder, with a message between them as it would go through the pipe."""

    def __init__(self, limit: int | None = None) -> None:
        self.segment = MemfdSegment.create("holdfast-test")
        self.view = ArenaView(MemfdSegment(os.dup(self.segment.fd)))
        self.extents: list[int] = []
        self.arena = Arena(self.segment, limit, lambda: 1 << 40, self._extended)
        self.encoder = Encoder(Writer(self.arena))
        self.decoder = Decoder(self.view.lend)

    def __call__(self, value: Any) -> Any:
        for block in self.view.returned():
            self.arena.give_back(block)
        loaded = unpack(pack(Loaded(0, *self.encoder.encode(value))))
        assert isinstance(loaded, Loaded)
        layout = self.decoder.learn(Encoded(*loaded[1:5]))
        return self.decoder.decode(layout, loaded.blocks, loaded.inline)

    def _extended(self, base: int, size: int) -> None:
        self.extents.append(size)
        self.view.extended(base, size)

    def close(self) -> None:
        self.view.close()
        self.segment.close()
        del self.view, self.arena, self.encoder, self.decoder  # and with them the mappings
