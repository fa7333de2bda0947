"""Both ways in which shared memory is found are tested here: by the sender's descriptor, and by a name."""

from __future__ import annotations

import gc
import multiprocessing
import multiprocessing.forkserver
import tempfile
import time
from pathlib import Path

import psutil
import pytest

from holdfast.sharing import files

HERE = Path(__file__).parent


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "once: in `make test` one of its ways is enough")


@pytest.fixture(params=["anonymous", "named"])
def kind(request, monkeypatch):
    monkeypatch.setattr(files, "ANONYMOUS", request.param == "anonymous")
    return request.param


@pytest.fixture(scope="session", autouse=True)
def forkserver():
    """A process that stays, by design of multiprocessing: here before the first test looks around."""
    process = multiprocessing.get_context("forkserver").Process(target=gc.collect)
    process.start()
    process.join()
    server = psutil.Process(multiprocessing.forkserver._forkserver._forkserver_pid)
    while server.status() != psutil.STATUS_SLEEPING:  # as it will be when tests are over
        time.sleep(0.01)
    yield
    multiprocessing.forkserver._forkserver._stop()


@pytest.fixture(scope="module", autouse=True)
def quick_collections():
    """Most tests here wait for a collection, in which a module has nothing to lose."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.fixture
def names(monkeypatch, tmp_path):
    """Files with names lie in a directory of the test's own."""
    monkeypatch.setattr(files, "ANONYMOUS", False)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return lambda: sorted(path.name for path in tmp_path.iterdir() if path.name.startswith("holdfast-"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """New interpreters take minutes: each behaviour is seen in one of them, all other ways are for ``make torture``."""
    for item in items:
        if item.path.parent == HERE and is_slow(item):
            item.add_marker(pytest.mark.slow)


def is_slow(item: pytest.Item) -> bool:
    ways = set(item.callspec.id.split("-")) if hasattr(item, "callspec") else set()
    again = {"named", "array", "cloudpickle"} & ways and item.get_closest_marker("once")
    return bool({"spawn", "forkserver", "standby"} & ways or again)
