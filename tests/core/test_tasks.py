"""The pool's machine: one event at a time, then whatever order a simulated world acts in.

What exactly is promised in any order is in ``holdfast.testing.task_referee``.
"""

from __future__ import annotations

import math
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast._core.events import Ticked, Worker, WorkerReady
from holdfast._core.task_events import (
    AllDone,
    Dismiss,
    Drained,
    Forget,
    GiveUp,
    Hand,
    Launch,
    LifeEnded,
    Opened,
    Recall,
    Recalled,
    Submitted,
    TaskCommand,
    TaskEnded,
    TaskEvent,
    TaskFailed,
    Withdrawn,
)
from holdfast._core.task_paces import KINDS, MOST_AHEAD
from holdfast._core.tasks import PATIENCE, TaskLimits, TaskMachine
from holdfast.testing import task_walk
from holdfast.testing.task_world import TaskWorld, live_tasks

A, B, NEXT_A = Worker(0, 1), Worker(1, 1), Worker(0, 2)
SHORT, SLOW = 0.0001, 1.0


@pytest.fixture(autouse=True)
def leaves_nothing():
    """There is nothing but values here that could be left."""


def play(m: TaskMachine, *events: TaskEvent, now: float = 0.0) -> list[TaskCommand]:
    return [command for event in events for command in m.handle(event, now)]


def tasks(*numbers: int, kind: int = 0) -> list[TaskEvent]:
    return [Submitted(number, kind) for number in numbers]


def a_pool(*, seats: int = 2, **limits: int) -> TaskMachine:
    """Everybody is ready and has nothing to do; worker 0 is asked first."""
    m = TaskMachine(TaskLimits(seats, **limits))
    play(m, Opened(), *(WorkerReady(Worker(seat, 1)) for seat in reversed(range(seats))))
    return m


def knows(m: TaskMachine, kind: int, seconds: float, *, seen: int = MOST_AHEAD) -> None:
    """Tasks of this kind were done before, by worker 0."""
    for number in range(-seen, 0):
        assert play(m, Submitted(number, kind), TaskEnded(A, number, seconds)) == [Hand(A, number)]


# -- the way of a task -------------------------------------------------------------------------


def test_on_demand_a_worker_is_started_for_a_task_that_nobody_can_take():
    m = TaskMachine(TaskLimits(seats=2))
    assert play(m, *tasks(0)) == [Launch(A)]
    assert play(m, WorkerReady(A)) == [Hand(A, 0)]
    assert play(m, TaskEnded(A, 0, SLOW)) == []
    assert play(m, *tasks(1)) == [Hand(A, 1)], "no second worker: the first is free"
    assert play(m, *tasks(2, 3)) == [Launch(B)], "no third one: there is no seat for it"


def test_on_demand_a_task_that_is_withdrawn_starts_nobody():
    m = TaskMachine(TaskLimits(seats=4))
    play(m, *tasks(0))
    assert play(m, Withdrawn(0), *tasks(1)) == [Forget(0)], "the one who is on the way is enough"


def test_opened_everybody_is_started_and_replaced():
    m = TaskMachine(TaskLimits(seats=2))
    assert play(m, Opened()) == [Launch(A), Launch(B)]
    assert play(m, WorkerReady(A), LifeEnded(A)) == [Launch(NEXT_A)]


def test_tasks_are_sent_in_the_order_in_which_they_came():
    m = a_pool(seats=1)
    assert play(m, *tasks(0, 1, 2)) == [Hand(A, 0)]
    assert play(m, TaskEnded(A, 0, SLOW), TaskEnded(A, 1, SLOW)) == [Hand(A, 1), Hand(A, 2)]


def test_the_last_to_become_free_is_the_first_to_be_sent_a_task():
    """Its memory is warm."""
    m = a_pool(seats=3)
    play(m, *tasks(0, 1), TaskEnded(A, 0, SLOW), TaskEnded(B, 1, SLOW))
    assert play(m, *tasks(2, 3, 4)) == [Hand(B, 2), Hand(A, 3), Hand(Worker(2, 1), 4)]


# -- a few more on its hands -------------------------------------------------------------------


def test_short_tasks_are_sent_ahead_and_shared_out():
    m = a_pool()
    knows(m, 0, 0.0009)
    sent = play(m, *tasks(*range(10)))
    assert [command.who for command in sent] == [A, B] * 3, "two wait behind each, as they take 1.8 ms"
    assert play(m, TaskEnded(A, 0, 0.0009)) == [Hand(A, 6)]


def test_nothing_waits_behind_a_slow_task_nor_a_slow_task_behind_another():
    m = a_pool()
    knows(m, 0, SHORT)
    knows(m, 1, SLOW)
    assert play(m, *tasks(0, kind=1), *tasks(1, 2)) == [Hand(A, 0), Hand(B, 1), Hand(B, 2)]
    assert play(m, *tasks(3, kind=1)) == []


def test_a_slow_neighbour_does_not_keep_others_from_working_ahead():
    m = a_pool()
    knows(m, 0, SHORT)
    knows(m, 1, SLOW)
    play(m, *tasks(0, kind=1), *tasks(*range(1, 30)))
    assert len(m.seats[1].held) == 1 + MOST_AHEAD


def test_one_short_task_is_not_taken_for_an_example_of_all():
    m = a_pool()
    play(m, *tasks(*range(100)))
    assert play(m, TaskEnded(A, 0, SHORT)) == [Hand(A, 2), Hand(B, 3), Hand(A, 4)], "one behind each"
    assert play(m, TaskEnded(A, 2, SHORT)) == [Hand(A, 5), Hand(A, 6)], "then two"


def test_a_task_that_could_not_be_sent_says_nothing_about_its_kind():
    m = a_pool(seats=1)
    play(m, *tasks(*range(10)))
    assert play(m, TaskEnded(A, 0, 0.0)) == [Hand(A, 1)]


def test_the_paces_of_a_thousand_kinds_are_remembered():
    m = a_pool(seats=1)
    for kind in range(3 * KINDS):
        play(m, Submitted(kind, kind), TaskEnded(A, kind, SHORT))
    assert len(m.paces.known) <= KINDS
    assert len(m.paces.ahead) <= KINDS


# -- taking back what waits behind a task ------------------------------------------------------


def with_tasks_behind_the_first(**limits: int) -> TaskMachine:
    """Worker 0 runs 0 and holds 2 and 4; worker 1 has done all that it was sent."""
    m = a_pool(**limits)
    knows(m, 0, 0.0009)
    play(m, *tasks(*range(6)))
    play(m, *(TaskEnded(B, task, 0.0009) for task in (1, 3, 5)))
    return m


def test_what_waits_behind_a_task_that_takes_long_is_taken_back_for_one_who_is_free():
    m = with_tasks_behind_the_first()
    assert m.next_deadline() == PATIENCE
    assert play(m, Ticked(), now=PATIENCE / 2) == []
    assert play(m, Ticked(), now=PATIENCE) == [Recall(A)]
    assert play(m, Ticked(), now=1.0) == [], "it was asked"
    assert m.next_deadline() == math.inf
    assert play(m, Recalled(A, (2, 4)), now=1.0) == [Hand(B, 2), Hand(B, 4)]
    assert m.is_held_by(A, 0)
    assert not m.is_held_by(A, 2)


def test_a_task_takes_long_from_when_the_one_before_it_ended():
    m = with_tasks_behind_the_first()
    play(m, TaskEnded(A, 0, 0.004), now=0.004)
    assert m.next_deadline() == 0.004 + PATIENCE
    assert play(m, TaskEnded(A, 4, 0.0), now=0.005) == [], "it could not be sent after all"
    assert m.next_deadline() == math.inf, "nothing is behind 2 any more"


def test_nothing_is_taken_back_while_nobody_is_free():
    m = a_pool()
    knows(m, 0, 0.0009)
    play(m, *tasks(*range(6)))
    assert m.next_deadline() == math.inf
    assert play(m, Ticked(), TaskEnded(B, 1, SHORT), TaskEnded(B, 3, SHORT), now=1.0) == []
    assert play(m, TaskEnded(B, 5, SHORT), now=1.0) == [Recall(A)]


def test_all_who_are_late_are_asked():
    m = a_pool(seats=3)
    knows(m, 0, 0.0009)
    play(m, *tasks(*range(9)))
    done = [TaskEnded(B, task, 0.0009) for task in (1, 4, 7)]
    assert play(m, *done, now=PATIENCE) == [Recall(A), Recall(Worker(2, 1))]


def test_what_it_has_begun_meanwhile_it_keeps():
    m = with_tasks_behind_the_first()
    play(m, Ticked(), now=PATIENCE)
    assert play(m, Recalled(A, (4,)), now=0.006) == [Hand(B, 4)]
    assert play(m, TaskEnded(A, 0, 0.006), now=0.006) == []
    assert m.waiting_on() == ["task 2 from worker 0", "task 4 from worker 1"]


def test_one_that_had_begun_nothing_is_free():
    m = with_tasks_behind_the_first()
    play(m, Ticked(), now=PATIENCE)
    assert play(m, Recalled(A, (0, 2, 4)), now=1.0) == [Hand(A, 0), Hand(B, 2), Hand(A, 4)]
    assert play(m, TaskEnded(B, 2, 0.0009), now=2.0) == [Recall(A)], "what it is sent now may be taken back as well"


def test_one_that_was_asked_is_sent_nothing_until_its_task_has_ended():
    m = with_tasks_behind_the_first()
    play(m, Ticked(), now=PATIENCE)
    play(m, Recalled(A, (2, 4)), now=PATIENCE)
    assert play(m, *tasks(6, 7), now=PATIENCE) == [Hand(B, 6)], "and no more: worker 1 has its hands full"
    assert play(m, TaskEnded(A, 0, 0.0009), *tasks(8), now=PATIENCE) == [Hand(A, 7), Hand(A, 8)]


def test_what_was_taken_back_comes_before_what_is_in_the_queue():
    m = with_tasks_behind_the_first()
    play(m, Ticked(), now=PATIENCE)
    assert play(m, *tasks(6, 7, kind=1), now=PATIENCE) == [Hand(B, 6)]
    assert play(m, Recalled(A, (2, 4)), now=PATIENCE) == []
    assert list(m.queue) == [2, 4, 7]
    assert play(m, TaskEnded(B, 6, SLOW), now=1.0) == [Hand(B, 2), Hand(B, 4)]


def test_what_was_taken_back_does_not_count_as_done():
    m = with_tasks_behind_the_first(recycle_after=MOST_AHEAD + 3)
    play(m, Ticked(), now=PATIENCE)
    play(m, Recalled(A, (2, 4)), now=PATIENCE)
    assert play(m, TaskEnded(A, 0, PATIENCE), now=PATIENCE) == [], "it was sent 19, and has done 17"


def test_what_the_dead_give_back_was_theirs_no_more():
    m = with_tasks_behind_the_first()
    play(m, Ticked(), now=PATIENCE)
    assert play(m, LifeEnded(A, running=0), now=1.0) == [Hand(B, 2), Hand(B, 4), Launch(NEXT_A)]
    assert play(m, Recalled(A, (2, 4)), now=1.0) == []
    assert play(m, TaskEnded(B, 2, SHORT), TaskEnded(B, 4, SHORT), WorkerReady(NEXT_A), now=1.0) == []


def test_on_demand_a_worker_is_started_for_what_waits_behind_a_task():
    m = TaskMachine(TaskLimits(seats=2))
    play(m, *tasks(-1), WorkerReady(A))
    play(m, TaskEnded(A, -1, SHORT))
    assert play(m, *tasks(0, 1)) == [Hand(A, 0), Hand(A, 1)]
    assert m.next_deadline() == PATIENCE
    assert play(m, Ticked(), now=PATIENCE) == [Recall(A)]
    assert play(m, Recalled(A, (1,)), now=PATIENCE) == [Launch(B)]
    assert play(m, WorkerReady(B), now=1.0) == [Hand(B, 1)]


# -- deaths ------------------------------------------------------------------------------------


def test_what_a_dead_worker_had_not_begun_is_the_next_to_be_sent():
    m = a_pool()
    knows(m, 0, 0.0009)
    play(m, *tasks(*range(8)))
    assert play(m, LifeEnded(A, running=0)) == [Launch(NEXT_A)], "0 has an error for a result"
    assert play(m, WorkerReady(NEXT_A)) == [Hand(NEXT_A, 2), Hand(NEXT_A, 4), Hand(NEXT_A, 6)]
    assert list(m.queue) == [7]


def test_a_task_that_is_tried_again_goes_first_when_its_time_has_come():
    m = a_pool(seats=1)
    play(m, *tasks(0, 1, 2), TaskFailed(A, 0, again_at=0.5))
    assert m.next_deadline() == 0.5
    assert m.waiting_on() == ["task 1 from worker 0", "task 0 to be tried again in 0.5 s"]
    assert play(m, LifeEnded(A, running=1, again_at=0.4), WorkerReady(NEXT_A)) == [Launch(NEXT_A), Hand(NEXT_A, 2)]
    assert play(m, Ticked(), now=0.6) == []
    assert play(m, TaskEnded(NEXT_A, 2, SLOW), TaskEnded(NEXT_A, 1, SLOW), now=0.6) == [
        Hand(NEXT_A, 1),
        Hand(NEXT_A, 0),
    ]


def test_the_dead_have_nothing_to_say():
    m = a_pool(seats=1)
    play(m, *tasks(0), LifeEnded(A))
    late: list[TaskEvent] = [TaskEnded(A, 0, SHORT), TaskFailed(A, 0, 0.0), WorkerReady(A), LifeEnded(A, 0)]
    assert play(m, *late) == []
    assert play(m, WorkerReady(NEXT_A)) == [Hand(NEXT_A, 0)]
    assert m.is_held_by(NEXT_A, 0)
    assert not m.is_held_by(A, 0)
    assert m.restarts == 1


def test_a_seat_whose_workers_die_one_after_the_other_pauses():
    m = a_pool(seats=1)
    play(m, LifeEnded(A), WorkerReady(NEXT_A), LifeEnded(NEXT_A), WorkerReady(Worker(0, 3)))
    assert play(m, LifeEnded(Worker(0, 3))) == []
    assert m.waiting_on() == ["worker 0 to be started again in 0.1 s"]
    assert play(m, Ticked(), now=m.next_deadline()) == [Launch(Worker(0, 4))]
    play(m, WorkerReady(Worker(0, 4)), *tasks(0), TaskEnded(Worker(0, 4), 0, SLOW), now=1.0)
    assert play(m, LifeEnded(Worker(0, 4)), now=1.0) == [Launch(Worker(0, 5))], "a task was done: no pause"


def test_a_seat_does_not_pause_after_tasks_that_killed_and_are_done_with():
    m = a_pool(seats=1)
    for life in range(1, 20):
        assert play(m, *tasks(life)) == [Hand(Worker(0, life), life)]
        assert play(m, LifeEnded(Worker(0, life), running=life)) == [Launch(Worker(0, life + 1))]
        play(m, WorkerReady(Worker(0, life + 1)))


def test_processes_that_never_get_ready_are_given_up():
    m = TaskMachine(TaskLimits(seats=1, crash_loop=3))
    play(m, *tasks(0), LifeEnded(A), WorkerReady(NEXT_A), LifeEnded(NEXT_A, running=0, again_at=0.0))
    for life in (3, 4):
        assert GiveUp not in map(type, play(m, Ticked(), LifeEnded(Worker(0, life)), now=10.0 * life))
    play(m, Ticked(), now=50.0)
    assert play(m, LifeEnded(Worker(0, 5)), now=50.0) == [GiveUp(3)]
    assert play(m, *tasks(1), Ticked(), now=60.0) == []
    assert m.waiting_on() == []
    assert m.next_deadline() == math.inf


# -- withdrawing, letting go -------------------------------------------------------------------


def test_a_task_is_forgotten_unless_somebody_has_it():
    m = a_pool(seats=1)
    play(m, *tasks(0, 1, 2), TaskFailed(A, 0, again_at=5.0))
    assert play(m, Withdrawn(0), Withdrawn(1), Withdrawn(2)) == [Forget(0), Forget(2)]
    assert m.next_deadline() == math.inf
    assert play(m, TaskEnded(A, 1, SLOW), Withdrawn(1), Ticked(), now=9.0) == []


def test_a_worker_that_has_done_its_share_is_replaced():
    m = a_pool(seats=1, recycle_after=2)
    assert play(m, *tasks(0, 1, 2), TaskEnded(A, 0, SHORT)) == [Hand(A, 0), Hand(A, 1)]
    assert play(m, TaskEnded(A, 1, SHORT)) == [Dismiss(A)]
    assert m.is_leaving(A)
    assert m.waiting_on() == ["worker 0 to end"]
    assert play(m, LifeEnded(A), WorkerReady(NEXT_A)) == [Launch(NEXT_A), Hand(NEXT_A, 2)]
    assert m.restarts == 0


def test_after_the_last_task_everybody_goes():
    m = a_pool()
    play(m, *tasks(0))
    assert play(m, Drained()) == []
    assert play(m, LifeEnded(B)) == [], "there is nothing for another one to do"
    assert play(m, TaskEnded(A, 0, SLOW)) == [Dismiss(A)]
    assert play(m, LifeEnded(A), Ticked(), Opened()) == [AllDone()]


def test_a_pool_without_tasks_ends_at_once_and_those_who_start_are_let_go():
    assert play(TaskMachine(TaskLimits(seats=2)), Drained()) == [AllDone()]
    m = TaskMachine(TaskLimits(seats=1))
    assert play(m, Opened(), Drained(), WorkerReady(A)) == [Launch(A), Dismiss(A)]
    assert play(m, LifeEnded(A)) == [AllDone()]


# -- in any order ------------------------------------------------------------------------------

LIMITS = st.builds(
    TaskLimits, st.integers(1, 3), recycle_after=st.none() | st.integers(1, 3), crash_loop=st.integers(1, 8)
)


@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(LIMITS, st.randoms(use_true_random=False))
def test_any_short_life(limits: TaskLimits, rng: Random):
    live_tasks(TaskWorld(limits, stillborn=2, flood=3, kinds=(0, 4, 7)), rng, steps=30)


def test_long_lives():
    for seed in range(1000, 1200):
        task_walk(seed)


def test_many_seats():
    for seed in range(5):
        task_walk(seed, limits=TaskLimits(seats=64))


def test_the_same_seed_tells_the_same_story():
    story = str(task_walk(7).machine.story)
    assert story
    assert story == str(task_walk(7).machine.story)


def test_walks_go_where_it_is_interesting():
    """Walks that never met a crash loop, a pause or a worker with its hands full would prove nothing about them."""
    seen, hands_full, pauses = set(), 0, 0
    for seed in range(60):
        world = task_walk(seed)
        pauses += any(deaths > 2 for deaths in world.referee.deaths)
        for _, event, commands in world.machine.story:
            seen |= {type(event).__name__, *(type(command).__name__ for command in commands)}
            hands_full = max(hands_full, len(commands))
    assert seen >= {
        "Forget",
        "Dismiss",
        "GiveUp",
        "AllDone",
        "TaskFailed",
        "LifeEnded",
        "Opened",
        "Withdrawn",
        "Recall",
    }
    assert hands_full > 10
    assert pauses
