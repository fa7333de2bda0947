"""Which work, by which peer: what the settings of a contest say."""

from __future__ import annotations

import torch

from bench.contest import Turn
from bench.names import named
from bench.peers import PEERS, SHARED, WARMED
from bench.works.work import Open, Work

_PEERS = {**PEERS, SHARED.name: SHARED, WARMED.name: WARMED}


def opening(turn: Turn) -> tuple[Open, Work]:
    return _PEERS[turn.contender].open(), work_of(turn)


def work_of(turn: Turn) -> Work:
    """`settings`: the work as ``module:function`` below `bench.works`; `workers`, `batch_size` in place of its own."""
    torch.set_num_threads(1)  # the trainer's share of the cores should not vary with what torch does in parallel
    place: str = turn.settings["work"]
    work: Work = named(f"bench.works.{place}")(turn)
    changes = {key: turn.settings[key] for key in ("workers", "batch_size") if key in turn.settings}
    return work.but(name=place.partition(":")[2], directory=turn.directory, **changes)
