"""Rates of whole epochs from files, which the workers decode."""

from __future__ import annotations

from bench.contest import Target
from bench.contests.rates import WITH_RAY, rate

_BOUNDS = {"bare processes": Target(0.97), "torchdata nodes, threads": Target(1)}

CONTESTS = [
    rate("jpeg", "JPEG 500×375, resized to 224×224", "samples/s", "jpeg:resized", _BOUNDS, peers=WITH_RAY, rounds=8),
    rate("jpeg-decode", "JPEG 256×256, decoded only", "samples/s", "jpeg:decoded", _BOUNDS, rounds=8, quick=True),
]
