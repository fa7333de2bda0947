"""`progress=True`: a bar on the terminal, drawn by whoever waits, and nothing where there is no terminal."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest
from callers import HEAD, LIMIT, program
from deeds import SQUARES, square

from holdfast import Pool

PLACES = r"\x1b\[[0-9;?]*[A-Za-z]|\r"


def on_a_terminal(folder: Path, code: str) -> str:
    """What it writes to stderr, a terminal, without colours; it must end well and say "fine" last on stdout."""
    parent, child = pty.openpty()
    environment = os.environ | {"TERM": "xterm", "COLUMNS": "120"}
    command = [sys.executable, str(program(folder, HEAD + code))]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=child, env=environment, text=True) as process:
        os.close(child)
        shown = b""
        try:
            while chunk := os.read(parent, 65536):
                shown += chunk
        except OSError:
            pass  # so Linux tells the end of a terminal
        os.close(parent)
        assert process.stdout is not None
        out = process.stdout.read()
        assert process.wait(LIMIT) == 0, shown.decode()
    assert out.splitlines()[-1] == "fine"
    return re.sub(PLACES, " ", shown.decode())


MAP = """
import time
def work(number):
    time.sleep(0.05)
    if number in (3, 4):
        raise OSError(number)
    return number * number
with Pool(2) as pool:
    try:
        pool.map(work, range(20), 1, progress=True)
    except OSError as error:
        print(error)
    assert pool.map(deeds.square, range(10), progress=True) == deeds.SQUARES
    print("fine")
"""


def test_a_map_shows_how_far_it_is_its_rate_and_its_failures(tmp_path):
    shown = on_a_terminal(tmp_path, MAP)
    assert "work" in shown
    counts = [int(count) for count in re.findall(r"(\d+)/20", shown)]
    assert counts == sorted(counts)
    assert len(set(counts)) > 2
    assert counts[-1] == 20
    assert re.search(r"\d+(\.\d+)?/s", shown)
    assert "2 failed" in shown
    assert "10/10" in shown, "of a map that is over at once"


STREAMS = """
import time
def work(number):
    time.sleep(0.02)
    if number == 5:
        raise OSError(number)
    return number * number
with Pool(2) as pool:
    assert sorted(pool.imap_unordered(deeds.square, range(10), progress=True)) == deeds.SQUARES
    assert list(pool.imap(deeds.square, iter(range(10)), progress=True)) == deeds.SQUARES
    found, results = [], pool.imap(work, range(20), progress=True)
    while True:
        try:
            found.append(next(results))
        except StopIteration:
            break
        except OSError:
            found.append("failed")
    assert found == ["failed" if number == 5 else number * number for number in range(20)], found
    print("fine")
"""


def test_streams_have_a_bar_and_go_on_after_a_failure(tmp_path):
    shown = on_a_terminal(tmp_path, STREAMS)
    assert "10/10" in shown
    assert "10/?" in shown
    assert "1 failed" in shown


NO_THREAD = """
import threading, time
from holdfast.tasks import progress
names = []
class Watching(progress.Bar):
    def show(self, done, failed):
        names.append([thread.name for thread in threading.enumerate()])
        super().show(done, failed)
progress.Bar = Watching
with Pool(2) as pool:
    pool.starmap(deeds.pow_slowly, [], progress=True)
    pool.map(time.sleep, [0.05] * 10, 1, progress=True)
assert len(names) > 2 and all(one == ["MainThread"] for one in names), names
print("fine")
"""


@pytest.mark.slow
def test_no_thread_draws_it(tmp_path):
    on_a_terminal(tmp_path, NO_THREAD.replace("deeds.pow_slowly", "pow"))


@pytest.mark.parametrize("method", ["map", "imap", "imap_unordered"])
def test_without_a_terminal_nothing_is_said(method, capfd):
    with Pool(2) as pool:
        assert sorted(getattr(pool, method)(square, range(10), progress=True)) == SQUARES
    pool.join()
    assert capfd.readouterr() == ("", "")
