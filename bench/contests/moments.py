"""Moments that a trainer waits in: at the beginning, between epochs, in each step, and after an interruption."""

from __future__ import annotations

from typing import Any

from bench.contest import Contest, Target
from bench.peers import BESIDE, PEERS, WARM, WARMED


def _moment(
    name: str, title: str, unit: str, measure: str, work: str, peers: tuple[str, ...] = WARM, **more: Any
) -> Contest:
    return Contest(
        name, title, unit, f"bench.measures.{measure}:start", peers, better="less", beside=BESIDE,
        settings={"work": f"moments:{work}"}, **more,
    )  # fmt: skip


CONTESTS = [
    _moment(
        "first batch", "from a new loader to its first batch, 10×16 float32", "ms", "first", "small",
        tuple(PEERS), quick=True, fresh=True,
        targets={"torch spawn": Target(0.02, at_most=True), "torch fork": Target(0.8, at_most=True)},
    ),
    _moment(
        "first batch of a program", "from the start of Python to the first batch", "s", "fresh", "small",
        (*PEERS, WARMED.name),
    ),
    _moment("turn-around", "from the last batch of an epoch to the first of the next", "ms", "turnaround", "short"),
    _moment("slow consumer", "lost per batch by a trainer that takes 5 ms for each", "µs", "slow", "middling"),
    _moment("resume", "from a new loader and a state at 90 % to the next batch", "s", "resume", "long"),
]  # fmt: skip
