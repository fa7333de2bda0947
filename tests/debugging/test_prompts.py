"""breakpoint() in a worker is a prompt where the trainer is; the run goes on as if nothing had been."""

from __future__ import annotations

import bdb
import os
import re
import signal
import time
from typing import Any

import pytest
import torch
from halting import (
    BySetTrace,
    Halting,
    HaltingStream,
    HaltingWhenTold,
    Noisy,
    equal,
    halting_call,
    halting_init,
    plain_list,
)

import holdfast
from holdfast import DataLoader, NoPrompt
from holdfast._engine import prompts


def loaded(dataset: Any, **options: Any) -> list[Any]:
    torch.manual_seed(7)
    return list(DataLoader(dataset, batch_size=4, collate_fn=plain_list, **{"num_workers": 2, **options}))


@pytest.fixture(scope="module")
def undisturbed() -> list[Any]:
    return loaded(Noisy())


def test_variables_of_the_worker_are_seen_and_its_lines_are_stepped(types, capsys, undisturbed):
    types("p index, tuple(drawn.shape)", "n", "p doubled", "w", "c")
    assert equal(loaded(Halting(5)), undisturbed)
    shown = capsys.readouterr().out
    assert "fetching sample 5 of batch 1" in shown
    assert "(5, (2,))" in shown
    assert "return index, drawn" in shown
    assert "\n10\n" in shown
    assert "holdfast" not in shown  # not a frame of ours


def test_the_prompt_says_whose_it_is(types, capsys):
    typist = types(lambda: f"p {os.getpid()}, __import__('os').getpid()")
    loaded(Halting(5))
    trainer, worker = map(int, capsys.readouterr().out.split("(Pdb, worker 1) p ")[1].split("\n")[1][1:-1].split(","))
    assert trainer == os.getpid() != worker
    assert typist.prompts == ["(Pdb, worker 1) "] * 2


@pytest.mark.parametrize("dataset", [Noisy(5), BySetTrace(5)], ids=["breakpoint", "set_trace"])
@pytest.mark.parametrize("options", [{}, {"start": "fork"}, {"persistent_workers": True}], ids=str)
def test_the_batches_are_the_same_after_it(types, undisturbed, dataset, options):
    typist = types("n")
    assert equal(loaded(dataset, **options), undisturbed)
    assert len(typist.prompts) == 2


def test_two_workers_that_stop_at_once_take_turns(types, capsys, undisturbed):
    types("p index", "p index", "n", "c", "p index", "c")
    assert equal(loaded(Halting(1, 5)), undisturbed)
    sessions = capsys.readouterr().out.split("\nworker ")[1:]
    assert sorted(session[0] for session in sessions) == ["0", "1"]
    assert sorted(session.count(f"(Pdb, worker {session[0]})") for session in sessions) == [2, 4]


def test_who_steps_out_of_its_batch_does_not_keep_the_terminal(types, capsys, undisturbed):
    types(*["r"] * 40)  # to the end of each call, and on to the next, and never "c"
    assert equal(loaded(Halting(1, 5), prefetch_factor=1), undisturbed)
    assert {"worker 0", "worker 1"} <= {line[:8] for line in capsys.readouterr().out.splitlines()}


def slowly() -> str:
    time.sleep(1.7)  # somebody who thinks
    return "p index"


def test_time_at_the_prompt_counts_for_no_limit(types, undisturbed):
    """Neither for the worker that is talked to, nor for the one that waits for its turn, nor for the trainer."""
    types(slowly, slowly, "import time; time.sleep(0.4)", "c", "c")
    assert equal(loaded(Halting(1, 5), stall_timeout=3, timeout=3), undisturbed)


def test_end_of_file_goes_on(types, undisturbed):
    typist = types("p index", EOFError)
    assert equal(loaded(Halting(5)), undisturbed)
    assert len(typist.prompts) == 2


def test_ctrl_c_at_the_prompt_is_for_the_debugger(types, capsys, undisturbed):
    types(KeyboardInterrupt, "p index")
    assert equal(loaded(Halting(5)), undisturbed)
    assert "--KeyboardInterrupt--" in capsys.readouterr().out


def test_to_quit_ends_the_loop_whatever_the_policy(types):
    types("q")
    with pytest.raises(bdb.BdbQuit) as caught:
        loaded(Halting(5), on_error="skip")
    assert "while it loaded sample 5 of batch 1" in caught.value.__notes__[0]


def test_a_worker_killed_at_its_prompt_is_replaced(types, undisturbed):
    torch.manual_seed(7)
    loader = DataLoader(Halting(5), batch_size=4, collate_fn=plain_list, num_workers=2)
    iterator = iter(loader)
    halted = iterator._workers[1].pid

    def kill() -> str:
        os.kill(halted, signal.SIGKILL)
        return "c"

    typist = types(kill)
    assert equal(list(iterator), undisturbed)
    assert len(typist.prompts) == 2  # once more in the new one
    assert len(loader.faults.filter(kind="death")) == 1
    iterator._shutdown_workers()


def test_a_loop_that_is_left_does_not_wait_for_a_prompt(types, tmp_path):
    typist, dataset = types(), HaltingWhenTold(tmp_path, 5, 9, 13)
    batches = iter(DataLoader(dataset, batch_size=4, num_workers=2, collate_fn=plain_list))
    next(batches)
    dataset.told.touch()
    while not dataset.reached.exists():
        time.sleep(0.01)
    began = time.monotonic()
    batches._shutdown_workers()
    assert time.monotonic() - began < 5
    assert not typist.prompts


def test_what_runs_before_the_first_batch_stops_too(types, capsys, undisturbed):
    types("p seat", "c", "p seat")
    assert equal(loaded(Noisy(), worker_init_fn=halting_init), undisturbed)
    assert "running worker_init_fn" in capsys.readouterr().out


def test_a_stream_stops_where_it_begins(types):
    typist = types()
    assert sorted(map(int, DataLoader(HaltingStream(), num_workers=2))) == [0, 1, 2, 3, 10, 11, 12, 13]
    assert len(typist.prompts) == 2


def test_pythonbreakpoint_means_what_it_always_does(types, undisturbed, monkeypatch):
    typist = types()
    monkeypatch.setenv("PYTHONBREAKPOINT", "0")
    assert equal(loaded(Halting(5)), undisturbed)
    assert not typist.prompts


def test_without_a_terminal_it_is_explained_once_and_goes_on(undisturbed):
    prompts._told.clear()
    with pytest.warns(NoPrompt) as told:
        batches = loaded(Halting(1, 5, 9))
    assert equal(batches, undisturbed)
    [warning] = told
    text = str(warning.message)
    assert "halting.py:" in text
    assert re.search(r"fetching sample (1|5|9) of batch \d: there is no terminal", text)
    assert re.search(r"holdfast replay TARGET (1|5|9) --at 0/\d/", text)
    assert text.endswith("--pdb [HF210]")


def test_a_notebook_that_nobody_sits_at_is_no_terminal(types, undisturbed):
    prompts._told.clear()
    types(RuntimeError)  # as ipykernel raises it when it is run by a program
    with pytest.warns(NoPrompt, match="there is no terminal"):
        assert equal(loaded(Halting(5)), undisturbed)


@pytest.mark.parametrize("call", ["map", "submit"])
def test_a_call_of_a_pool_stops_and_its_time_limit_waits(types, capsys, call):
    types(lambda: slowly() and "p number", "c")
    if call == "map":
        with holdfast.Pool(2, task_timeout=0.5) as pool:
            results = pool.map(halting_call, range(6))
    else:
        with holdfast.Executor(2, task_timeout=0.5) as executor:
            results = [each.result() for each in [executor.submit(halting_call, number) for number in range(6)]]
    assert results == [0, 1, 4, 9, 16, 25]
    assert "in halting_call(3)" in capsys.readouterr().out


def test_a_loader_on_a_pool_stops(types, undisturbed, capsys):
    types("p index")
    with holdfast.Pool(2) as pool:
        assert equal(loaded(Halting(5), pool=pool), undisturbed)
    assert "\n5\n" in capsys.readouterr().out
