"""Why a worker ended, from evidence: F28, F29, F30. What it said last reaches the terminal and the verdict."""

from __future__ import annotations

import contextlib
import ctypes
import os
import pickle
import resource
import signal
import subprocess
import sys
import time
import types
from pathlib import Path

import pytest
from trainers import run, script, wait_until

from holdfast import DataLoader, RestartsSpent, Verdict
from holdfast._engine.imports import explain_import
from holdfast._system.limits import MemoryGroup, memory_groups
from holdfast._system.memory_events import OomKill, OomWatch
from holdfast.testing import DiesAt, ExitsAt, Faulty, HangsAt, QuitsAt, SegfaultsAt

PROCESSES = ("zygote", "spawn", "fork", "standby")


class Strikes:
    """Eight samples; ``strike`` is called at number 5."""

    def __init__(self, strike) -> None:
        self.strike = strike

    def __len__(self):
        return 8

    def __getitem__(self, index):
        if index == 5:
            self.strike()
        return index


def verdict_of(dataset, start: str = "zygote", **options) -> Verdict:
    """Of the first death."""
    with pytest.raises(RestartsSpent) as caught:
        list(DataLoader(dataset, batch_size=2, num_workers=1, max_restarts=0, timeout=60, start=start, **options))
    assert caught.value.verdict.cause() in str(caught.value)
    return caught.value.verdict


# -- the cause ---------------------------------------------------------------------------------


@pytest.mark.parametrize("start", PROCESSES)
def test_a_kill_from_outside_is_not_blamed_on_memory(start):
    verdict = verdict_of(Faulty(range(8), DiesAt(5)), start)
    kills = OomWatch().kills()
    sent = "SIGKILL was sent by a program, another one or itself"
    expected = f"{sent}; not the kernel's OOM killer (oom_kill unchanged at {kills})"
    assert str(verdict) == "was killed by SIGKILL"
    assert verdict.cause().splitlines()[0] == expected
    assert verdict.doing.startswith("fetching sample 5 of batch 2")
    assert verdict.stderr == verdict.oom == ""


def test_a_worker_killed_while_idle_is_said_to_have_been_idle():
    iterator = iter(DataLoader(range(100), num_workers=1, max_restarts=0, timeout=60))
    next(iterator)
    worker = iterator._workers[0]
    wait_until(lambda: "pipe" in Path(f"/proc/{worker.pid}/wchan").read_text())
    os.kill(worker.pid, signal.SIGTERM)
    with pytest.raises(RestartsSpent) as caught:
        list(iterator)
    assert caught.value.verdict.doing.startswith("idle for ")
    assert caught.value.verdict.cause().splitlines()[0] == "SIGTERM was sent by a program, another one or itself"


def test_a_worker_killed_before_its_first_batch_is_not_said_to_have_loaded():
    verdict = verdict_of(range(8), worker_init_fn=lambda _: os.kill(os.getpid(), signal.SIGKILL))
    assert verdict.doing.startswith("running worker_init_fn")


class ExitsWhenUnpacked(list):
    def __reduce__(self):
        return os._exit, (7,)


def test_a_worker_that_ends_while_it_unpacks_the_data_set_says_so():
    verdict = verdict_of(ExitsWhenUnpacked(range(8)))
    assert (verdict.status, verdict.doing.split(" for ")[0]) == (7, "unpacking the data set")


def test_a_signal_of_this_process_is_said_to_be_ours():
    iterator = iter(DataLoader(Faulty(range(8), HangsAt(5)), num_workers=1, max_restarts=0, timeout=60))
    next(iterator)
    iterator._workers[0].kill()
    with pytest.raises(RestartsSpent, match="SIGKILL was sent by this process"):
        list(iterator)


def test_a_segfault_shows_the_python_stack():
    verdict = verdict_of(Faulty(range(8), SegfaultsAt(5)))
    first, second, *_ = verdict.cause().splitlines()
    assert first == "Fatal Python error: Segmentation fault"
    assert "in string_at" in second
    assert "in strike" in verdict.cause()
    assert os.path.join("holdfast", "_worker") not in verdict.cause()


@pytest.mark.parametrize("start", PROCESSES)
def test_what_c_code_wrote_before_it_aborted_is_there(start, capsys):
    def strike():
        libc = ctypes.CDLL(None)
        libc.write(2, b"decoder: assertion failed\n", 26)
        libc.abort()

    verdict = verdict_of(Strikes(strike), start)
    assert verdict.signal == "SIGABRT"
    assert verdict.stderr == "decoder: assertion failed"
    assert "in strike" in verdict.cause()
    assert verdict.cause().splitlines()[-1].strip() == "decoder: assertion failed"
    assert capsys.readouterr().err == "decoder: assertion failed\n"


def test_an_exit_without_an_exception_is_told_from_one_with():
    by_itself = verdict_of(Faulty(range(8), ExitsAt(5, 3)))
    assert str(by_itself) == "exited with status 3"
    assert by_itself.cause().startswith("it ended by itself, without an exception")
    raised = verdict_of(Faulty(range(8), QuitsAt(5, 5)))
    assert str(raised) == "exited with status 5"
    assert raised.cause().startswith("SystemExit: 5\n")
    assert "in strike" in raised.cause()


# -- limits ------------------------------------------------------------------------------------


def spin() -> None:
    while True:
        pass


@pytest.mark.parametrize("start", ["zygote", "spawn"])
@pytest.mark.parametrize(("limit", "name"), [((1, 5), "SIGXCPU"), ((1, 1), "SIGKILL")])
def test_the_limit_of_processor_time_is_named(limit, name, start):
    # Getting ready counts, so there is room for it: the limit is set to what was used until then, and a second more.
    def strike():
        used = int(time.process_time()) + 1
        resource.setrlimit(resource.RLIMIT_CPU, (used, used + limit[1] - limit[0]))
        spin()

    verdict = verdict_of(Strikes(strike), start)
    assert verdict.signal == name
    assert verdict.cause().startswith("the limit of processor time was reached: RLIMIT_CPU ")


def test_the_limit_of_a_files_size_is_named(tmp_path):
    def strike():
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)  # as in a program that is not Python
        with open(tmp_path / "grows", "wb") as file:
            resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
            file.write(bytes(2 << 20))

    verdict = verdict_of(Strikes(strike))
    assert verdict.cause().startswith("the limit of a file's size was reached: RLIMIT_FSIZE 1.0 MiB")


def test_the_limit_of_memory_is_named_when_c_code_aborts_for_want_of_it():
    def strike():
        resource.setrlimit(resource.RLIMIT_AS, (16 << 30, 16 << 30))
        new = ctypes.CDLL("libstdc++.so.6")._Znwm
        new.argtypes = [ctypes.c_size_t]
        new(1 << 40)  # throws through C, where nobody catches it

    verdict = verdict_of(Strikes(strike))
    assert verdict.signal == "SIGABRT"
    assert verdict.cause().startswith("the limit of memory was reached: RLIMIT_AS 16.0 GiB\n")
    assert "in strike" in verdict.cause()
    assert "std::bad_alloc" in verdict.stderr


FULL = """
    import mmap, os
    from holdfast import DataLoader, RestartsSpent

    class Fills:
        def __len__(self):
            return 4
        def __getitem__(self, index):
            with open("/dev/shm/data", "w+b") as file:
                file.truncate(8 << 20)  # without reserving it
                memory = mmap.mmap(file.fileno(), 0)
                memory[:] = bytes(8 << 20)
            return index

    try:
        list(DataLoader(Fills(), num_workers=1, max_restarts=0))
    except RestartsSpent as spent:
        print(spent.verdict.signal)
        print(spent.verdict.cause())
"""


def test_a_full_dev_shm_is_named(tmp_path):
    """In a mount namespace of its own, with 4 MiB there."""
    path = script(tmp_path, FULL)
    mounted = f"mount -t tmpfs -o size=4m tmpfs /dev/shm && exec {sys.executable} {path}"
    ran = subprocess.run(["unshare", "-m", "sh", "-c", mounted], capture_output=True, text=True, timeout=60)
    if "unshare" in ran.stderr or "mount:" in ran.stderr:
        pytest.skip(f"no mount namespace: {ran.stderr}")
    assert ran.stdout.splitlines()[:2] == ["SIGBUS", "/dev/shm is full: all of its 4.0 MiB are used"]
    assert "in __getitem__" in ran.stdout


# -- the kernel's OOM killer -------------------------------------------------------------------

HUNGRY = """
    import sys
    with open(sys.argv[1] + "/cgroup.procs", "w") as group:
        group.write("0")
    from holdfast import DataLoader, RestartsSpent

    class Hungry:
        def __len__(self):
            return 8
        def __getitem__(self, index):
            if index == 5:
                bytearray(2 << 30)
            return index

    try:
        list(DataLoader(Hungry(), num_workers=1, max_restarts=0))
    except RestartsSpent as spent:
        print(spent.verdict)
        print(spent.verdict.cause())
"""


def test_the_kernels_oom_killer_is_named_with_counter_and_limit(tmp_path, small_group):
    ran = run(script(tmp_path, HUNGRY), small_group).ok()
    assert ran.lines[0] == "was killed by SIGKILL"
    assert ran.lines[1].startswith(
        "the memory limit of this container was reached: oom_kill 0 -> 1, limit 600.0 MiB; this worker had held up to "
    )
    assert "fetching" in ran.lines[2]


def of_version_2(folder: Path) -> tuple[list[MemoryGroup], Path]:
    """A stand-in, as this machine may have version 1 only: files as the kernel lays them out there."""
    inner = folder / "mounts" / "job" / "step"
    inner.mkdir(parents=True)
    (folder / "cgroup").write_text("0::/job/step\n")
    (inner / "memory.max").write_text("max\n")
    (inner.parent / "memory.max").write_text(f"{8 << 30}\n")
    for group in (inner, inner.parent):
        events(group, 0, 3)
    return memory_groups(folder / "cgroup", folder / "mounts"), inner


def events(group: Path, oom: int, kills: int) -> None:
    (group / "memory.events").write_text(f"low 0\nhigh 0\nmax 7\noom {oom}\noom_kill {kills}\noom_group_kill 0\n")


def test_each_kill_is_evidence_for_one_death(tmp_path):
    groups, inner = of_version_2(tmp_path)
    watch, other = OomWatch(groups), OomWatch(groups)
    assert watch.killed() is None
    assert watch.kills() == 3
    events(inner, 0, 5)
    events(inner.parent, 2, 5)
    expected = [OomKill(before, before + 1, 8 << 30, str(inner.parent)) for before in (3, 4)]
    assert [watch.killed(), other.killed(), watch.killed()] == [*expected, None]


def test_a_machine_that_ran_out_is_told_from_a_container_that_did(tmp_path):
    groups, inner = of_version_2(tmp_path)
    watch = OomWatch(groups)
    events(inner, 0, 4)
    assert watch.killed() == OomKill(3, 4, None, str(inner))


def test_a_counter_that_cannot_be_read_is_unknown(tmp_path):
    (tmp_path / "memory.oom_control").write_text("oom_kill_disable 0\nunder_oom 0\n")
    watch = OomWatch([MemoryGroup(tmp_path, 1)])
    assert watch.kills() is None
    assert watch.killed() is None
    assert Verdict(-signal.SIGKILL).cause().startswith("not known")


def test_a_verdict_can_be_pickled():
    verdict = Verdict(-9, oom="the memory limit was reached", stderr="last words", doing="idle")
    assert pickle.loads(pickle.dumps(verdict)) == verdict


# -- stderr ------------------------------------------------------------------------------------

SPEAKS = """
    import os, sys
    from holdfast import DataLoader

    class Speaks:
        def __len__(self):
            return 6
        def __getitem__(self, index):
            print(f"sample {{index}} \\u00e9", file=sys.stderr)
            os.write(2, b"descriptor 2\\n")
            return index

    if __name__ == "__main__":
        print([int(index) for index in DataLoader(Speaks(), num_workers=1, batch_size=None, start={start!r})])
"""


@pytest.mark.parametrize("start", PROCESSES)
def test_what_workers_say_reaches_the_terminal(tmp_path, start):
    one = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}  # start="fork" warns of any other thread
    ran = run(script(tmp_path, SPEAKS.format(start=start)), PYTHONIOENCODING="utf-8", **one)
    assert ran.status == 0, ran.err
    assert ran.err.splitlines() == [line for index in range(6) for line in (f"sample {index} é", "descriptor 2")]
    assert ran.lines == ["[0, 1, 2, 3, 4, 5]"]


@pytest.mark.parametrize("start", PROCESSES)
def test_a_trainer_without_stderr_loads_as_ever(tmp_path, start):
    path = script(tmp_path, SPEAKS.format(start=start))
    closed = subprocess.run(["sh", "-c", f"{sys.executable} {path} 2>&-"], stdout=subprocess.PIPE, timeout=60)
    assert closed.stdout == b"[0, 1, 2, 3, 4, 5]\n"


@pytest.mark.slow
def test_a_trainer_that_closed_its_stderr_loads_as_ever(tmp_path):
    path = script(tmp_path, SPEAKS.format(start="zygote"))
    path.write_text(path.read_text().replace("import os, sys", "import os, sys; sys.stderr.close()"))
    assert run(path).ok().lines == ["[0, 1, 2, 3, 4, 5]"]


def test_only_the_last_lines_are_evidence(capsys):
    def strike():
        for number in range(500):
            print(f"line {number}", file=sys.stderr)
        os._exit(1)

    verdict = verdict_of(Strikes(strike))
    assert verdict.stderr.splitlines() == [f"line {number}" for number in range(490, 500)]
    assert capsys.readouterr().err.splitlines() == [f"line {number}" for number in range(500)]

    def strike_in_one_line():
        os.write(2, b"x" * 5000)
        os._exit(1)

    assert verdict_of(Strikes(strike_in_one_line)).stderr == "x" * 2048


@pytest.mark.parametrize("start", PROCESSES)
def test_what_was_said_while_the_trainer_was_busy_is_evidence_too(start):
    """Its words and its end are found together, when the trainer looks again."""

    def strike():
        os.write(2, b"last words\n")
        os._exit(3)

    options = {"prefetch_factor": 8, "max_restarts": 0, "timeout": 60, "start": start}
    iterator = iter(DataLoader(Strikes(strike), num_workers=1, **options))
    next(iterator)
    iterator._workers[0].join(20)
    with pytest.raises(RestartsSpent) as caught:
        list(iterator)
    assert caught.value.verdict.stderr == "last words"


@pytest.mark.parametrize("start", ["zygote", "spawn"])
def test_a_worker_that_speaks_while_nobody_listens_goes_on(tmp_path, start, capsys):
    def strike():
        os.write(2, b"x" * 200_000)
        (tmp_path / "went on").touch()

    iterator = iter(DataLoader(Strikes(strike), num_workers=1, prefetch_factor=8, start=start, timeout=60))
    next(iterator)
    wait_until((tmp_path / "went on").exists)  # and nobody calls next() meanwhile
    assert [int(batch) for batch in iterator] == list(range(1, 8))
    assert capsys.readouterr().err == "x" * 200_000


def test_a_worker_that_says_more_than_fits_goes_on_when_somebody_listens(capsys):
    def strike():
        for _ in range(3000):
            os.write(2, b"x" * 999 + b"\n")

    assert [int(index) for index in DataLoader(Strikes(strike), num_workers=1, timeout=60)] == list(range(8))
    assert capsys.readouterr().err == ("x" * 999 + "\n") * 3000


def test_a_worker_that_waits_to_be_heard_does_not_hold_up_the_end(tmp_path):
    def strike():
        (tmp_path / "struck").touch()
        os.write(2, b"x" * 3_000_000)

    iterator = iter(DataLoader(Strikes(strike), num_workers=1, prefetch_factor=8, timeout=60))
    next(iterator)
    wait_until((tmp_path / "struck").exists)
    began = time.monotonic()
    del iterator
    assert time.monotonic() - began < 5


@pytest.mark.parametrize("start", PROCESSES)
def test_a_child_that_outlives_its_worker_and_holds_its_stderr_harms_nobody(tmp_path, start):
    def strike():
        child = subprocess.Popen(["sleep", "100"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        (tmp_path / "pid").write_text(str(child.pid))
        os.write(2, b"last words\n")
        os._exit(3)

    began = time.monotonic()
    try:
        assert verdict_of(Strikes(strike), start).stderr == "last words"
        assert time.monotonic() - began < 30
    finally:
        with contextlib.suppress(OSError):
            os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)


# -- what cannot be imported -------------------------------------------------------------------


def refused(dataset) -> str:
    with pytest.raises((ImportError, AttributeError)) as caught:
        list(DataLoader(dataset, num_workers=1, timeout=60))
    why = explain_import(caught.value)
    assert why in "".join(caught.value.__notes__)
    return why


@pytest.fixture
def module(tmp_path, monkeypatch):
    """A module with a file, imported here; its name."""
    name = f"imported_{os.getpid()}_{time.monotonic_ns()}"
    (tmp_path / f"{name}.py").write_text("class Squares(list):\n    pass\n")
    monkeypatch.syspath_prepend(tmp_path)
    __import__(name)
    yield sys.modules[name]
    sys.modules.pop(name, None)


def test_a_module_made_at_run_time_is_told(monkeypatch):
    made = types.ModuleType("made_at_run_time")
    exec("class Squares(list): pass", made.__dict__)
    monkeypatch.setitem(sys.modules, made.__name__, made)
    assert refused(made.Squares([0, 1])) == (
        "made_at_run_time was made at run time and has no file: it exists in the trainer only"
    )


def test_a_module_whose_file_is_gone_is_told(module):
    os.unlink(module.__file__)
    assert refused(module.Squares([0, 1])) == (
        f"{module.__name__} was imported in the trainer from {module.__file__}, which is gone"
    )


def test_a_module_that_sys_path_does_not_lead_to_is_told(module, monkeypatch):
    monkeypatch.setattr(sys, "path", sys.path[1:])
    assert refused(module.Squares([0, 1])) == (
        f"{module.__name__} was imported in the trainer from {module.__file__}, where sys.path does not lead now"
    )


def test_a_class_put_into_a_module_at_run_time_is_told(module):
    exec("class Later(list): pass", module.__dict__)
    os.utime(module.__file__, (0, 0))  # older than this process
    assert refused(module.Later([0, 1])) == (
        f"{module.__name__} has Later in the trainer only: it was put there at run time"
    )


def test_an_error_that_is_not_about_an_import_is_not_explained():
    assert explain_import(AttributeError("'Squares' object has no attribute 'colour'")) == ""
    assert explain_import(ValueError("no")) == ""
