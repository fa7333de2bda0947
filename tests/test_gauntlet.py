"""The gauntlet's harness: programs are run, judged and ended. The failures themselves: test_gauntlet_programs.py."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
import typer
from typer.testing import CliRunner

from holdfast.cli.gauntlet import gauntlet
from holdfast.gauntlet import catalogue, page, running
from holdfast.gauntlet.judge import Mark, judge, judged
from holdfast.gauntlet.ran import NotSo, Ran
from holdfast.gauntlet.room import Room
from holdfast.gauntlet.row import Row, Side
from holdfast.pages.failures import FAILURES

DOCS = Path(__file__).parent.parent / "docs" / "failures"
ROWS = catalogue.rows()
IMPORT = "if False:\n    from torch.utils.data import DataLoader\n"  # not done, as it takes a second and a half


def planted(program: str, number: str = "f28", **options) -> Row:
    """A row whose program prints `fine` when all is well."""

    def fine(ran: Ran) -> str:
        ran.prints("fine")
        return "fine"

    return Row(f"{number}_planted", "A row.", IMPORT + program, fine, fine, **options)


def run(program: str, **options) -> Ran:
    return running.run(planted(program, **options), Side.TORCH)


def name(row: Row) -> str:
    return row.name


# -- running a program -------------------------------------------------------------------------


def test_a_program_runs_alone_in_a_folder_a_session_and_without_input():
    ran = run(
        "import os, sys\n"
        "print(os.listdir(), os.getsid(0) == os.getpid(), sys.stdin.read() == '')\n"
        "print('words', file=sys.stderr)\n"
        "sys.exit(3)"
    )
    assert (ran.status, ran.lines, ran.err) == (3, ["['program.py'] True True"], "words\n")
    assert ran.outlived == []


def test_modules_beside_the_program_can_be_imported():
    assert run("import beside\nprint(beside.value)", files={"beside.py": "value = 7"}).lines == ["7"]


def test_code_without_a_file_is_main_without_a_file():
    assert run("print('__file__' in globals(), __name__)", without_file=True).lines == ["False __main__"]


WITH_CHILDREN = """
import os, subprocess, sys, time
subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
print("started")
"""


@pytest.mark.parametrize("end", ["time.sleep(600)", "os._exit(0)", "os.kill(os.getpid(), 9)"])
def test_nobody_is_left_of_a_program_however_it_ends(end, monkeypatch):
    monkeypatch.setattr(running, "GRACE", 0.2)
    ran = run(WITH_CHILDREN + end, patience=0.3)
    assert ran.lines == ["started"]
    assert ran.seconds < running.LIMIT / 2
    assert ran.status == {"time.sleep(600)": None, "os._exit(0)": 0}.get(end, -9)
    assert len(ran.outlived) == (0 if ran.status is None else 2)
    assert running.family(f"{os.getpid()}-") == []


def test_patience_counts_from_the_first_line():
    ran = run("import time\ntime.sleep(0.6)\nprint('fine')\n", patience=0.3)
    assert (ran.status, ran.lines) == (0, ["fine"])


def test_a_program_that_says_nothing_is_ended_at_the_limit(monkeypatch):
    monkeypatch.setattr(running, "LIMIT", 0.5)
    ran = run("import time\ntime.sleep(600)", patience=60)
    assert ran.status is None
    with pytest.raises(NotSo, match="expected a hang"):
        ran.hangs()  # it has said nothing: nobody knows how far it got


def test_output_beyond_what_a_pipe_holds_is_complete():
    ran = run("import sys\nprint('x' * 300_000)\nprint('y' * 300_000, file=sys.stderr)")
    assert (len(ran.out), len(ran.err)) == (300_001, 300_001)


# -- rooms -------------------------------------------------------------------------------------


def test_a_room_limits_descriptors():
    look = "import resource\nprint(resource.getrlimit(resource.RLIMIT_NOFILE))"
    assert run(look, room=Room(descriptors=99)).lines == ["(99, 99)"]


def test_a_room_has_a_dev_shm_of_its_own():
    row = planted(
        "import os\nprint(os.statvfs('/dev/shm').f_blocks * os.statvfs('/dev/shm').f_frsize)\n"
        "open('/dev/shm/of-the-gauntlet', 'w').close()",
        room=Room(shm=1 << 20),
    )
    if reason := running.why_not(row):
        pytest.skip(reason)
    assert running.run(row, Side.TORCH).lines == [str(1 << 20)]
    assert not os.path.exists("/dev/shm/of-the-gauntlet")


def test_a_room_limits_memory_and_is_cleared_away():
    row = planted("print('begun')\nprint(len(b'x' * (1 << 30)))", room=Room(memory=100 << 20))
    if reason := running.why_not(row):
        pytest.skip(reason)
    ran = running.run(row, Side.TORCH)
    assert (ran.status, ran.lines) == (-9, ["begun"])
    left = [int(group.name.split("-")[1]) for group in Path("/sys/fs/cgroup").rglob("gauntlet-*")]
    assert all(psutil.pid_exists(pid) for pid in left)  # of other programs on this machine


WITHOUT_RIGHTS = """
import ctypes, os, sys
ctypes.CDLL(None).prctl(24, 21)  # PR_CAPBSET_DROP, CAP_SYS_ADMIN: gone with the next exec, whoever we are
os.execv(sys.argv[1], sys.argv[1:])
"""


def test_a_room_that_cannot_be_made_is_a_reason_and_no_failure(monkeypatch):
    into = running._in
    monkeypatch.setattr(running, "_in", lambda *room: [sys.executable, "-c", WITHOUT_RIGHTS, *into(*room)])
    finding = judge(planted("print('fine')", room=Room(shm=1 << 20)), Side.HOLDFAST)
    assert finding.mark is Mark.NOT_HERE
    assert finding.text == "needs a mount namespace (it takes root): Operation not permitted"


# -- judging -----------------------------------------------------------------------------------


def test_each_side_has_its_marks():
    good, bad = planted("print('fine')"), planted("print('strange')")
    assert [judge(good, side).mark for side in Side] == [Mark.SHOWN, Mark.KEPT]
    assert [judge(bad, side).mark for side in Side] == [Mark.NOT_SHOWN, Mark.BROKEN]
    assert "strange" in judge(bad, Side.HOLDFAST).text
    assert judge(planted("", not_on_torch="Windows"), Side.TORCH).mark is Mark.NOT_HERE


def test_a_promise_is_broken_when_something_lives_on(monkeypatch):
    monkeypatch.setattr(running, "GRACE", 0.2)
    finding = judge(planted(WITH_CHILDREN.replace("started", "fine")), Side.HOLDFAST)
    assert finding.mark is Mark.BROKEN
    assert "lives on" in finding.text


def test_who_stops_listening_ends_all_programs():
    rows = [planted("print('fine')"), *(planted("import time\nprint('on')\ntime.sleep(600)", f"f3{n}") for n in "0123")]
    found = judged(rows, [Side.HOLDFAST], jobs=2)
    row, _ = next(found)
    assert row is rows[0]
    found.close()
    assert running.family(f"{os.getpid()}-") == []


# -- the rows ----------------------------------------------------------------------------------


def test_every_failure_has_a_program_or_a_reason():
    with_program = {row.id for row in ROWS}
    assert with_program | catalogue.absent().keys() == FAILURES.keys()
    assert {id for id in catalogue.absent() if FAILURES[id].available} <= {"F09"}
    assert not {id for id in with_program if not FAILURES[id].available}
    titles = [catalogue.title(row) for row in ROWS]
    assert len(set(titles)) == len(titles)  # several of one failure are told apart


@pytest.mark.parametrize("row", ROWS, ids=name)
def test_a_program_for_holdfast_differs_by_its_import(row):
    """And by the options that the failure is about, each of which must be found in it."""
    stock, ours = row.source(Side.TORCH), row.source(Side.HOLDFAST)
    compile(stock, row.name, "exec")
    compile(ours, row.name, "exec")
    assert "from torch.utils.data import DataLoader" not in ours
    assert "from holdfast import" in ours
    assert row.symptom
    assert row.story


def test_a_change_that_is_not_in_the_program_is_an_error():
    with pytest.raises(ValueError, match="0 times"):
        planted("print('fine')", changes={"num_workers=2": ""}).source(Side.HOLDFAST)


ENDS = {
    "said nothing": Ran(0, "", "", 1.0),
    "hung at once": Ran(None, "", "", 60.0),
    "an error of another kind": Ran(1, "", "ZeroDivisionError: division by zero\n", 1.0),
    "nonsense": Ran(0, "nonsense\n", "", 1.0),
}


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("row", ROWS, ids=name)
def test_no_check_is_content_with_anything(row, end):
    for side in Side:
        with pytest.raises(NotSo):
            row.check(side, ENDS[end])


# -- the command -------------------------------------------------------------------------------


@pytest.fixture
def command(monkeypatch):
    """Runs it with these rows only."""
    app = typer.Typer()
    app.command()(gauntlet)

    def call(*arguments: str, rows: list[Row] = ROWS):
        monkeypatch.setattr(catalogue, "rows", lambda: rows)
        return CliRunner().invoke(app, arguments)

    return call


def test_the_exit_code_is_0_when_all_promises_are_kept(command):
    done = command(rows=[planted("print('fine')"), planted("print('fine')", "f29")])
    assert done.exit_code == 0
    assert "F28 a worker is killed | torch: shows it: fine (" in done.output
    assert "holdfast: 2 promises kept, 0 broken; torch: 2 failures shown, 0 not" in done.output


def test_the_exit_code_is_1_when_one_is_broken(command):
    done = command("--no-torch", "--jobs", "1", rows=[planted("print('fine')"), planted("print('strange')", "f29")])
    assert done.exit_code == 1
    assert "F29 a decoder crashes | holdfast: ✗ expected ['fine'], but it printed ['strange']" in done.output
    assert "torch" not in done.output


def test_a_failure_that_torch_does_not_show_breaks_no_promise(command):
    done = command(rows=[planted("print('strange')", changes={"'strange'": "'fine'"})])
    assert done.exit_code == 0
    assert "does not show here" in done.output


def test_json_has_everything_in_the_order_of_the_failures(command):
    rows = [planted("import time\ntime.sleep(0.3)\nprint('fine')"), planted("print('fine')", "f29")]
    done = command("--json", rows=rows)
    data = json.loads(done.stdout)
    assert [row["id"] for row in data[:2]] == ["F28", "F29"]
    assert data[0]["torch"]["mark"] == "shown"
    assert data[0]["holdfast"] == {"mark": "kept", "finding": "fine", "seconds": data[0]["holdfast"]["seconds"]}
    assert {row["id"]: row["reason"] for row in data[2:]}["F82"] == "not in this version"


@pytest.mark.parametrize("unknown", ["F99", "f28_other", "F82"])
def test_an_unknown_failure_is_wrong_usage(command, unknown):
    done = command("--only", unknown)
    assert done.exit_code == 2
    assert "--list" in done.output


def test_only_takes_numbers_and_names():
    assert [row.id for row in catalogue.chosen(["F29", "4", "f32_small_dev_shm"])] == ["F04", "F29", "F32"]


def test_the_list_names_every_failure_and_runs_nothing(command):
    done = command("--list")
    assert done.exit_code == 0
    assert all(id in done.output for id in FAILURES)
    assert "needs Windows" in done.output


def test_ctrl_c_ends_the_programs_too():
    """The terminal signals its group; the programs are in sessions of their own and do not hear it."""
    command = [sys.executable, "-m", "holdfast.gauntlet", "--only", "F26"]
    process = subprocess.Popen(
        command,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
        # A shell that runs the tests in the background has them ignore Ctrl-C, and programs inherit that.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    try:
        while not running.family(f"{process.pid}-"):
            assert process.poll() is None
        os.killpg(process.pid, signal.SIGINT)
        process.communicate(timeout=30)
    finally:
        process.kill()
        process.wait()
    assert process.returncode
    assert running.family(f"{process.pid}-") == []


# -- pages -------------------------------------------------------------------------------------


def test_the_pages_of_the_failures_are_up_to_date():
    written = {path.name: path.read_text() for path in DOCS.glob("*.md")}
    assert written == page.pages(), "python -m holdfast.gauntlet --write-pages docs/failures"


def test_pages_are_written_once_and_old_ones_removed(command, tmp_path):
    (tmp_path / "F00.md").write_text("of a failure that is gone")
    done = command("--write-pages", str(tmp_path))
    assert done.exit_code == 0
    assert {path.name for path in tmp_path.iterdir()} == set(page.pages())
    assert "up to date" in command("--write-pages", str(tmp_path)).output


def test_a_page_has_the_program_and_what_changes():
    text = page.pages()["F48.md"]
    assert "raise OSError(5" in text
    assert "+for batch in DataLoader(Images(), batch_size=4, num_workers=2, on_error=Retry(3, on=OSError)):" in text
