"""What the tests look for after each of them: what is the same is known as the same, and what is ours as ours."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest


@pytest.fixture
def looks(request):
    """The tests' own conftest; several modules have that name."""
    return request.config.pluginmanager.get_plugin(str(Path(__file__).parent / "conftest.py"))


def test_a_child_is_the_same_one_whatever_it_does(looks):
    child = subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"])
    before = looks.children()
    os.kill(child.pid, signal.SIGSTOP)
    while psutil.Process(child.pid).status() != psutil.STATUS_STOPPED:
        pass
    assert looks.children() == before
    child.kill()
    child.wait()
    assert len(before - looks.children()) == 1


@pytest.mark.parametrize(
    ("name", "is_others"),
    [
        ("holdfast-1-0123456789ab-shared", True),  # pid 1 is there, and not of this program
        ("torch_1_3048690902_0", True),
        ("holdfast-20260101-120000-1-1", True),
        ("holdfast-{own}-000000000001-shared", False),  # chance may be digits only, and be a pid
        ("psm_00000001", False),
        ("holdfast-20260101-000001-4194304-1", False),  # no pid is as large
    ],
)
def test_others_are_told_by_the_pid_in_their_names(looks, name, is_others):
    assert looks._of_others(name.format(own=os.getpid())) is is_others
