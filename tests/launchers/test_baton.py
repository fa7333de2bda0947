"""Threads that cannot run at once take turns by batches; all others are left alone."""

from __future__ import annotations

import threading

import pytest
import torch

from holdfast import DataLoader
from holdfast._worker import baton
from holdfast._worker.baton import FIRST, LONGEST, WINDOW, Baton, Habit, Hand


class Threads:
    """So many of them, whose batches take ``seconds`` each and ``share`` of a processor meanwhile, by how they are
    loaded: all at once, or one at a time. What the habit decides is kept, batch by batch."""

    def __init__(self, count: int, free: tuple[float, float], in_turns: tuple[float, float] = (1.0, 1.0)) -> None:
        self.count, self.free, self.in_turns = count, free, in_turns

    def load(self, habit: Habit, batches: int) -> list[bool]:
        decided: list[bool] = []
        until, free_at = 0.0, [0.0] * self.count
        while len(decided) < batches:
            turns = habit.in_turns
            seconds, share = self.in_turns if turns else self.free
            began = until if turns else min(free_at)
            until = began + seconds
            if turns:
                free_at = [until] * self.count
            else:
                free_at[free_at.index(min(free_at))] = until
            habit.see(began, until, seconds * share, turns)
            decided.append(habit.in_turns)
        return decided


LOOK = 4 * WINDOW  # twice without turns, and twice with
IN_PYTHON = Threads(2, free=(2.2, 0.5))
AT_ONCE = Threads(2, free=(1.0, 1.0))


@pytest.mark.parametrize(("seconds", "share", "threads"), [(2.2, 0.5, 2), (2.1, 0.45, 2), (4.4, 0.26, 4), (9, 0.12, 8)])
def test_threads_that_have_one_processor_together_take_turns(seconds, share, threads):
    assert Threads(threads, (seconds, share)).load(Habit(), LOOK)[-1]


def test_so_do_those_of_whom_one_waits_for_the_other_in_front_of_its_batch():
    """The interpreter changes threads only after several batches: each seems to have had a processor of its own."""
    habit = Habit()
    for batch in range(WINDOW):
        habit.see(1.1 * batch, 1.1 * (batch + 1), 1.0, in_turns=False)
    assert habit.in_turns


@pytest.mark.parametrize(
    ("free", "in_turns"),
    [
        ((1.0, 0.95), (1.0, 1.0)),
        ((1.2, 0.8), (1.0, 1.0)),
        ((1.6, 0.6), (1.0, 1.0)),
        ((1.0, 0.02), (1.0, 0.02)),
        ((1.0, 0.5), (1.0, 0.5)),
    ],
    ids=["run at once", "mostly run at once", "gain a little by it", "sleep", "wait half of the time"],
)
def test_threads_that_can_run_at_once_or_wait_do_not(free, in_turns):
    assert not Threads(2, free, in_turns).load(Habit(), LOOK)[-1]


def test_one_slow_sample_while_they_did_not_take_turns_does_not_bring_them_about():
    habit, waiting = Habit(), Threads(2, free=(1.0, 0.5), in_turns=(1.0, 0.5))
    waiting.load(habit, WINDOW - 1)
    habit.see(0.0, 2.0 * WINDOW, 1.25 * WINDOW, in_turns=False)
    assert habit.in_turns  # to be looked at
    assert not waiting.load(habit, LOOK)[-1]


def test_it_is_found_out_anew_whether_they_can_run_at_once():
    habit = Habit()
    assert IN_PYTHON.load(habit, LOOK)[-1]
    decided = AT_ONCE.load(habit, FIRST + LOOK)
    assert decided[0]
    assert not decided[-1]
    assert not any(AT_ONCE.load(habit, 10 * LONGEST))


def test_looks_in_vain_become_rare():
    decided = IN_PYTHON.load(Habit(), 20 * LONGEST)
    assert sum(decided) > 0.95 * len(decided)
    assert not all(decided[LOOK:])


def test_a_batch_that_was_begun_before_a_decision_has_no_say_in_the_next():
    habit = Habit()
    IN_PYTHON.load(habit, LOOK)
    for batch in range(10 * WINDOW):
        habit.see(batch, batch + 1.0, 1.0, in_turns=False)
    assert habit.in_turns


@pytest.fixture
def hands() -> tuple[Hand, Hand]:
    """Of two threads that take turns."""
    shared = Baton()
    shared.habit.in_turns = True
    return Hand(shared), Hand(shared)


def test_who_keeps_it_for_too_long_does_not_stop_the_others(hands, monkeypatch):
    monkeypatch.setattr(baton, "PATIENCE", 0.01)
    kept, other = hands
    for hand in hands:
        hand.begin()
    assert kept.holds
    assert not other.holds
    assert not kept._habit.in_turns
    for hand in reversed(hands):
        hand.end(more=False)
    assert not kept._lock.locked()


def test_it_is_kept_while_there_is_more_to_load_and_then_passed_on(hands):
    hand, _ = hands
    for more in (True, True, False):
        hand.begin()
        assert hand.holds
        hand.end(more=more)
        assert hand.holds is more
    assert not hand._lock.locked()


def test_it_is_passed_on_after_a_while_though_there_is_more_to_load(hands, monkeypatch):
    monkeypatch.setattr(baton, "SPAN", 0.0)
    hand, _ = hands
    hand.begin()
    hand.end(more=True)
    assert not hand._lock.locked()


def test_it_is_passed_on_when_they_do_not_take_turns_any_more(hands):
    hand, _ = hands
    hand.begin()
    hand.end(more=True)
    hand._habit.in_turns = False
    hand.begin()
    assert not hand._lock.locked()


def test_one_thread_alone_has_nobody_to_take_turns_with():
    assert baton.baton(1) is None
    assert isinstance(baton.baton(2), Baton)


class Watched:
    """Notes how many threads are in a sample at once."""

    def __init__(self, length: int) -> None:
        self.length, self.inside, self.most = length, 0, 0
        self.lock = threading.Lock()

    def __len__(self):
        return self.length

    def __getitem__(self, index):
        with self.lock:
            self.inside += 1
            self.most = max(self.most, self.inside)
        torch.rand(64).sort()  # gives up the interpreter
        with self.lock:
            self.inside -= 1
        return index


@pytest.fixture
def turns(monkeypatch):
    """From the first batch on, whatever the machine is doing."""
    monkeypatch.setattr(baton.Habit, "see", lambda self, *batch: None)
    begin = baton.Habit.__init__

    def in_turns(self):
        begin(self)
        self.in_turns = True

    monkeypatch.setattr(baton.Habit, "__init__", in_turns)


@pytest.mark.usefixtures("turns")
@pytest.mark.parametrize("workers", [2, 4])
def test_in_turns_one_batch_is_loaded_at_a_time_and_all_come_in_order(workers, monkeypatch):
    monkeypatch.setattr(baton, "PATIENCE", 60)
    dataset = Watched(400)
    loader = DataLoader(dataset, batch_size=4, num_workers=workers, workers="thread")
    assert [int(index) for batch in loader for index in batch] == list(range(400))
    assert dataset.most == 1


class Hangs(Watched):
    def __init__(self, length: int) -> None:
        super().__init__(length)
        self.others_are_done = threading.Event()
        self.loaded: set[int] = set()

    def __getitem__(self, index):
        if index == 0:
            assert self.others_are_done.wait(60)
        self.loaded.add(index)
        if {4, 5, 6, 7} <= self.loaded:
            self.others_are_done.set()
        return index


@pytest.mark.usefixtures("turns")
def test_in_turns_a_sample_that_hangs_does_not_stop_the_other_threads():
    """The first sample waits for the second batch, which another thread has to load."""
    loader = DataLoader(Hangs(8), batch_size=4, num_workers=2, workers="thread")
    assert [int(index) for batch in loader for index in batch] == list(range(8))
