"""Ranks end with their parent, however that ends; and a program without a main guard is enough for them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import acts
import psutil
import pytest

from holdfast.gauntlet import running
from holdfast.gauntlet.room import Room
from holdfast.gauntlet.row import Row, Side

HERE = str(Path(__file__).parent)
STARTS = ("spawn", "zygote", "fork")
HEAD = f"""
import sys
sys.path.insert(0, {HERE!r})
from pathlib import Path
import acts
from holdfast.ranks.spawning import spawn
"""


def start(folder: Path, code: str, **options) -> subprocess.Popen[str]:
    """A program in a session of its own, so that a signal to its group is no signal to ours."""
    program = folder / "program.py"
    program.write_text(HEAD + textwrap.dedent(code))
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen([sys.executable, program.name], cwd=folder, text=True, start_new_session=True, **pipes)


def run(folder: Path, code: str) -> str:
    program = start(folder, code)
    out, err = program.communicate(timeout=60)
    assert (program.returncode, err) == (0, "")
    return out


def begun(folder: Path, program: subprocess.Popen[str], ranks: int = 2) -> list[psutil.Process]:
    for rank in range(ranks):
        while not (folder / f"began {rank}").exists():
            assert program.poll() is None, program.communicate()
            psutil.Process(program.pid).status()
    return [psutil.Process(int((folder / f"began {rank}").read_text())) for rank in range(ranks)]


def gone(processes: list[psutil.Process]) -> bool:
    _, alive = psutil.wait_procs(processes, timeout=10)
    return not [process for process in alive if process.status() != psutil.STATUS_ZOMBIE]


@pytest.mark.parametrize("how", STARTS)
def test_who_kills_the_parent_kills_its_ranks(how, tmp_path):
    program = start(tmp_path, f"spawn(acts.wait_for, (Path(),), nprocs=2, start_method={how!r})")
    ranks = begun(tmp_path, program)
    program.kill()
    program.communicate()
    assert gone(ranks)


@pytest.mark.parametrize("how", STARTS)
def test_ctrl_c_ends_all_with_one_traceback_and_ranks_may_tidy_up(how, tmp_path):
    program = start(tmp_path, f"spawn(acts.tidy, (Path(),), nprocs=2, start_method={how!r})")
    for rank in range(2):
        acts.await_file(tmp_path / f"began {rank}")
    os.killpg(program.pid, signal.SIGINT)
    _, err = program.communicate(timeout=60)
    assert program.returncode == -signal.SIGINT
    assert err.count("Traceback") == 1
    assert err.rstrip().endswith("KeyboardInterrupt")
    assert {path.name for path in tmp_path.glob("tidy *")} == {"tidy 0", "tidy 1"}


@pytest.mark.parametrize("how", STARTS)
def test_a_program_waits_for_the_ranks_that_it_did_not_join(how, tmp_path):
    program = start(tmp_path, f"spawn(acts.mark, (Path(),), nprocs=2, join=False, start_method={how!r}); print('end')")
    assert program.stdout.readline() == "end\n"
    acts.make(tmp_path / "go")
    _, err = program.communicate(timeout=60)
    assert (program.returncode, err) == (0, "")
    assert {path.name for path in tmp_path.glob("done *")} == {"done 0", "done 1"}


@pytest.mark.slow
def test_a_program_ends_its_daemons(tmp_path):
    code = """
    ranks = spawn(acts.wait_for, (Path(),), nprocs=2, join=False, daemon=True, start_method="zygote")
    for rank in range(2):
        acts.await_file(Path(f"began {rank}"))
    """
    assert run(tmp_path, code) == ""
    assert not any(psutil.pid_exists(int(path.read_text())) for path in tmp_path.glob("began *"))


@pytest.mark.parametrize("how", STARTS)
def test_a_script_needs_no_main_guard_and_its_classes_can_be_pickled_in_ranks(how, tmp_path):
    code = f"""
    import pickle
    print("run")
    class Net:
        layers = 3
    def make(rank):
        return type(pickle.loads(pickle.dumps(Net()))) is Net, Net()
    for same, net in spawn(make, nprocs=2, start_method={how!r}):
        print(same, type(net) is Net)
    """
    assert run(tmp_path, code) == "run\nTrue True\nTrue True\n"


@pytest.mark.parametrize("how", ["spawn", "zygote"])
def test_an_exception_of_a_script_is_itself(how, tmp_path):
    code = f"""
    class Unlucky(Exception):
        pass
    def fail(rank):
        raise Unlucky
    try:
        spawn(fail, nprocs=2, start_method={how!r})
    except Exception as error:
        print(type(error.__cause__) is Unlucky)
    """
    assert run(tmp_path, code) == "True\n"


@pytest.mark.slow
def test_a_parent_that_ignores_ctrl_c_has_ranks_that_do(tmp_path):
    code = """
    import os, signal
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    print(spawn(lambda rank: os.kill(os.getpid(), signal.SIGINT), start_method="zygote"))
    """
    assert run(tmp_path, code) == "[None]\n"


@pytest.mark.parametrize("how", STARTS)
def test_a_program_without_input_and_output_has_ranks(how, tmp_path):
    code = f"""
    result = spawn(lambda rank: print("nobody hears this"), nprocs=2, start_method={how!r})
    acts.make(Path("result"), repr(result))
    """
    (tmp_path / "program.py").write_text(HEAD + textwrap.dedent(code))
    subprocess.run(["sh", "-c", f"{sys.executable} program.py <&- >&- 2>&-"], cwd=tmp_path, timeout=60, check=True)
    assert (tmp_path / "result").read_text() == "[None, None]"


@pytest.mark.slow
def test_the_failure_of_a_rank_that_nobody_joined_is_told_at_the_end(tmp_path):
    program = start(tmp_path, "spawn(lambda rank: sys.exit(0), join=False, start_method='zygote')")
    _, err = program.communicate(timeout=60)
    assert "exited with status 0 before <lambda> had returned [HF802]" in err


def test_the_end_by_the_kernels_oom_killer_is_told_as_that(tmp_path):
    program = HEAD + "spawn(lambda rank: len(b'x' * (1 << 30)), start_method='fork')"
    row = Row("f66_ranks", "", program, str, str, room=Room(memory=700 << 20))
    if reason := running.why_not(row):
        pytest.skip(reason)
    ran = running.run(row, Side.TORCH)
    assert ran.status == 1
    assert "rank 0" in ran.err
    assert "the memory limit of this container was reached: oom_kill 0 -> 1, limit 700.0 MiB" in ran.err
