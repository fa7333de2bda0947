"""The machine, one event at a time. No process, no clock, no sleep."""

from __future__ import annotations

import math

import pytest

from holdfast._core.commands import Command, Condemn, Deliver, Discard, Draw, End, Fail, Retire, Send, Start
from holdfast._core.events import (
    BatchFailed,
    BatchReady,
    Closed,
    Drawn,
    EpochBegan,
    Event,
    Outgrown,
    Pardoned,
    SamplerEnded,
    Sentenced,
    StreamEnded,
    Ticked,
    Wanted,
    Worker,
    WorkerExited,
    WorkerReady,
)
from holdfast._core.machine import Limits, Machine

A, B = Worker(0, 1), Worker(1, 1)


def play(machine: Machine, *events: Event, now: float = 0.0) -> list[Command]:
    return [command for event in events for command in machine.handle(event, now)]


def a_crew(*, drawn: int, now: float = 0.0, **limits: object) -> Machine:
    """Every worker is ready and has its share of the first ``drawn`` batches."""
    machine = Machine(Limits(**limits))
    play(machine, EpochBegan(), *(WorkerReady(Worker(seat, 1)) for seat in range(machine.limits.seats)), now=now)
    play(machine, Drawn(drawn), now=now)
    return machine


def exits(who: Worker, batch: int | None = None, sample: int | None = None) -> WorkerExited:
    return WorkerExited(who, batch, sample)


# -- the way of a batch ------------------------------------------------------------------------


def test_a_batch_is_drawn_sent_loaded_and_delivered():
    m = Machine(Limits(seats=1, prefetch=1))
    assert play(m, EpochBegan()) == [Start(A, 0), Draw(1)]
    assert play(m, Drawn(1)) == []
    assert play(m, WorkerReady(A)) == [Send(A, 0)]
    assert play(m, BatchReady(A, 0, 8)) == []
    assert play(m, Wanted()) == [Deliver(0), Draw(1)]


def test_the_last_batch_is_given_before_the_end_and_the_end_is_given_again():
    m = a_crew(seats=1, drawn=1)
    play(m, SamplerEnded())
    assert play(m, Wanted()) == []
    assert play(m, BatchReady(A, 0, 8)) == [Deliver(0)]
    assert play(m, Wanted(), Wanted()) == [End(), End()]


def test_an_empty_sampler_is_an_end():
    m = Machine(Limits(seats=2))
    assert play(m, EpochBegan(), Wanted(), SamplerEnded())[-1] == End()


def test_results_wait_for_their_turn():
    m = a_crew(seats=2, drawn=4)
    assert play(m, Wanted(), BatchReady(B, 1, 8)) == []
    assert play(m, BatchReady(A, 0, 8)) == [Deliver(0), Draw(1)]
    assert play(m, Wanted()) == [Deliver(1)]


def test_unordered_results_are_given_as_they_come():
    m = a_crew(seats=2, drawn=4, in_order=False)
    play(m, BatchReady(B, 1, 8), BatchReady(A, 0, 8))
    assert play(m, Wanted(), Wanted()) == [Deliver(1), Draw(1), Deliver(0)]


def test_batches_wait_for_a_worker_that_is_not_up_yet():
    """Round robin, as torch has it: batch i is loaded by worker i % seats however late a worker gets ready."""
    m = Machine(Limits(seats=2, prefetch=2))
    play(m, EpochBegan(), Drawn(4))
    assert play(m, WorkerReady(B)) == [Send(B, 1), Send(B, 3)]
    assert play(m, BatchReady(B, 1, 8), BatchReady(B, 3, 8)) == []
    assert play(m, WorkerReady(A)) == [Send(A, 0), Send(A, 2)]


def test_a_failed_exception_is_a_result_like_any_other():
    m = a_crew(seats=1, drawn=2)
    assert play(m, BatchReady(A, 0, 0), Wanted()) == [Deliver(0), Draw(1)]


# -- slow neighbours ---------------------------------------------------------------------------


def a_slow_head(**limits: object) -> Machine:
    """Worker 0 is on batch 0 since t=0; worker 1 has done its share."""
    m = a_crew(seats=2, prefetch=2, drawn=4, **limits)
    assert play(m, BatchReady(B, 1, 100), BatchReady(B, 3, 100), now=0.010) == []
    return m


def test_the_crew_runs_ahead_of_a_slow_batch_after_a_grace():
    m = a_slow_head()
    assert m.next_deadline() == 0.050
    assert play(m, Ticked(), now=0.049) == []
    assert play(m, Ticked(), now=0.050) == [Draw(2)]
    assert play(m, Drawn(2), now=0.050) == [Send(B, 4), Send(B, 5)]
    assert m.next_deadline() == math.inf


def test_a_user_who_was_away_does_not_make_a_worker_slow():
    m = a_slow_head()
    assert play(m, Wanted(), now=7.0) == []  # batch 0 may lie in the pipe: nobody has listened until now
    assert m.next_deadline() == 7.050
    assert play(m, BatchReady(A, 0, 100), now=7.001) == [Deliver(0), Draw(1)]


def test_running_ahead_ends_with_the_slow_batch():
    m = a_slow_head()
    play(m, Ticked(), Drawn(2), BatchReady(B, 4, 100), BatchReady(B, 5, 100), Drawn(2), now=1.0)
    assert play(m, BatchReady(A, 0, 100), now=1.0) == []
    assert play(m, Wanted(), now=1.0) == [Deliver(0)]  # 2 is not done, but its worker has only begun it
    assert play(m, BatchReady(A, 2, 100), now=1.0) == []
    assert play(m, *[Wanted()] * 4, now=1.0) == [Deliver(1), Deliver(2), Deliver(3), Deliver(4), Draw(1)]


def test_running_ahead_is_limited_in_number():
    m = a_slow_head(run_ahead=1)
    assert play(m, Ticked(), now=1.0) == [Draw(1)]
    assert play(m, Drawn(1), BatchReady(B, 4, 100), now=1.0) == [Send(B, 4)]
    assert m.next_deadline() == math.inf


def test_running_ahead_is_limited_in_bytes():
    m = a_slow_head(run_ahead_bytes=200)
    assert play(m, Ticked(), now=1.0) == []
    assert m.next_deadline() == math.inf


def test_the_grace_learns_how_long_a_batch_takes_and_one_slow_batch_does_not_teach_it():
    m = a_crew(seats=1, prefetch=1, drawn=1)
    now = 0.0
    for batch in range(100):
        now += 0.010 if batch != 90 else 10.0
        play(m, BatchReady(A, batch, 8), Wanted(), Drawn(1), now=now)
    assert m.pace.grace == pytest.approx(0.015, rel=0.2)


def test_unordered_needs_no_running_ahead():
    m = a_slow_head(in_order=False)
    assert m.next_deadline() == math.inf
    assert play(m, Ticked(), now=9.0) == []


# -- deaths ------------------------------------------------------------------------------------


def test_what_a_dead_worker_held_is_loaded_by_whoever_has_room():
    m = a_crew(seats=2, drawn=2)
    assert play(m, exits(A, 0, 0)) == [Send(B, 0), Start(Worker(0, 2), 0)]


def test_what_nobody_has_room_for_waits_for_the_next_life():
    m = a_crew(seats=1, drawn=2)
    assert play(m, exits(A)) == [Start(Worker(0, 2), 0)]
    assert play(m, WorkerReady(Worker(0, 2))) == [Send(Worker(0, 2), 0), Send(Worker(0, 2), 1)]


def test_a_result_from_the_dead_is_discarded():
    m = a_crew(seats=1, drawn=1)
    play(m, exits(A))
    assert play(m, BatchReady(A, 0, 8)) == [Discard(0)]
    play(m, WorkerReady(Worker(0, 2)))
    assert play(m, BatchReady(A, 0, 8), WorkerReady(A), exits(A, 0, 0)) == [Discard(0)]
    assert play(m, BatchReady(Worker(0, 2), 0, 8), Wanted())[0] == Deliver(0)


def test_a_sample_that_kills_twice_is_poison_and_is_delivered_in_its_turn():
    m = a_crew(seats=1, prefetch=1, drawn=1)
    assert play(m, exits(A, 0, 3)) == [Start(Worker(0, 2), 0)]
    assert play(m, WorkerReady(Worker(0, 2)), exits(Worker(0, 2), 0, 3)) == [Send(Worker(0, 2), 0), Condemn(0, 3, 2)]
    assert play(m, Sentenced(0), Wanted()) == [Start(Worker(0, 3), 0), Deliver(0), Draw(1)]


def test_a_batch_that_is_pardoned_is_loaded_again_when_its_time_has_come():
    m = a_crew(seats=1, prefetch=1, drawn=1, attempts=1)
    assert play(m, exits(A, 0, 3)) == [Condemn(0, 3, 1)]
    assert m.waiting_on() == ["a decision on batch 0"]
    assert play(m, Pardoned(0, again_at=5.0)) == [Start(Worker(0, 2), 0)]
    assert play(m, SamplerEnded(), WorkerReady(Worker(0, 2)), now=1.0) == []
    assert m.waiting_on() == ["batch 0 to be tried again in 4.0 s"]
    assert m.next_deadline() == 5.0
    assert play(m, Ticked(), now=5.0) == [Send(Worker(0, 2), 0)]


def test_deaths_that_somebody_answers_for_are_no_crash_loop():
    m = a_crew(seats=1, prefetch=1, drawn=1, attempts=1, crash_loop=3)
    for life in range(1, 20):
        assert play(m, exits(Worker(0, life), 0, 3), Pardoned(0, 0.0)) == [
            Condemn(0, 3, 1),
            Start(Worker(0, life + 1), 0),
        ]
        play(m, WorkerReady(Worker(0, life + 1)))


def test_a_batch_that_failed_waits_while_the_others_go_on():
    m = a_crew(seats=1, prefetch=1, drawn=1)
    assert play(m, BatchFailed(A, 0, again_at=5.0), Wanted()) == []
    said = play(m, Ticked(), now=1.0)
    assert said == [Draw(1)], "the crew runs ahead of it"
    assert play(m, Drawn(1), now=1.0) == [Send(A, 1)]
    assert play(m, BatchReady(A, 1, 8), now=2.0) == [Draw(1)]
    assert play(m, SamplerEnded(), Ticked(), now=5.0) == [Send(A, 0)]
    assert play(m, BatchReady(A, 0, 8), now=5.0) == [Deliver(0)]


def test_a_worker_that_hangs_needs_no_second_time():
    m = a_crew(seats=1, prefetch=1, drawn=1, attempts=2)
    assert play(m, WorkerExited(A, 0, 3, hung=True)) == [Condemn(0, 3, 1)]


def test_a_worker_is_replaced_at_the_edge_of_a_batch():
    m = a_crew(seats=1, prefetch=2, drawn=2, recycle_after=2)
    assert play(m, Drawn(1)) == [], "it gets nothing more"
    assert play(m, BatchReady(A, 0, 8)) == []
    assert play(m, BatchReady(A, 1, 8)) == [Retire(A), Start(Worker(0, 2), 0)]
    assert play(m, WorkerReady(Worker(0, 2))) == [Send(Worker(0, 2), 2)]
    assert m.restarts == 0


def test_a_worker_that_has_outgrown_its_memory_is_replaced_when_its_hands_are_empty():
    m = a_crew(seats=2, prefetch=1, drawn=2)
    assert play(m, Outgrown(A)) == []
    assert play(m, BatchReady(A, 0, 8)) == [Retire(A), Start(Worker(0, 2), 0)]
    assert play(m, exits(A)) == [], "its end is no death"


def test_different_samples_of_a_batch_count_apart_until_there_are_too_many():
    m = a_crew(seats=1, prefetch=1, drawn=1, attempts=2)
    said = []
    for life in range(1, 7):
        play(m, Ticked(), WorkerReady(Worker(0, life)), now=100.0 * life)
        said += play(m, exits(Worker(0, life), 0, sample=life), now=100.0 * life)
    assert [command for command in said if isinstance(command, Condemn)] == [Condemn(0, None, 6)]


def test_a_death_on_nothing_known_accuses_nobody():
    m = a_crew(seats=1, prefetch=1, drawn=1, attempts=1)
    assert play(m, exits(A, None, None)) == [Start(Worker(0, 2), 0)]


def test_a_seat_that_keeps_dying_backs_off():
    m = a_crew(seats=2, drawn=0)
    pauses, now = [], 0.0
    for life in range(1, 9):
        said = play(m, exits(Worker(0, life)), now=now)
        pauses.append(0.0 if Start(Worker(0, life + 1), 0) in said else m.next_deadline() - now)
        now += pauses[-1]
        play(m, Ticked(), now=now)
    assert pauses == pytest.approx([0, 0, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2])


def test_the_pause_is_told():
    m = a_crew(seats=1, prefetch=1, drawn=1)
    play(m, exits(A), exits(Worker(0, 2)), exits(Worker(0, 3)), Ticked(), now=5.0)
    assert m.waiting_on() == ["worker 0 to be started again in 0.1 s"]
    assert m.next_deadline() == 5.1
    assert play(m, Ticked(), now=5.1) == [Start(Worker(0, 4), 0)]


def test_restarts_have_a_budget():
    m = a_crew(seats=1, drawn=1, max_restarts=1)
    play(m, Wanted(), exits(A))
    assert play(m, exits(Worker(0, 2))) == [Fail("restarts", 1)]
    assert m.over
    assert play(m, Wanted()) == [Fail("restarts", 1)]


def test_a_crash_loop_ends_the_run_and_the_next_user_is_told():
    m = a_crew(seats=1, drawn=1, crash_loop=3)
    play(m, exits(A), exits(Worker(0, 2)))
    assert play(m, exits(Worker(0, 3))) == [Fail("crash loop", 2)]
    assert play(m, Wanted(), Wanted()) == [Fail("crash loop", 2)] * 2


def test_a_completed_batch_ends_the_row():
    m = a_crew(seats=1, drawn=2, crash_loop=3)
    play(m, exits(A), exits(Worker(0, 2)), WorkerReady(Worker(0, 3)), BatchReady(Worker(0, 3), 0, 8))
    assert play(m, exits(Worker(0, 3))) == [Start(Worker(0, 4), 0)]


def test_a_crew_killed_as_one_is_no_crash_loop_and_is_back_at_once():
    m = a_crew(seats=16, drawn=32)
    said = [command for seat in range(16) for command in play(m, exits(Worker(seat, 1)))]
    assert said == [Start(Worker(seat, 2), 0) for seat in range(16)]


def test_a_worker_that_leaves_when_all_is_done_is_not_replaced_before_the_next_epoch():
    m = a_crew(seats=2, drawn=1, max_restarts=0)
    play(m, SamplerEnded(), Wanted(), BatchReady(A, 0, 8))
    assert play(m, exits(B)) == []
    assert play(m, EpochBegan()) == [Start(Worker(1, 2), 0), Draw(4)]


# -- streams -----------------------------------------------------------------------------------


def test_every_seat_has_its_own_stream_and_they_take_turns():
    m = a_crew(seats=2, prefetch=2, drawn=4, bound=True)
    assert m.waiting_on() == ["batch 0 from worker 0", "batch 1 from worker 1"]
    play(m, BatchReady(B, 1, 8), BatchReady(B, 3, 8), BatchReady(A, 0, 8))
    assert play(m, Wanted(), Wanted(), Wanted()) == [Deliver(0), Draw(1), Deliver(1)]
    assert play(m, Drawn(1), BatchReady(A, 2, 8)) == [Send(A, 4), Draw(1), Deliver(2)]


def test_the_turn_passes_over_a_stream_that_has_ended():
    m = a_crew(seats=2, prefetch=1, drawn=2, bound=True)
    play(m, BatchReady(B, 1, 8), Wanted())
    assert play(m, StreamEnded(A, 0)) == [Deliver(1), Draw(1)]
    play(m, Drawn(1), Wanted())
    assert play(m, BatchReady(B, 3, 8)) == [Deliver(3), Draw(1)]
    play(m, Drawn(1), Wanted())
    assert play(m, StreamEnded(B, 5)) == [End()]


def test_a_stream_goes_on_in_its_own_seat_after_a_death():
    m = a_crew(seats=2, prefetch=2, drawn=4, bound=True)
    play(m, BatchReady(A, 0, 8))
    assert play(m, exits(A, 2, 0)) == [Start(Worker(0, 2), skip=1)]
    assert play(m, WorkerReady(Worker(0, 2))) == [Send(Worker(0, 2), 2)]


def test_a_stream_ends_with_a_batch_that_is_poison():
    m = a_crew(seats=2, prefetch=1, drawn=2, bound=True, attempts=1)
    assert play(m, exits(A, 0, 5)) == [Condemn(0, 5, 1)]
    assert play(m, Sentenced(0), Wanted()) == [Deliver(0)], "and nobody is started to die of it again"


def test_a_stream_that_is_pardoned_is_read_again():
    m = a_crew(seats=1, prefetch=2, drawn=2, bound=True, attempts=1)
    assert play(m, exits(A, 0, 5), Pardoned(0, 0.0)) == [Condemn(0, 5, 1), Start(Worker(0, 2), skip=0)]
    assert play(m, WorkerReady(Worker(0, 2))) == [Send(Worker(0, 2), 0), Send(Worker(0, 2), 1)]


def test_a_worker_whose_stream_has_ended_may_go():
    m = a_crew(seats=2, prefetch=1, drawn=2, bound=True, max_restarts=0)
    play(m, StreamEnded(A, 0))
    assert play(m, exits(A)) == []
    assert play(m, EpochBegan()) == [Start(Worker(0, 2), 0), Draw(1)]


def test_a_sampler_that_ends_ends_all_streams():
    m = a_crew(seats=2, prefetch=2, drawn=1, bound=True)
    play(m, SamplerEnded(), BatchReady(A, 0, 8))
    assert play(m, Wanted(), Wanted()) == [Deliver(0), End()]


# -- epochs ------------------------------------------------------------------------------------


def test_a_new_epoch_forgets_the_old_one_and_numbers_go_on():
    m = a_crew(seats=2, prefetch=1, drawn=2)
    play(m, BatchReady(B, 1, 8))
    assert play(m, EpochBegan()) == [Discard(1), Draw(2)]
    assert m.first == 2
    assert play(m, BatchReady(A, 0, 8)) == [Discard(0)]
    assert play(m, Drawn(2)) == [Send(A, 2), Send(B, 3)]


def test_streams_begin_anew_with_an_epoch():
    m = a_crew(seats=2, prefetch=1, drawn=2, bound=True)
    play(m, StreamEnded(A, 0), BatchReady(B, 1, 8), Wanted(), Drawn(1), EpochBegan())
    assert m.first == 4
    assert play(m, Drawn(2)) == [Send(A, 4), Send(B, 5)]


def test_deaths_of_an_old_epoch_accuse_nobody_in_the_new():
    m = a_crew(seats=1, prefetch=1, drawn=1, attempts=1)
    play(m, EpochBegan())
    assert play(m, exits(A, 0, 0)) == [Start(Worker(0, 2), 0)]


# -- an epoch that goes on in its middle -------------------------------------------------------


def test_an_epoch_goes_on_behind_what_was_given():
    m = Machine(Limits(seats=2, prefetch=1))
    assert play(m, EpochBegan(start=3)) == [Start(A, 0), Start(B, 0), Draw(2)]
    assert m.first == 0, "batch 3 is still batch 3: its seed and its home hang on it"
    assert play(m, WorkerReady(A), WorkerReady(B), Drawn(2)) == [Send(B, 3), Send(A, 4)]
    play(m, BatchReady(A, 4, 8), BatchReady(B, 3, 8))
    assert play(m, Wanted(), Wanted()) == [Deliver(3), Draw(1), Deliver(4)]


def test_an_epoch_of_which_all_was_given_is_an_end():
    m = Machine(Limits(seats=1))
    play(m, EpochBegan(start=7), SamplerEnded())
    assert play(m, Wanted()) == [End()]


def test_batches_that_were_given_out_of_order_are_drawn_and_not_loaded():
    m = Machine(Limits(seats=1, prefetch=2, in_order=False))
    play(m, EpochBegan(start=1, done=frozenset({2, 4})), WorkerReady(A))
    assert play(m, Drawn(2)) == [Send(A, 1), Draw(1)], "batch 2 takes no place"
    assert play(m, Drawn(1)) == [Send(A, 3)]
    assert play(m, BatchReady(A, 3, 8), Wanted()) == [Deliver(3), Draw(1)]
    assert play(m, Drawn(1), SamplerEnded()) == [Draw(1)]
    assert play(m, Wanted(), BatchReady(A, 1, 8), Wanted()) == [Deliver(1), End()]


def test_what_a_run_out_of_order_has_given_is_passed_over_in_order():
    m = Machine(Limits(seats=1, prefetch=2))
    play(m, EpochBegan(start=1, done=frozenset({2, 3})), WorkerReady(A), Drawn(2), Drawn(2))
    play(m, BatchReady(A, 1, 8), BatchReady(A, 4, 8))
    assert play(m, Wanted(), Wanted()) == [Deliver(1), Draw(1), Deliver(4)]


def test_the_epoch_after_it_is_whole_and_has_new_numbers():
    m = Machine(Limits(seats=1, prefetch=2))
    play(m, EpochBegan(start=3, done=frozenset({5})), WorkerReady(A), Drawn(2), EpochBegan())
    assert m.first == 5
    assert play(m, Drawn(2)) == [Send(A, 5), Send(A, 6)]


def test_a_persistent_crew_goes_on_in_the_middle_of_its_next_epoch():
    m = a_crew(seats=2, prefetch=1, drawn=2)
    play(m, BatchReady(A, 0, 8))
    assert play(m, EpochBegan(start=3)) == [Discard(0), Draw(2)]
    assert m.first == 2
    assert play(m, Drawn(2)) == [Send(B, 5), Send(A, 6)], "batches 3 and 4 of the epoch"
    assert play(m, BatchReady(B, 1, 8), BatchReady(B, 5, 8), Wanted()) == [Discard(1), Deliver(5), Draw(1)]


def test_each_stream_goes_on_behind_what_it_has_given():
    m = Machine(Limits(seats=2, prefetch=1, bound=True))
    assert play(m, EpochBegan(given=(2, 1))) == [Start(A, skip=2), Start(B, skip=1)]
    assert m.first == 0
    assert play(m, WorkerReady(A), WorkerReady(B), Drawn(1), Drawn(1)) == [Draw(1), Send(B, 3), Draw(1), Send(A, 4)]
    play(m, BatchReady(A, 4, 8), BatchReady(B, 3, 8))
    assert play(m, Wanted(), Wanted()) == [Deliver(3), Draw(1), Deliver(4)], "the rotation is that of a whole epoch"


def test_every_life_is_told_what_lies_behind_it():
    m = Machine(Limits(seats=1, prefetch=2, bound=True))
    play(m, EpochBegan(given=(5,)), WorkerReady(A), Drawn(2))
    assert play(m, exits(A)) == [Start(Worker(0, 2), skip=5)]
    play(m, WorkerReady(Worker(0, 2)), BatchReady(Worker(0, 2), 5, 8))
    assert play(m, exits(Worker(0, 2))) == [Start(Worker(0, 3), skip=6)]


def test_nobody_is_started_for_a_stream_that_was_over():
    m = Machine(Limits(seats=2, prefetch=1, bound=True))
    assert play(m, EpochBegan(given=(1, 2), ended=frozenset({0}))) == [Start(B, skip=2)]
    play(m, WorkerReady(B), Drawn(1), BatchReady(B, 5, 8))
    assert play(m, Wanted(), Drawn(1), Wanted(), StreamEnded(B, 7)) == [Deliver(5), Draw(1), Send(B, 7), End()]
    assert play(m, EpochBegan()) == [Start(A, 0), Draw(1)]
    assert m.first == 8


def test_a_worker_whose_stream_was_over_is_left_alone():
    m = a_crew(seats=2, prefetch=1, drawn=0, bound=True)
    assert play(m, EpochBegan(given=(0, 1), ended=frozenset({0}))) == [Draw(1)]
    assert play(m, exits(A)) == [], "and may go"


def test_a_seat_that_pauses_is_not_started_when_its_stream_was_over():
    m = Machine(Limits(seats=1, bound=True))
    play(m, EpochBegan(), exits(A), exits(Worker(0, 2)), exits(Worker(0, 3)))
    assert play(m, EpochBegan(given=(3,), ended=frozenset({0})), Wanted()) == [End()]
    assert m.next_deadline() == math.inf
    assert m.waiting_on() == []


def test_all_streams_were_over():
    m = Machine(Limits(seats=2, bound=True))
    assert play(m, EpochBegan(given=(2, 3), ended=frozenset({0, 1}))) == []
    assert play(m, Wanted(), Wanted()) == [End(), End()]


def test_streams_that_were_given_out_of_order_fall_into_step():
    m = Machine(Limits(seats=2, prefetch=1, bound=True))
    play(m, EpochBegan(given=(4, 1)), WorkerReady(A), WorkerReady(B), Drawn(1), Drawn(1))
    assert play(m, BatchReady(A, 8, 8), Wanted(), BatchReady(B, 3, 8)) == [Deliver(3), Draw(1)]
    assert play(m, Wanted(), Drawn(1)) == [Send(B, 5)]
    assert play(m, StreamEnded(B, 5)) == [Deliver(8), Draw(1)], "nothing of worker 0 before that is waited for"


# -- the end -----------------------------------------------------------------------------------


def test_closing_gives_everything_back_and_ends():
    m = a_crew(seats=2, drawn=4)
    play(m, BatchReady(B, 1, 8))
    assert play(m, Closed()) == [Discard(1)]
    assert m.over
    assert play(m, BatchReady(A, 0, 8), Wanted(), exits(A), Ticked()) == [Discard(0), End()]
    assert m.next_deadline() == math.inf
    assert m.waiting_on() == []


def test_it_says_whom_it_waits_for():
    m = Machine(Limits(seats=2, prefetch=1))
    play(m, EpochBegan())
    assert m.waiting_on() == ["the sampler", "worker 0 to be ready", "worker 1 to be ready"]
    play(m, Drawn(2), WorkerReady(A))
    assert m.waiting_on() == ["batch 0 from worker 0", "worker 1 to be ready"]


def test_the_story_is_told():
    m = a_crew(seats=1, drawn=1)
    assert (
        str(m.story).splitlines()[-1]
        == "0.000000  Drawn(count=1)  ->  Send(who=Worker(seat=0, life=1), batch=0), Draw(count=1)"
    )
