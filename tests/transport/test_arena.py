"""Shared memory for batches: given out, given back, never twice at a time."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator

import pytest
import torch
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from holdfast import DataLoader, SharedMemoryFull
from holdfast._system.segments import MemfdSegment
from holdfast._transport.arena import ALIGNMENT, Arena, ArenaFull, Writer

ENDLESS = 1 << 60


@pytest.fixture
def segment() -> Iterator[MemfdSegment]:
    segment = MemfdSegment.create("holdfast-test")
    yield segment
    segment.close()


def arena_on(segment: MemfdSegment, limit: int | None = None, room: int = ENDLESS) -> Arena:
    return Arena(segment, limit, lambda: room, lambda base, size: None)


# -- blocks come back ----------------------------------------------------------------------------

BATCH = 4096  # elements


def test_a_block_is_free_when_the_last_view_dies(carry):
    views = {
        "the tensor": lambda t: t,
        "a slice": lambda t: t[7:9],
        "a transposed view": lambda t: t.reshape(64, 64).t()[3],
        "a numpy view": lambda t: t.numpy(),
        "a slice of a numpy view": lambda t: t.numpy()[::2],
        "a memoryview of it": lambda t: memoryview(t.numpy()),
        "a tensor of its storage": lambda t: torch.empty(0).set_(t.untyped_storage()),
        "a detached alias": lambda t: t.detach(),
    }
    for name, view_of in views.items():
        kept = view_of(carry(torch.ones(BATCH)))
        gc.collect()
        assert not carry.view.returned(), name
        del kept
        assert len(carry.view.returned()) == 1, name


def test_a_block_is_kept_for_the_backward_pass(carry):
    weight = torch.ones(BATCH, requires_grad=True)
    loss = (weight * carry(torch.arange(BATCH, dtype=torch.float32))).sum()
    assert not carry.view.returned()
    loss.backward()
    assert torch.equal(weight.grad, torch.arange(BATCH, dtype=torch.float32))
    del loss
    assert len(carry.view.returned()) == 1


def test_a_block_is_kept_by_any_member_of_its_batch(carry):
    for _ in range(2):  # once their size is known the parts of a batch lie in one block
        batch = carry({"x": torch.ones(BATCH), "y": [torch.zeros(BATCH)]})
    carry.view.returned()
    kept = batch["y"][0]
    del batch
    assert not carry.view.returned()
    del kept
    assert len(carry.view.returned()) == 1


def test_a_block_in_a_cycle_comes_back_with_the_collector(carry):
    batch = [carry(torch.ones(BATCH))]
    batch.append(batch)
    del batch
    gc.collect()
    assert len(carry.view.returned()) == 1


def test_a_batch_outlives_the_arena_and_its_descriptor(carry):
    kept = carry(torch.arange(BATCH))
    carry.close()
    carry.__init__()
    gc.collect()
    assert torch.equal(kept, torch.arange(BATCH))


def test_blocks_are_used_again(carry):
    for number in range(500):
        assert (carry(torch.full((BATCH,), number)).numpy() == number).all()
    assert sum(carry.extents) == 1 << 20


def test_kept_batches_are_not_used_again(carry):
    kept = []
    for number in range(300):
        batch = carry(torch.full((BATCH,), number))
        if number % 3 == 0:
            kept.append((number, batch))
    for number, batch in kept:
        assert (batch == number).all()


def test_10_000_kept_blocks_need_few_extents(carry):
    kept = [carry(torch.full((BATCH,), number, dtype=torch.int16)) for number in range(10_000)]
    assert len(carry.extents) <= 12
    assert sum(carry.extents) <= 2 * 10_000 * BATCH * 2
    assert all(batch[0] == number and batch[-1] == number for number, batch in enumerate(kept))


def test_10_000_kept_batches_of_workers_take_few_descriptors():
    before = len(os.listdir("/proc/self/fd"))
    kept = list(DataLoader(torch.arange(10_000).reshape(10_000, 1).expand(10_000, 300), num_workers=2))
    assert len(os.listdir("/proc/self/fd")) - before <= 40
    assert all((batch.numpy() == number).all() for number, batch in enumerate(kept))


# -- limits --------------------------------------------------------------------------------------


def test_a_limit_gives_an_error_with_numbers(segment):
    arena = arena_on(segment, limit=3 << 20)
    arena.take(1 << 20)
    arena.take(1 << 20)
    with pytest.raises(ArenaFull) as caught:
        arena.take(2 << 20)
    full = caught.value
    assert (full.wanted, full.held, full.limit, full.reason) == (2 << 20, 2 << 20, 3 << 20, "max_shared_memory")
    arena.take(1 << 20)


def test_what_the_machine_has_left_is_a_limit_too(segment):
    arena = arena_on(segment, room=5 << 20)
    with pytest.raises(ArenaFull) as caught:
        arena.take(6 << 20)
    assert (caught.value.wanted, caught.value.held, caught.value.reason) == (6 << 20, 0, "memory")
    arena.take(4 << 20)


def test_an_arena_at_its_limit_works_on_with_what_comes_back(segment):
    arena = arena_on(segment, limit=1 << 20)
    blocks = [arena.take(1 << 18)[0] for _ in range(4)]
    with pytest.raises(ArenaFull):
        arena.take(1)
    arena.give_back(blocks[2])
    assert arena.take(1 << 18)[0] == blocks[2]


def test_a_batch_beyond_max_shared_memory_is_an_error_with_the_way_out():
    rows = torch.zeros(4, 1 << 20)
    loader = DataLoader(rows, num_workers=1, max_shared_memory=1 << 20)
    with pytest.raises(SharedMemoryFull, match=r"no room for 4\.0 MiB of shared memory") as caught:
        next(iter(loader))
    assert caught.value.limit == 1 << 20
    assert "max_shared_memory allows 1.0 MiB for each worker" in str(caught.value)


# -- against a model -----------------------------------------------------------------------------


class Blocks(RuleBasedStateMachine):
    """Any sequence of taking, trimming and giving back: blocks never overlap and nothing is lost."""

    def __init__(self) -> None:
        super().__init__()
        self.segment = MemfdSegment.create("holdfast-test")
        self.grown = 0
        self.arena = Arena(self.segment, 8 << 20, lambda: ENDLESS, self._grow)
        self.taken: dict[int, int] = {}
        self.kept: dict[int, memoryview] = {}

    def _grow(self, base: int, size: int) -> None:
        assert base == self.grown
        self.grown += size

    @rule(size=st.one_of(st.integers(1, 300), st.integers(1, 700_000)))
    def take(self, size: int) -> None:
        try:
            block, view = self.arena.take(size)
        except ArenaFull:
            return
        assert block % ALIGNMENT == 0
        assert len(view) >= size
        self.taken[block] = size

    @rule(size=st.integers(1, 700_000), data=st.data())
    def keep_a_view(self, size: int, data: st.DataObject) -> None:
        """Given back by the trainer while the worker still looks at it: not used again until it is let go."""
        try:
            block, view = self.arena.take(size)
        except ArenaFull:
            return
        self.arena.give_back(block)
        self.taken[block] = size
        self.kept[block] = view

    @rule(data=st.data())
    def let_go(self, data: st.DataObject) -> None:
        if self.kept:
            block = data.draw(st.sampled_from(sorted(self.kept)))
            del self.kept[block], self.taken[block]

    @rule(data=st.data())
    def give_back(self, data: st.DataObject) -> None:
        if lent := sorted(self.taken.keys() - self.kept.keys()):
            block = data.draw(st.sampled_from(lent))
            self.arena.give_back(block)
            del self.taken[block]

    @rule(data=st.data())
    def give_back_twice(self, data: st.DataObject) -> None:
        if lent := sorted(self.taken.keys() - self.kept.keys()):
            block = data.draw(st.sampled_from(lent))
            del self.taken[block]
            self.arena.give_back(block)
            self.arena.give_back(block)

    @rule(data=st.data())
    def trim(self, data: st.DataObject) -> None:
        if lent := sorted(self.taken.keys() - self.kept.keys()):
            block = data.draw(st.sampled_from(lent))
            self.taken[block] = data.draw(st.integers(1, self.taken[block]))
            self.arena.trim(block, self.taken[block])

    @invariant()
    def blocks_do_not_overlap(self) -> None:
        ends = 0
        for block, size in sorted(self.taken.items()):
            assert block >= ends
            ends = block + size
        assert ends <= self.grown

    def teardown(self) -> None:
        self.kept.clear()
        for block in self.taken:
            self.arena.give_back(block)
        if self.grown:
            self.arena.take(1)
            held, free = self.arena.size, [size for extent in self.arena._extents for size in extent.sizes]
            assert held - sum(free) == ALIGNMENT  # all of it, and in one piece for each extent
            assert len(free) == len(self.arena._extents)
        self.segment.close()


TestBlocks = Blocks.TestCase
TestBlocks.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)


def test_parts_of_a_batch_lie_side_by_side_once_its_size_is_known(segment):
    writer = Writer(arena_on(segment))
    for _ in range(2):
        for size in (100, 5000, 64):
            view, start, _ = writer.place(size)
            view[start : start + size] = bytes(size)
        blocks = writer.finish()
    assert [used for _, used in blocks] == [128 + 5056 + 64]


def test_an_abandoned_batch_gives_everything_back(segment):
    arena = arena_on(segment)
    writer = Writer(arena)
    for _ in range(3000):
        writer.place(100_000)
        writer.place(50_000)
        writer.abandon()
    assert arena.size == 1 << 20
