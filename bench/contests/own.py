"""Holdfast against itself."""

from __future__ import annotations

from bench.contest import Contest, Target

WITHOUT = "without supervision"

CONTESTS = [
    Contest(
        "supervision", "64×3×64×64 float32 from memory, with all supervision", "× the rate without",
        "bench.own.supervision:start", ("holdfast", WITHOUT),
        settings={"work": "memory:middling"}, targets={WITHOUT: Target(0.98)}, limits=(WITHOUT,), rounds=1,
    ),
]  # fmt: skip
