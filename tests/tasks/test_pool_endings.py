"""The ends of pools: nobody is left, nothing is printed, nobody waits for ever; also when the program ends first."""

from __future__ import annotations

import gc
import os
import select
import signal
import subprocess
import textwrap
from pathlib import Path

import deeds
import pytest
from callers import HEAD, LIMIT, Ends, run, started
from deeds import SQUARES, square

from holdfast import Executor, HoldfastError, Pool

pytestmark = pytest.mark.timeout(60)
SOON = 20.0  # seconds that a result may take on a busy machine; a hang is longer
STUCK = ("sleeps", "spins", "holds the interpreter", "ignores SIGTERM", "is stopped")


def busy(pool: Pool, how: str, folder: Path) -> list[int]:
    """The pids of two workers, both in a task without end."""
    for number in range(2):
        pool.apply_async(deeds.never_end, (how, folder / f"pid {number}"))
    return [int(deeds.await_file(folder / f"pid {number}")) for number in range(2)]


# -- by the program --------------------------------------------------------------------------------


@pytest.mark.parametrize("how", STUCK)
def test_terminate_ends_busy_workers(how, tmp_path, capfd):
    pool = Pool(2)
    ends = Ends(busy(pool, how, tmp_path))
    waiting = pool.apply_async(square, (3,))
    pool.terminate()
    pool.join()
    assert ends.come(1.0)
    assert capfd.readouterr() == ("", "")
    with pytest.raises(ValueError, match="not running"):
        pool.apply(square, (3,))
    with pytest.raises(HoldfastError):  # multiprocessing's waits for ever
        waiting.get(SOON)


def test_each_who_waits_has_an_error_of_his_own(tmp_path):
    pool = Pool(2)
    busy(pool, "sleeps", tmp_path)
    waiting = [pool.apply_async(square, (number,)) for number in range(2)]
    pool.terminate()
    with pytest.raises(HoldfastError) as first:
        waiting[0].get(SOON)
    with pytest.raises(HoldfastError) as second:
        waiting[1].get(SOON)
    assert first.value is not second.value
    assert str(first.value) == str(second.value)
    pool.join()


def test_an_interrupt_in_the_middle_of_our_own_work_ends_the_pool_and_nobody_waits(tmp_path, monkeypatch):
    pool = Pool(2)
    ends = Ends(busy(pool, "sleeps", tmp_path))
    waiting = pool.apply_async(square, (3,))

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(pool._works._machine, "handle", interrupted)
    with pytest.raises(KeyboardInterrupt):
        pool.apply_async(square, (4,))
    assert ends.come(5.0)
    with pytest.raises(HoldfastError):
        waiting.get(SOON)
    with pytest.raises(ValueError, match="not running"):
        pool.apply(square, (3,))
    pool.join()


def test_the_end_of_the_with_block_ends_busy_workers(tmp_path):
    with Pool(2) as pool:
        ends = Ends(busy(pool, "sleeps", tmp_path))
    assert ends.come(2.0)
    pool.join()


def test_close_and_join_wait_for_what_is_pending():
    pool = Pool(2)
    results = [pool.apply_async(square, (number,)) for number in range(10)]
    mapped = pool.map_async(square, range(10))
    pool.close()
    pool.join()
    assert all(result.ready() for result in results)
    assert [result.get(0) for result in results] == mapped.get(0) == SQUARES
    with pytest.raises(ValueError, match="not running"):
        pool.apply_async(square, (3,))


@pytest.mark.parametrize("joined", [False, True])
@pytest.mark.parametrize("taken", [0, 3])
def test_an_imap_that_began_before_close_is_complete(taken, joined):
    pool = Pool(2)
    assert pool.map(square, range(10)) == SQUARES
    results = pool.imap(square, range(100))
    first = [next(results) for _ in range(taken)]
    pool.close()
    if joined:
        pool.join()
    assert first + list(results) == [number * number for number in range(100)]
    pool.join()


def test_a_death_while_join_waits_is_the_error_of_its_task():
    pool = Pool(2)
    results = [pool.apply_async(deeds.leave_at, (number, 5)) for number in range(10)]
    pool.close()
    pool.join()
    assert [number for number, result in enumerate(results) if not result.successful()] == [5]


def test_join_of_an_open_pool_is_an_error():
    with Pool(1) as pool, pytest.raises(ValueError, match="still running"):
        pool.join()
    pool.join()


def test_a_closed_pool_that_was_never_used_ends():
    pool = Pool(2)
    pool.close()
    pool.join()
    Executor(2).shutdown()


def test_a_pool_that_is_dropped_ends_its_workers_and_says_so():
    pool = Pool(2)
    assert pool.map(square, range(10)) == SQUARES
    ends = Ends(process.pid for process in pool.processes)
    with pytest.warns(ResourceWarning, match="neither closed nor terminated"):  # noqa: PT031 - either may end it
        del pool
        gc.collect()
    assert ends.come(5.0)


def test_the_results_of_a_dropped_pool_arrive():
    with pytest.warns(ResourceWarning, match="neither closed nor terminated"):  # noqa: PT031 - either may end it
        results = Pool(2).map_async(square, range(10))
        gc.collect()
    assert results.get(SOON) == SQUARES


def test_the_results_of_a_dropped_executor_arrive():
    executor = Executor(2)
    futures = [executor.submit(square, number) for number in range(10)]
    del executor
    gc.collect()
    assert [future.result(SOON) for future in futures] == SQUARES


def test_shutdown_cancels_what_has_not_begun(tmp_path):
    executor = Executor(1)
    first = executor.submit(deeds.wait_for, tmp_path / "go", 5)
    rest = [executor.submit(square, number) for number in range(10)]
    deeds.await_file(tmp_path / "began 5")
    executor.shutdown(wait=False, cancel_futures=True)
    (tmp_path / "go").touch()
    assert first.result(SOON) == 25
    assert sum(future.cancelled() for future in rest) >= 8  # one or two may be on their way
    executor.shutdown()


def test_a_cancelled_future_is_not_run(tmp_path):
    with Executor(1) as executor:
        executor.submit(deeds.wait_for, tmp_path / "go")
        waiting = [executor.submit(deeds.make, tmp_path / f"ran {number}") for number in range(10)]
        assert waiting[-1].cancel()
        (tmp_path / "go").touch()
    assert not (tmp_path / "ran 9").exists()
    assert (tmp_path / "ran 0").exists()


# -- by a fork -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("use", "outcome"),
    [
        (lambda pool: pool.apply(square, (3,)), b"error"),
        (lambda pool: pool.map(square, range(10)), b"error"),
        (lambda pool: pool.terminate(), None),
        (lambda pool: gc.collect(), None),
    ],
    ids=["apply", "map", "terminate", "exit"],
)
def test_a_pool_in_a_fork_of_its_process_is_not_the_childs_to_use_or_to_end(use, outcome, tmp_path):
    with Pool(2) as pool:
        pending = pool.apply_async(deeds.wait_for, (tmp_path / "go", 5))  # a thread sees to it
        assert pool.map(square, range(10)) == SQUARES
        receiver, sender = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                use(pool)
                os.write(sender, b"worked")
            except Exception:
                os.write(sender, b"error")
            os._exit(0)
        os.close(sender)
        ended = select.select([receiver], [], [], 15)[0]
        said = os.read(receiver, 100) if ended else b"hung"
        if not ended:
            os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(receiver)
        assert said in ([outcome] if outcome else [b"worked", b"error"])
        (tmp_path / "go").touch()
        assert pending.get(SOON) == 25
        assert pool.map(square, range(10)) == SQUARES
    pool.join()


# -- by the end of the program ---------------------------------------------------------------------


PROGRAM = """
kind, how = {kind!r}, {how!r}
pool = Pool(2) if kind == "pool" else Executor(2)
submit = (lambda *args: pool.apply_async(args[0], args[1:])) if kind == "pool" else pool.submit
results = [submit(deeds.never_end, how, Path(f"pid {{number}}").absolute()) for number in range(2)]
for number in range(2):
    deeds.await_file(Path(f"pid {{number}}"))
print("busy", flush=True)
{then}
"""


def program(kind: str, how: str, then: str) -> str:
    return HEAD + PROGRAM.format(kind=kind, how=how, then=then)


def worker_ends(folder: Path, process: subprocess.Popen[str]) -> Ends:
    assert process.stdout is not None
    assert process.stdout.readline() == "busy\n", process.communicate()
    return Ends(int((folder / f"pid {number}").read_text()) for number in range(2))


PARENTS = [("pool", "holds the interpreter"), ("executor", "spins")]
MORE_PARENTS = [("pool", "sleeps"), ("pool", "ignores SIGTERM"), ("pool", "is stopped"), ("executor", "sleeps")]


@pytest.mark.parametrize(
    ("kind", "how"), [*PARENTS, *(pytest.param(*parent, marks=pytest.mark.slow) for parent in MORE_PARENTS)]
)
def test_who_kills_the_parent_kills_its_workers_within_a_second(kind, how, tmp_path):
    with started(tmp_path, program(kind, how, "deeds.swallow()")) as process:
        ends = worker_ends(tmp_path, process)
        process.kill()
        assert ends.come(1.0)


@pytest.mark.parametrize(
    "then", ["results[0].get()", pytest.param("pool.map(deeds.square, range(10))", marks=pytest.mark.slow)]
)
def test_ctrl_c_ends_a_wait_at_once_with_one_traceback_and_no_orphans(then, tmp_path):
    with started(tmp_path, program("pool", "spins", then)) as process:
        ends = worker_ends(tmp_path, process)
        os.killpg(process.pid, signal.SIGINT)
        assert ends.come(5.0)
        _, err = process.communicate(timeout=LIMIT)
    assert process.returncode == -signal.SIGINT
    assert err.count("Traceback") == 1
    assert err.rstrip().endswith("KeyboardInterrupt")


def test_ctrl_c_leaves_a_pool_that_works(tmp_path):
    use = """
    import os, signal
    caller = os.getpid()
    def interrupt(number):
        os.kill(caller, signal.SIGINT)
        deeds.await_file(Path("go"))
    with Pool(2) as pool:
        try:
            pool.map(interrupt, [0])
        except KeyboardInterrupt:
            print("interrupted")
        Path("go").touch()
        print(pool.map(deeds.square, range(3)))
    """
    assert run(tmp_path, HEAD + textwrap.dedent(use)) == "interrupted\n[0, 1, 4]\n"


@pytest.mark.parametrize("how", [pytest.param("sleeps", marks=pytest.mark.slow), "holds the interpreter"])
def test_a_program_that_ends_ends_its_pool(how, tmp_path):
    with started(tmp_path, program("pool", how, "")) as process:
        ends = worker_ends(tmp_path, process)
        _, err = process.communicate(timeout=LIMIT)
        assert ends.come(1.0)
    assert process.returncode == 0
    assert "Traceback" not in err


def test_a_program_that_ends_waits_for_the_futures_of_its_executor(tmp_path):
    use = """
    def speak():
        deeds.await_file(Path("go"))
        print("spoken", flush=True)
    executor = Executor(2)
    executor.submit(speak)
    import atexit
    atexit.register(print, "end", flush=True)
    print("main is over", flush=True)
    """
    with started(tmp_path, HEAD + textwrap.dedent(use)) as process:
        assert process.stdout.readline() == "main is over\n"
        (tmp_path / "go").touch()
        out, err = process.communicate(timeout=LIMIT)
    assert (process.returncode, err) == (0, "")
    assert out.splitlines()[0] == "spoken"


@pytest.mark.parametrize("kind", ["pool", pytest.param("executor", marks=pytest.mark.slow)])
def test_a_program_may_end_with_an_idle_pool_in_a_global(kind, tmp_path):
    use = f"""
    {"pool = Pool(2)" if kind == "pool" else "pool = Executor(2)"}
    print(list(pool.map(deeds.square, range(3))))
    """
    assert run(tmp_path, HEAD + textwrap.dedent(use)) == "[0, 1, 4]\n"


@pytest.mark.slow
def test_a_program_that_fails_ends_its_pool(tmp_path):
    with started(tmp_path, program("pool", "spins", "raise SystemExit(7)")) as process:
        ends = worker_ends(tmp_path, process)
        process.communicate(timeout=LIMIT)
        assert ends.come(1.0)
    assert process.returncode == 7
