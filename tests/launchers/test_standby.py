"""Workers that were spawned ahead of need."""

from __future__ import annotations

import glob
import multiprocessing
import os
import signal
import sys
import tempfile

import psutil
import pytest
import torch
from programs import gone, run, start
from samples import SAMPLES, Holds, Plain

from holdfast import CannotShip, DataLoader, RestartsSpent
from holdfast._system import standby
from holdfast.testing import DiesAt, Faulty, SegfaultsAt


def values(loader) -> list[int]:
    return [index for batch in loader for index in batch[:, 0].tolist()]


def named() -> list[str]:
    return glob.glob(os.path.join(tempfile.gettempdir(), f"holdfast-{os.getpid()}-*"))


def spares() -> list[int]:
    return [spare.process.pid for spare in standby._spares]


@pytest.mark.slow
def test_a_spare_becomes_the_worker_and_no_name_is_left_in_the_temporary_directory():
    loader = DataLoader(Plain(), batch_size=4, num_workers=1, start="standby", timeout=60)
    ahead = spares()
    batches = iter(loader)
    assert [worker.pid for worker in batches._workers] == ahead
    assert next(batches)[:, 0].tolist() == [0, 1, 2, 3]
    assert any("shipment" in name for name in named())
    assert values(batches) == list(range(4, SAMPLES))
    assert not named()


def test_whoever_dies_is_replaced_by_a_spare_and_leaves_one_for_the_next():
    loader = DataLoader(Faulty(Plain(), DiesAt(9, once=True)), batch_size=4, num_workers=1, start="standby", timeout=60)
    batches = iter(loader)
    (ahead,) = spares()
    assert values(batches) == list(range(SAMPLES))
    assert loader.restarts == 1
    assert [worker.pid for worker in batches._workers] == [ahead]
    assert spares() not in ([], [ahead])


@pytest.mark.slow
def test_a_crash_leaves_its_stack_in_the_logbook():
    loader = DataLoader(Faulty(Plain(), SegfaultsAt(0)), num_workers=1, start="standby", max_restarts=0, timeout=60)
    with pytest.raises(RestartsSpent) as spent:
        list(loader)
    assert "in strike" in spent.value.verdict.stack


def test_what_travels_as_a_descriptor_is_refused_by_name():
    shared = torch.arange(4).share_memory_()
    loader = DataLoader(Holds({"table": shared}), num_workers=1, start="standby")
    with pytest.raises(CannotShip, match="file descriptor") as refusal:
        iter(loader)
    assert refusal.value.path == "dataset.member['table']"


def test_an_interpreter_that_cannot_start_is_an_error_at_once(monkeypatch):
    monkeypatch.setattr(standby, "command", lambda _: [sys.executable, "-c", "raise SystemExit(3)"])
    with pytest.raises(standby.StandbyDied, match="status 3"):
        standby.take()


def test_a_long_name_of_the_temporary_directory_is_no_obstacle(tmp_path, monkeypatch):
    deep = tmp_path / ("d" * 100)
    deep.mkdir()
    monkeypatch.setitem(multiprocessing.current_process()._config, "tempdir", str(deep))
    process, connection = standby.take()
    connection.close()
    process.join(10)
    assert process.exitcode == 1
    process.close()


@pytest.mark.slow
def test_spares_need_no_pidfd(monkeypatch):
    """As on macOS."""
    monkeypatch.delattr(os, "pidfd_open")
    loader = DataLoader(Faulty(Plain(), DiesAt(9)), batch_size=4, num_workers=1, start="standby", max_restarts=0)
    batches = iter(loader)
    assert isinstance(batches._workers[0], standby.WatchedChild)
    with pytest.raises(RestartsSpent) as spent:
        list(batches)
    assert spent.value.verdict.signal == "SIGKILL"


def test_a_fork_of_the_trainer_leaves_the_spares_alone():
    standby.reserve(1)
    pid = os.fork()
    if not pid:
        os._exit(len(standby._spares))
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert psutil.Process(spares()[0]).is_running()


def test_spares_end_with_the_trainer():
    code = """
        import holdfast
        from samples import Plain
        from holdfast._system import standby
        loader = holdfast.DataLoader(Plain(), num_workers=2, start="standby")
        print(*[spare.process.pid for spare in standby._spares])
    """
    pids = [int(pid) for pid in run(code).split()]
    assert len(pids) == 2
    assert gone(pids)


@pytest.mark.slow
def test_busy_workers_spares_and_names_end_with_a_trainer_that_is_killed():
    code = """
        import holdfast
        from samples import Plain
        from holdfast._system import standby
        from holdfast.testing import Faulty, HangsAt
        batches = iter(holdfast.DataLoader(Faulty(Plain(), HangsAt(1)), num_workers=1, start="standby"))
        next(batches)
        print(batches._workers[0].pid, standby._spares[0].process.pid, flush=True)
        input()
    """
    trainer = start(code)
    pids = [int(pid) for pid in trainer.stdout.readline().split()]
    trainer.send_signal(signal.SIGKILL)
    trainer.communicate()
    assert len(pids) == 2
    assert gone(pids)


def test_nothing_is_imported_that_windows_lacks():
    """The whole of it, once with the POSIX parts of the standard library taken away."""
    code = """
        import os, select, signal, sys
        import cloudpickle, multiprocessing.connection, numpy, psutil, torch.utils.data
        for module, names in {
            os: "fork memfd_create pidfd_open posix_fallocate register_at_fork waitid setsid",
            signal: "pthread_sigmask pidfd_send_signal SIGKILL SIGCHLD SIGUSR1 SIGHUP set_wakeup_fd",
            select: "poll",
        }.items():
            for name in names.split():
                delattr(module, name)
        sys.modules.update(dict.fromkeys(["fcntl", "resource", "termios", "pwd", "grp"]))
        import holdfast, holdfast.loader, holdfast._worker.standby, holdfast._worker.process, holdfast._system.standby
        from holdfast._system import starts
        print(starts.resolve("auto", None), starts.resolve("spawn", None))
    """
    assert run(code).split() == ["standby", "standby"]
