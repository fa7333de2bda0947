"""Real jobs that hang, or do not, and what is said of them."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from jobs import Steady, loader
from watching import JOBS, is_in, job, job_of, line_of, wait_for_lines, wait_until, workers

from holdfast._engine.causes import Kind
from holdfast._system import proc, stacks
from holdfast.doctor.live import Doing, LiveReport, Member, Role, Standing, look_at, witness
from holdfast.doctor.live.job import find

LOADERS = ("torch", "holdfast")
HUNG = ("ready", "there")
LIMIT = 10.0


@pytest.fixture(autouse=True)
def patience(monkeypatch):
    """Stacks are given more time than users have, as tests run beside each other."""
    monkeypatch.setattr(witness, "STACKS", LIMIT)
    monkeypatch.setattr(witness, "AGAIN", LIMIT)


@pytest.fixture
def silent_server() -> Iterator[int]:
    """A port that takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def looked_at(process: subprocess.Popen[str], pid: int | None = None) -> LiveReport:
    wait_until(lambda: is_in(process.pid, "poll", "ppoll", "futex", "recvfrom", "select", "read"))
    report = look_at(pid or process.pid)
    assert process.poll() is None
    return report


def culprit(report: LiveReport) -> Member:
    assert report.conclusion.standing is Standing.STALLED, report.conclusion.text
    (section,) = report.sections
    return next(one for one in section.members if one.pid == report.conclusion.culprit)


@pytest.mark.parametrize("which", LOADERS)
def test_a_worker_that_waits_for_a_connection_is_named_with_address_line_and_sample(which, silent_server, monkeypatch):
    with job("recv", which, silent_server, says=HUNG) as process:
        report = looked_at(process)
        monkeypatch.setattr(stacks, "find_py_spy", lambda: None)
        without_py_spy = looked_at(process)
    check_without_py_spy(without_py_spy, which)
    guilty = culprit(report)
    assert (guilty.seat, guilty.kind, guilty.batch, guilty.sample) == (1, Kind.SOCKET, 1, "5")
    assert guilty.place == f"happens at {line_of('recv')}"
    text = report.conclusion.text
    assert text.startswith(f"the trainer waits for a batch, in load at {line_of('next')}; worker 1 (pid {guilty.pid})")
    for told in (f"127.0.0.1:{silent_server} (TCP", f"happens at {line_of('recv')}", "sample 5 of batch 1"):
        assert told in text
    (other,) = (one for one in report.sections[0].hands if one is not guilty)
    assert (other.seat, other.doing) == (0, Doing.IDLE)


def check_without_py_spy(report: LiveReport, which: str) -> None:
    """The kernel tells what each process waits for, and workers of ours answer for themselves."""
    guilty = culprit(report)
    assert guilty.kind is Kind.SOCKET
    assert guilty.place == (f"happens at {line_of('recv')}" if which == "holdfast" else "")
    assert guilty.at == ("fetching sample at position 1 of batch 1" if which == "holdfast" else "")
    assert report.conclusion.text.startswith("the trainer waits for what its workers make")
    assert sorted(one.doing.value for one in report.sections[0].hands) == ["idle", "waits"]
    assert any("py-spy is not installed" in reason for reason in report.unseen)


@pytest.mark.parametrize(
    ("kind", "which", "expected"),
    [
        ("lock", "torch", Kind.LOCK),
        ("loop", "torch", Kind.LOOP),
        pytest.param("loop", "holdfast", Kind.LOOP, marks=pytest.mark.slow),
        pytest.param("sleep", "torch", Kind.SLEEP, marks=pytest.mark.slow),
    ],
)
def test_what_a_worker_stands_still_at_is_named_with_its_line(kind, which, expected):
    with job(kind, which, says=HUNG) as process:
        guilty = culprit(looked_at(process))
    assert (guilty.seat, guilty.kind, guilty.sample) == (1, expected, "5")
    assert guilty.place == f"happens at {line_of(kind)}"
    assert guilty.role is (Role.WORKER if which == "holdfast" else Role.TORCH_WORKER)


@pytest.mark.parametrize("which", LOADERS)
def test_a_stopped_worker_is_named_and_goes_on_when_it_is_told_to(which):
    with job("stop", which, says=HUNG) as process:
        report = looked_at(process)
        guilty = culprit(report)
        assert (guilty.doing, guilty.place) == (Doing.STOPPED, f"happens at {line_of('stop')}")
        assert f"kill -CONT {guilty.pid}" in report.conclusion.text
        os.kill(guilty.pid, signal.SIGCONT)
        wait_for_lines(process, (f"total {sum(range(32))}",))


def test_a_sleeping_sample_is_named_and_the_job_is_found_from_any_of_its_processes():
    with job("sleep", "holdfast", says=HUNG) as process:
        report = looked_at(process)
        guilty, (section,) = culprit(report), report.sections
        assert (guilty.kind, guilty.place) == (Kind.SLEEP, f"happens at {line_of('sleep')}")
        (zygote,) = (pid for pid, role in section.servants if role is Role.ZYGOTE)
        for pid in (guilty.pid, zygote):
            assert find(pid).parts[0].trainer.pid == process.pid


@pytest.mark.parametrize("which", ["torch", pytest.param("holdfast", marks=pytest.mark.slow)])
def test_a_trainer_that_computes_is_no_hang(which):
    with job("compute", which) as process:
        report = look_at(process.pid)
        while "at work" in report.conclusion.text:  # they load as much ahead as they may, and then they wait
            report = look_at(process.pid)
    assert report.conclusion.standing is Standing.HEALTHY
    place = f"compute at {line_of('compute')}"
    assert report.conclusion.text == f"the trainer computes, in {place}; all 2 workers wait for work"


def test_a_trainer_that_waits_for_something_else_is_told_from_one_that_waits_for_data(silent_server):
    with job("trainer", "torch", silent_server) as process:
        report = looked_at(process)
    assert culprit(report).pid == process.pid
    assert f"the trainer (pid {process.pid}) itself waits in recvfrom" in report.conclusion.text
    assert "all 2 workers wait for work" in report.conclusion.text


def test_slow_samples_are_no_hang():
    with job("slow", "torch") as process:
        report = looked_at(process)
    assert report.conclusion.standing is Standing.HEALTHY
    assert "all 2 workers are at work" in report.conclusion.text


def test_a_worker_that_is_gone_unnoticed_is_missed():
    with job("dies", "torch", says=HUNG) as process:
        wait_until(lambda: len(workers(process.pid)) == 1)
        report = looked_at(process)
    assert report.conclusion.standing is Standing.STALLED
    assert "worker 1 ended, and the trainer has not noticed, because it ignores SIGCHLD" in report.conclusion.text
    assert report.conclusion.advice.page == "F50"


@pytest.mark.parametrize("which", LOADERS)
def test_a_call_of_a_pool_that_does_not_return_is_named(which):
    with job("pool", which, says=("there",)) as process:
        report = looked_at(process)
    guilty = culprit(report)
    assert guilty.place == f"asleep at {line_of('task')}"
    assert report.conclusion.text.startswith(f"the trainer waits for results of its pool, in pool at {line_of('map')}")
    assert len(report.sections[0].hands) == 2


@pytest.mark.parametrize("which", LOADERS)
def test_a_job_that_is_looked_at_loads_what_it_would_have_loaded(which, tmp_path: Path):
    end = tmp_path / "end"
    with job("steady", which, end) as process:
        reports = [look_at(process.pid) for _ in range(2)]
        last = threading.Thread(target=lambda: reports.append(look_at(process.pid)))
        last.start()
        end.touch()  # it ends while it is looked at
        total = int(process.stdout.readline().split()[1])
        assert process.wait() == 0
        last.join()
    assert len(reports) == 3
    torch.manual_seed(7)
    assert total == sum(int(batch.sum()) for batch in loader(which, Steady(str(end))))


@pytest.mark.slow  # three interpreters that import torch
def test_the_rank_that_all_others_wait_for_is_named():
    torchrun = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", str(JOBS), "ranks", "torch"]
    with job_of([sys.executable, *torchrun], says=("ready", "ready")) as process:
        try:
            for rank in proc.children(process.pid):
                wait_until(lambda rank=rank: is_in(int(rank.split()[0]), "futex", "clock_nanosleep", "epoll_wait"))
            report = look_at(process.pid)
        finally:
            process.terminate()  # torchrun passes it on; its ranks are in sessions of their own
            process.wait()
    assert report.launcher == process.pid
    assert sorted(section.rank for section in report.sections) == ["0", "1"]
    others = f"the other one, which waits for it in all_reduce, in ranks at {line_of('all')}"
    assert report.conclusion.text.startswith(f"rank 1 holds up {others}: the trainer sleeps")
