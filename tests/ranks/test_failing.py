"""A rank that does not return is a failure: the first one is reported, as it was, and nobody is left.

What stock torch 2.13 does: after `sys.exit(0)`, `os._exit(0)` and SIGINT in a rank, `spawn` returns as if all were well
(F66, in the gauntlet); of two ranks that fail it reports the one whose process is noticed first.
"""

from __future__ import annotations

import os
import re
import resource
import time

import acts
import psutil
import pytest
from torch.multiprocessing import ProcessExitedException, ProcessRaisedException

from holdfast.errors import HoldfastError, RankExited, RankRaised, RemoteError
from holdfast.ranks import context
from holdfast.ranks.spawning import spawn

STARTS = ("spawn", "zygote", "fork")
SOON = 30.0  # seconds; a rank that sleeps for ever is not waited for


def fails(how: str, folder, start: str = "zygote"):
    """The error of rank 1, which leaves in this way; rank 0 is gone."""
    with pytest.raises(HoldfastError) as caught:
        spawn(acts.leave, (how, folder), nprocs=2, start_method=start)
    assert not psutil.pid_exists(int((folder / "pid 0").read_text()))
    assert caught.value.error_index == 1
    return caught.value


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("how", ["sys.exit(0)", "os._exit(0)", "SIGINT", "crash", "exception"])
def test_who_does_not_return_has_failed_and_the_others_are_ended(how, start, tmp_path):
    error = fails(how, tmp_path, start)
    assert isinstance(error, ProcessRaisedException if how in ("SIGINT", "exception") else ProcessExitedException)


@pytest.mark.parametrize(
    ("how", "status", "said"),
    [
        ("sys.exit(0)", 0, "exited with status 0 before leave had returned"),
        ("sys.exit()", 0, r"SystemExit\n +File \".*acts.py\", line \d+ in <lambda>\n"),
        ("sys.exit(3)", 3, "process 1 terminated with exit code 3"),
        ("sys.exit(words)", 1, "SystemExit: no such file"),
        ("os._exit(0)", 0, "it ended by itself, without an exception"),
        ("SIGKILL", -9, "SIGKILL was sent by a program, another one or itself"),
        ("crash", -11, r"Segmentation fault\n.*string_at\n +File \".*acts.py\", line \d+ in _crash"),
        pytest.param("limit", -24, "the limit of processor time was reached: RLIMIT_CPU", marks=pytest.mark.slow),
        ("last words", -9, "stderr:\n +the last words"),
    ],
)
def test_an_exit_comes_with_its_evidence(how, status, said, tmp_path):
    error = fails(how, tmp_path)
    assert isinstance(error, RankExited)
    assert error.exit_code == error.verdict.status == status
    assert error.signal_name == error.verdict.signal
    assert re.search(said, str(error))
    assert os.path.join("holdfast", "ranks") not in str(error)


def test_an_exception_arrives_as_itself(tmp_path):
    error = fails("exception", tmp_path)
    assert isinstance(error, RankRaised)
    cause = error.__cause__
    assert (type(cause), cause.step, str(cause)) == (acts.Unlucky, 7, "step 7: no data")
    assert cause.__notes__ == [f"raised in rank 1 (pid {error.error_pid})"]
    first, *rest = str(error).splitlines()
    assert first == f"rank 1 (pid {error.error_pid}) raised Unlucky: step 7: no data [HF801]"
    assert "-- Process 1 terminated with the following error:" in rest[0]
    frames = [line.strip() for line in rest if "File " in line]
    assert [line.rpartition(" in ")[2] for line in frames] == ["leave", "_fail"]


def test_an_exception_that_cannot_be_pickled_keeps_its_name_and_text(tmp_path):
    error = fails("exception with a lock", tmp_path)
    assert isinstance(error.__cause__, RemoteError)
    assert "raised acts.Locked: it holds a lock" in str(error)


@pytest.mark.parametrize("how", ["SIGINT", "KeyboardInterrupt"])
def test_an_interrupt_in_a_rank_is_its_failure(how, tmp_path):
    assert isinstance(fails(how, tmp_path).__cause__, KeyboardInterrupt)


def test_a_failure_is_noticed_although_a_thread_keeps_the_process(monkeypatch, tmp_path):
    monkeypatch.setattr(context, "GRACE", 0.2)
    began = time.monotonic()
    fails("exception, and a thread", tmp_path)
    assert time.monotonic() - began < SOON


@pytest.mark.parametrize("start", STARTS)
def test_a_rank_that_dies_after_it_has_returned_has_failed(start, tmp_path):
    with pytest.raises(ProcessExitedException, match="exited with status 4 after at_exit had returned") as caught:
        spawn(acts.at_exit, (tmp_path, 4), start_method=start)
    assert caught.value.exit_code == 4


# -- who was first -------------------------------------------------------------------------------


@pytest.mark.parametrize("start", STARTS)
def test_the_first_to_fail_is_reported_though_another_is_heard_of_first(start, tmp_path):
    with pytest.raises(ProcessRaisedException, match=r"rank 1 .* raised SlowToTell: the cause") as caught:
        spawn(acts.fail_in_turn, (tmp_path,), nprocs=2, start_method=start)
    assert isinstance(caught.value.__cause__, acts.SlowToTell)
    assert "rank 0 raised ConnectionError: rank 1 is gone, 0." in caught.value.others[0]


@pytest.mark.parametrize("start", STARTS)
def test_a_crash_that_follows_is_not_the_first(start, tmp_path):
    with pytest.raises(ProcessRaisedException, match=r"rank 1 .* raised SlowToTell: the cause") as caught:
        spawn(acts.crash_in_turn, (tmp_path,), nprocs=2, start_method=start)
    assert "rank 0 was killed by SIGABRT, 0." in caught.value.others[0]


@pytest.mark.parametrize("start", STARTS)
def test_a_killed_rank_is_the_first_though_nobody_looked_when_it_was_killed(start, tmp_path):
    ranks = spawn(acts.die_in_turn, (tmp_path,), nprocs=2, join=False, start_method=start)
    acts.await_file(tmp_path / "both")
    with pytest.raises(ProcessExitedException, match=r"rank 1 .* was killed by SIGKILL") as caught:
        ranks.join()
    assert "rank 0 raised ConnectionError" in caught.value.others[0]


# -- the others ----------------------------------------------------------------------------------


def test_the_others_may_clean_up(tmp_path):
    with pytest.raises(ProcessRaisedException) as caught:
        spawn(acts.one_fails, (tmp_path, "cleans up"), nprocs=3, start_method="zygote")
    assert (tmp_path / "clean").exists()
    assert (caught.value.error_index, caught.value.others) == (1, [])


def test_a_kill_that_was_not_ours_is_told_though_we_were_ending_that_rank(tmp_path):
    """Its end may be noticed long after it was killed, and what another rank says of that long before."""
    with pytest.raises(ProcessExitedException, match=r"rank 0 .* was killed by SIGKILL") as caught:
        spawn(acts.one_fails, (tmp_path, "is killed"), nprocs=2, start_method="zygote")
    assert caught.value.others == ["rank 1 raised Unlucky: step 7: no data"]


def test_who_ignores_sigterm_is_killed(monkeypatch, tmp_path):
    monkeypatch.setattr(context, "GRACE", 0.2)
    with pytest.raises(ProcessRaisedException):
        spawn(acts.one_fails, (tmp_path, "ignores"), nprocs=2, start_method="zygote")


def test_a_grace_period_lets_the_others_finish(tmp_path):
    with pytest.raises(ProcessRaisedException):
        spawn(acts.one_fails, (tmp_path, "ends by itself"), nprocs=2, start_method="zygote", grace_period=SOON)
    assert (tmp_path / "clean").exists()


def test_ctrl_c_in_the_parent_ends_all():
    with pytest.raises(KeyboardInterrupt):
        spawn(acts.interrupt, (os.getpid(),), nprocs=2, start_method="zygote")


def test_when_one_cannot_be_started_the_others_are_ended(tmp_path):
    before, used = resource.getrlimit(resource.RLIMIT_NOFILE), set(map(int, os.listdir("/proc/self/fd")))
    free = [number for number in range(max(used) + 42) if number not in used]
    resource.setrlimit(resource.RLIMIT_NOFILE, (free[40], before[1]))
    try:
        with pytest.raises(OSError, match="Too many open files"):
            spawn(acts.wait_for, (tmp_path,), nprocs=40, start_method="zygote")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
