"""Holdfast against itself."""

from __future__ import annotations

from bench.contest import Contest, Target

CONTESTS = [
    Contest(
        "supervision", "64×3×64×64 float32 from memory, with and without all supervision", "batches/s",
        "bench.own.supervision:Crews", ("holdfast", "holdfast, unsupervised"),
        settings={"work": "memory:middling"}, targets={"holdfast, unsupervised": Target(0.98)}, rounds=8,
    ),
]  # fmt: skip
