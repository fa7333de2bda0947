"""`spawn` keeps torch's contract: what ranks return and find, and what comes back without waiting for them."""

from __future__ import annotations

import os
import pickle
import sys
import threading

import acts
import pytest
import torch
import torch.multiprocessing

from holdfast.errors import CannotShip, CannotShipToRanks, ResultLost
from holdfast.ranks.spawning import spawn

STARTS = ("spawn", "zygote", "fork")


@pytest.fixture(params=STARTS)
def start(request):
    return request.param


def test_results_come_by_rank(start):
    results = spawn(acts.returns, (torch.ones(3),), nprocs=3, start_method=start)
    assert [(rank, name) for rank, _, name in results] == [(0, "rank 0"), (1, "rank 1"), (2, "rank 2")]
    assert [value.tolist() for _, value, _ in results] == [[1.0] * 3, [2.0] * 3, [3.0] * 3]


def test_forkserver_is_honoured():
    assert spawn(lambda rank: rank, nprocs=2, start_method="forkserver") == [0, 1]


def test_a_lambda_and_its_variables_go_along(start):
    there = {"of": "the test"}
    assert spawn(lambda rank, more: (rank, there, more), ("args",), 1, start_method=start) == [(0, there, "args")]


def test_ranks_keep_what_is_the_parents(start, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["train.py", "--fast"])
    cores, threads = os.sched_getaffinity(0), torch.get_num_threads()
    os.sched_setaffinity(0, [min(cores)])
    torch.set_num_threads(1)
    try:
        first, second = spawn(acts.surroundings, nprocs=2, start_method=start)
    finally:
        os.sched_setaffinity(0, cores)
        torch.set_num_threads(threads)
    assert (first["cores"], first["threads"], first["worker"]) == ({min(cores)}, 1, None)
    assert (first["argv"], first["folder"], first["parent"]) == (["train.py", "--fast"], str(tmp_path), True)
    if start == "fork":
        assert first["seed"] == torch.initial_seed()
    else:  # as in every new interpreter
        assert not {first["seed"], *first["random"]} & {second["seed"], *second["random"]}


def test_torch_has_as_many_threads_as_in_the_parent():
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        assert spawn(acts.surroundings, start_method="zygote")[0]["threads"] == 3
    finally:
        torch.set_num_threads(before)


def test_shared_memory_stays_shared_and_plain_tensors_are_copied(start):
    context = torch.multiprocessing.get_context("spawn")
    queue, tensor, private = context.SimpleQueue(), torch.zeros(2).share_memory_(), torch.zeros(2)
    spawn(acts.shared, (tensor, private, queue), nprocs=2, start_method=start)
    assert tensor.tolist() == [1.0, 2.0]
    assert not private.is_shared()
    assert private.tolist() == [0.0, 0.0]
    assert sorted([queue.get(), queue.get()]) == [0, 1]
    queue.close()


def test_exit_handlers_of_a_rank_run_and_those_of_its_parent_do_not(start, tmp_path):
    import atexit

    atexit.register(acts.make, tmp_path / "of the parent")
    try:
        spawn(acts.at_exit, (tmp_path, 0), nprocs=2, start_method=start)
    finally:
        atexit.unregister(acts.make)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["exit 0", "exit 1"]


def test_a_thread_may_start_ranks(start):
    made = []
    thread = threading.Thread(
        target=lambda: made.append(spawn(acts.returns, (torch.ones(1),), 2, False, start_method=start))
    )
    thread.start()
    thread.join()
    assert made[0].join()
    assert [rank for rank, *_ in made[0].results] == [0, 1]


# -- without waiting -----------------------------------------------------------------------------


def test_a_context_is_joined_in_steps(tmp_path):
    context = spawn(acts.wait_for, (tmp_path,), 2, False, start_method="zygote")
    for rank in range(2):
        acts.await_file(tmp_path / f"began {rank}")
    assert context.join(timeout=0) is False
    assert context.pids() == [int((tmp_path / f"began {rank}").read_text()) for rank in range(2)]
    assert [process.is_alive() for process in context.processes] == [True, True]
    with pytest.raises(ValueError, match="not been joined"):
        context.results  # noqa: B018
    acts.make(tmp_path / "go")
    assert context.join(timeout=60) is True
    assert context.join() is True
    assert context.results == [0, 1]
    assert [process.exitcode for process in context.processes] == [0, 0]


def test_ranks_that_are_done_wait_for_nobody(tmp_path):
    """A result of any size is handed over before anybody asks for it."""
    context = spawn(lambda rank: bytes(10_000_000), nprocs=2, join=False, start_method="zygote")
    for process in context.processes:
        process.join(60)
        assert process.exitcode == 0
    assert context.join()
    assert [len(result) for result in context.results] == [10_000_000] * 2


def test_a_failed_context_fails_each_time():
    context = spawn(acts.leave, ("exception", None), join=False, start_method="zygote")
    context.processes[0].terminate()
    for _ in range(2):
        with pytest.raises(torch.multiprocessing.ProcessExitedException) as caught:
            context.join()
        assert (caught.value.exit_code, caught.value.signal_name) == (-15, "SIGTERM")


# -- what cannot be done -------------------------------------------------------------------------


def test_what_cannot_be_pickled_is_named(start):
    if start == "fork":
        assert spawn(lambda rank, lock: rank, (threading.Lock(),), start_method=start) == [0]
        return
    with pytest.raises(CannotShip, match=r"args\[0\]\['lock'\] \(_thread.lock\) cannot be pickled") as caught:
        spawn(acts.returns, ({"lock": threading.Lock()},), nprocs=2, start_method=start)
    assert isinstance(caught.value, CannotShipToRanks)


def test_an_argument_that_does_not_arrive_is_the_ranks_error(start):
    if start == "fork":
        return  # nothing travels
    with pytest.raises(torch.multiprocessing.ProcessRaisedException, match="step 0: not here") as caught:
        spawn(acts.returns, (acts.FailsToArrive(),), nprocs=2, start_method=start)
    assert isinstance(caught.value.__cause__, acts.Unlucky)


def test_a_result_that_cannot_travel_is_no_failure_and_not_silent():
    with pytest.warns(ResultLost, match="what rank 1 returned cannot be passed"):
        assert spawn(acts.returns_a_lock, nprocs=2, start_method="zygote") == ["fine", None]


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"nprocs": 0}, "nprocs should be at least 1, but got nprocs=0"),
        ({"start_method": "threads"}, "should be one of .*'spawn'"),
        ({"start_method": "standby"}, '"spawn", "fork", "forkserver" or "zygote", not by \'standby\''),
    ],
    ids=str,
)
def test_wrong_arguments_are_told_before_anything_starts(how, said):
    with pytest.raises(ValueError, match=said):
        spawn(acts.surroundings, **how)


def test_errors_can_be_pickled(tmp_path):
    for how in ("exception", "SIGKILL"):
        folder = tmp_path / how
        folder.mkdir()
        with pytest.raises(Exception, match="rank 1") as caught:
            spawn(acts.leave, (how, folder), nprocs=2, start_method="zygote")
        again = pickle.loads(pickle.dumps(caught.value))
        assert (type(again), str(again), again.error_index) == (type(caught.value), str(caught.value), 1)
        assert again.msg == str(again)
