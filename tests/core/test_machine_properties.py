"""Whatever order the world acts in: once each, in order, nothing leaked, nobody waiting for nobody.

What exactly is promised is in ``holdfast.testing.referee`` and ``holdfast.testing.rules``.
"""

from __future__ import annotations

from dataclasses import fields
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast._core.events import EpochBegan
from holdfast._core.machine import Limits
from holdfast.testing import World, live, walk

LIMITS = st.builds(
    Limits,
    seats=st.integers(1, 3),
    prefetch=st.integers(1, 2),
    in_order=st.booleans(),
    bound=st.booleans(),
    attempts=st.integers(1, 3),
    max_restarts=st.one_of(st.none(), st.integers(0, 4)),
    crash_loop=st.integers(1, 8),
    run_ahead=st.integers(0, 3),
    run_ahead_bytes=st.sampled_from([1, 150, 10**6]),
)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(LIMITS, st.booleans(), st.randoms(use_true_random=False))
def test_any_short_life(limits: Limits, prompt: bool, rng: Random):
    live(World(limits, prompt=prompt, longest=4), rng, steps=40)


@pytest.mark.parametrize("hundred", range(3))
def test_long_lives(hundred: int):
    for seed in range(100 * hundred, 100 * hundred + 100):
        walk(seed)


def test_the_same_seed_tells_the_same_story():
    assert str(walk(7).machine.story) == str(walk(7).machine.story)


def test_walks_go_where_it_is_interesting():
    """A walk that never met poison, a slow neighbour or a failure would prove nothing about them."""
    seen = set()
    for seed in range(60):
        for _, event, commands in walk(seed).machine.story:
            seen |= {type(event).__name__, *(type(command).__name__ for command in commands)}
            if isinstance(event, EpochBegan):
                seen |= {field.name for field in fields(event) if getattr(event, field.name)}
    assert seen >= {"Condemn", "Fail", "End", "Discard", "StreamEnded", "SamplerEnded", "WorkerExited", "Closed"}
    assert seen >= {"start", "done", "given", "ended"}, "epochs that go on in their middle"
