"""Rates of whole epochs, from warm workers."""

from __future__ import annotations

from bench.contest import Contest, Target
from bench.peers import BESIDE, PEERS, WARM

BARE = ("bare processes",)
COPIED = ("bare processes", "memcpy")
ASKED = ("bare processes", "pipe round trip")


def rate(
    name: str,
    title: str,
    unit: str,
    work: str,
    targets: dict[str, Target] | None = None,
    *,
    peers: tuple[str, ...] = WARM,
    limits: tuple[str, ...] = BARE,
    rounds: int = 6,
    quick: bool = False,
) -> Contest:
    """Peers, and beside them limits of the machine."""
    return Contest(
        name, title, unit, "bench.measures.epoch:start", (*peers, *limits), settings={"work": work},
        targets=targets or {}, beside=BESIDE, limits=limits, rounds=rounds, quick=quick,
    )  # fmt: skip


ALL = tuple(PEERS)
LOCAL = tuple(name for name in PEERS if name != "Ray Data")
WITH_RAY = (*WARM, "Ray Data")
_BIG = {"torch fork": Target(6), "bare processes": Target(0.8)}
_UNORDERED = {"torch fork, unordered": Target(1)}

CONTESTS = [
    rate("big", "256×3×224×224 float32 from memory", "batches/s", "memory:big", _BIG, peers=LOCAL, limits=COPIED),
    rate(
        "middling", "64×3×64×64 float32 from memory", "batches/s", "memory:middling", {"torch fork": Target(6)},
        peers=ALL, limits=COPIED, quick=True,
    ),
    rate(
        "tiny", "1×16 float32 from memory", "batches/s", "memory:tiny", {"torch fork": Target(8)},
        peers=LOCAL, limits=ASKED, quick=True,
    ),
    rate("uint8", "64×3×224×224 uint8 images from memory", "samples/s", "images:uint8", limits=COPIED),
    rate("fields", "dict of 40 small tensors, 64 per batch", "samples/s", "fields:fields"),
    rate(
        "text", "lists of 5 to 200 token ids, padded by a collate function, 32 per batch", "samples/s", "text:text",
        peers=WITH_RAY,
    ),
    rate(
        "stream", "IterableDataset, 20 µs of Python per item, 64 per batch", "samples/s", "stream:stream",
        peers=WITH_RAY, limits=(),
    ),
    rate(
        "table", "Hugging Face table as torch tensors, 64 rows per batch", "samples/s", "table:table",
        peers=WITH_RAY,
    ),
    rate(
        "skew-busy", "1 sample in 100 takes 20 ms of work, others 0.2", "samples/s", "skew:busy", _UNORDERED,
        peers=LOCAL,
    ),
    rate(
        "skew-sleep", "1 sample in 100 takes 20 ms of sleep, others 0.2", "samples/s", "skew:sleep", _UNORDERED,
        peers=ALL,
    ),
]  # fmt: skip
