"""For all tests: nothing is left behind."""

from __future__ import annotations

import gc
import multiprocessing
import os
import re
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from multiprocessing import resource_tracker
from pathlib import Path

import psutil
import pytest

import holdfast
from holdfast._system.zygote import zygote

PATIENCE = 2.0  # seconds that the kernel and the zygote have to clear away what has ended
# Where a name has the pid of its maker; other numbers in it are chance, or a date.
MAKER = re.compile(r"(?:holdfast-(?:\d{8}-\d{6}-)?|torch_)(\d+)[-_]")
# Children that stay by design, one of each: the clean process that workers are forked from, and Python's own tracker.
STAY = ("zygote_server", "multiprocessing.resource_tracker")
# Names and states of a process change, and it is the same one. A new one may have its pid, but not its beginning.
FIRST_SEEN_AS: dict[tuple[int, float], str] = {}
OUTCOME = pytest.StashKey[bool]()
NEW_INTERPRETERS = re.compile(r"(?<![a-z_])(spawn|standby)(?![a-z_])")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Ways to start that need a new interpreter for each worker take seconds: the tests of launchers are there for
    them, and elsewhere they are for ``make torture``."""
    for item in items:
        case = getattr(item, "callspec", None)
        if case is not None and NEW_INTERPRETERS.search(case.id) and item.path.parent.name != "launchers":
            item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session", autouse=True)
def warm_zygote():
    """The first use of these starts a process and opens a descriptor, which no test is to blame for."""
    resource_tracker.ensure_running()
    multiprocessing.Value("i")
    holdfast.warm()


@pytest.fixture(autouse=True)
def own_interrupt() -> Iterator[None]:
    """A debugger leaves its own handler of Ctrl-C behind, which the next test is not to meet."""
    before = signal.getsignal(signal.SIGINT)
    yield
    if signal.getsignal(signal.SIGINT) is not before:
        signal.signal(signal.SIGINT, before)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item):
    report = yield
    if report.when == "call":
        item.stash[OUTCOME] = report.passed
    return report


@pytest.fixture(autouse=True)
def leaves_nothing(request: pytest.FixtureRequest, warm_zygote) -> Iterator[None]:
    """No child, descriptor, thread, shared memory or temporary file more than the test found."""
    before = {what: look() for what, look in LOOKS.items()}
    yield
    if standby := sys.modules.get("holdfast._system.standby"):
        standby.shut_down()  # spares stay by design, until the interpreter ends
    if request.node.stash.get(OUTCOME, False):  # the traceback of a failed test keeps what it held alive
        left = left_over(before)
        assert not left, f"left behind: {left}"


def left_over(before: dict[str, Counter[str]]) -> dict[str, list[str]]:
    deadline = time.monotonic() + PATIENCE
    while True:
        zygote()  # reaps those before it that were retired
        left = {what: sorted((look() - before[what]).elements()) for what, look in LOOKS.items()}
        for names in (left["shared memory"], left["temporary files"]):
            names[:] = [name for name in names if not _of_others(name)]
        left = {what: more for what, more in left.items() if more}
        if not left or time.monotonic() > deadline:
            return left
        gc.collect()
        time.sleep(0.01)


def children() -> Counter[str]:
    found: Counter[str] = Counter()
    for process in psutil.Process().children(recursive=True):
        try:
            command, own = " ".join(process.cmdline()), process.ppid() == os.getpid()
            line = f"{process.pid} {process.name()} {process.status()} {command[-120:]}"
            line = FIRST_SEEN_AS.setdefault((process.pid, process.create_time()), line)
        except psutil.NoSuchProcess:
            continue
        # A worker shows the command of the zygote that it is a fork of, but is not our own child.
        found[next((mark for mark in STAY if own and mark in command), line)] += 1
    return found - Counter(STAY)


def descriptors() -> Counter[str]:
    """By kind, as a number is soon used again."""
    found: Counter[str] = Counter()
    for fd in os.listdir("/proc/self/fd"):
        try:
            found[re.sub(r":\[\d+\]", "", os.readlink(f"/proc/self/fd/{fd}"))] += 1
        except FileNotFoundError:
            pass  # of this very listing
    return found


def threads() -> Counter[str]:
    return Counter(f"{thread.name} {thread.ident}" for thread in threading.enumerate())


def shared_memory() -> Counter[str]:
    """Semaphores of multiprocessing do not have their maker's name: beside other tests nobody knows whose they are."""
    alone = "PYTEST_XDIST_WORKER" not in os.environ
    return Counter(name for name in os.listdir("/dev/shm") if alone or not name.startswith("sem.mp-"))


def temporary_files() -> Counter[str]:
    return Counter(path.name for path in Path(tempfile.gettempdir()).glob("holdfast-*"))


def _of_others(name: str) -> bool:
    """Another program on this machine may be using holdfast now: its names carry its pid, or it has them mapped."""
    family = {os.getpid(), *(child.pid for child in psutil.Process().children(recursive=True))}
    maker = MAKER.match(name)
    if maker and int(maker[1]) not in family and psutil.pid_exists(int(maker[1])):
        return True
    users = [pid for pid in psutil.pids() if name in _maps_of(pid)]
    return bool(users) and family.isdisjoint(users)


def _maps_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/maps").read_text()
    except OSError:
        return ""


LOOKS: dict[str, Callable[[], Counter[str]]] = {
    "children": children,
    "descriptors": descriptors,
    "threads": threads,
    "shared memory": shared_memory,
    "temporary files": temporary_files,
}
