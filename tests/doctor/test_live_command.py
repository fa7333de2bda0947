"""``holdfast doctor --pid``: what it prints, its exit codes, and what it says when there is nothing to see."""

from __future__ import annotations

import json
import os
import pwd
import signal
import subprocess
import sys
from contextlib import suppress

import pytest
from typer.testing import CliRunner
from watching import job_of, wait_until

from holdfast._system import kinship, proc
from holdfast.cli import app
from holdfast.doctor.live import look_at
from holdfast.targets.mistake import Mistake

SLEEPS = "import time; print('ready', flush=True); time.sleep(1000)"


def asked(pid: int, *options: str):
    return CliRunner().invoke(app, ["doctor", "--pid", str(pid), *options])


def test_a_plain_program_is_looked_at_as_a_trainer_without_workers():
    with job_of([sys.executable, "-c", SLEEPS], ("ready",)) as process:
        shown, as_json = asked(process.pid), asked(process.pid, "--json")
    assert shown.exit_code == 0
    assert shown.stdout.startswith("not a hang: the trainer sleeps (clock_nanosleep), in <module> at <string>:1\n")
    report = json.loads(as_json.stdout)
    assert (report["standing"], report["sections"][0]["trainer"]["pid"]) == ("healthy", process.pid)


def test_what_stands_still_is_exit_code_1():
    with job_of([sys.executable, "-c", SLEEPS], ("ready",)) as process:
        process.send_signal(signal.SIGSTOP)
        wait_until(lambda: proc.look(process.pid).state == "T")
        shown = asked(process.pid)
    assert shown.exit_code == 1
    assert shown.stdout.startswith(f"stalled: the trainer (pid {process.pid}) is stopped")


def test_a_shell_is_looked_through():
    with job_of(["sh", "-c", f'"{sys.executable}" -c "{SLEEPS}"; true'], ("ready",)) as process:
        report = look_at(process.pid)
    assert report.sections[0].trainer.pid != process.pid


def test_who_looks_is_not_part_of_what_it_sees():
    look = f'"{sys.executable}" -m holdfast doctor --pid $$; exit $?'
    asking = subprocess.run(["sh", "-c", look], capture_output=True, text=True, timeout=100, check=False)
    assert (asking.returncode, "is not a Python program, and has started none" in asking.stderr) == (2, True)


def mistake(pid: int) -> Mistake:
    with pytest.raises(Mistake) as caught:
        look_at(pid)
    return caught.value


def test_a_process_that_is_not_there_is_a_mistake():
    process = subprocess.Popen(["true"])
    process.wait()
    assert str(mistake(process.pid)) == f"there is no process {process.pid}"
    assert isinstance(asked(process.pid).exception, Mistake)  # which the command prints, and exits with 2


@pytest.mark.parametrize("pid", [0, -1, 1 << 40])
def test_a_number_that_no_process_can_have_is_a_mistake(pid):
    assert str(mistake(pid)) == f"there is no process {pid}"


def test_a_program_that_is_not_python_is_a_mistake():
    with subprocess.Popen(["sleep", "1000"]) as process:
        wait_until(lambda: proc.name(process.pid) == "sleep")
        text = str(mistake(process.pid))
        process.kill()
    assert text == f"process {process.pid} (sleep) is not a Python program, and has started none"


def test_of_a_zombie_it_is_said_whose_it_is():
    with subprocess.Popen(["sh", "-c", "sleep 0 & exec sleep 1000"]) as process:
        wait_until(lambda: any(proc.look(pid).state == "Z" for pid in below(process.pid)))
        (zombie,) = below(process.pid)
        text = str(mistake(zombie))
        process.kill()
    assert text.endswith(f"has ended, and only its entry is left: its parent is {process.pid} (sleep)")


def below(pid: int) -> list[int]:
    return [int(child.split()[0]) for child in proc.children(pid)]


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become somebody else")
def test_of_another_users_process_it_is_said_what_cannot_be_seen_and_the_way_out():
    owner = pwd.getpwuid(os.getuid()).pw_name
    with job_of([sys.executable, "-c", SLEEPS], ("ready",)) as process:
        kinship.owner(process.pid)  # what it imports, nobody may not read
        told = said_by_nobody(process.pid)
    assert told == (
        f"process {process.pid} ({proc_name()}) belongs to {owner}: nothing but its state (S) may be seen\n"
        f"sudo holdfast doctor --pid {process.pid}"
    )


def proc_name() -> str:
    return os.path.basename(sys.executable)[:15]


def said_by_nobody(pid: int) -> str:
    """What a user without rights is told."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        with suppress(BaseException):
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)
            try:
                look_at(pid)
            except Mistake as error:
                os.write(writer, f"{error}\n{error.hint}".encode())
        os._exit(0)
    os.close(writer)
    with open(reader) as told:
        text = told.read()
    os.waitpid(child, 0)
    return text
