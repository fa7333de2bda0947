"""Surroundings that programs are put into."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from trainers import wait_until

from holdfast._system.limits import memory_groups


@pytest.fixture
def small_group() -> Iterator[Path]:
    """A memory cgroup with a limit of 600 MiB, inside our own."""
    own = next((group for group in memory_groups() if group.version == 1 and group.limit_hits() is not None), None)
    if own is None:
        pytest.skip("a process can be put into a group of its own only with cgroup v1 here")
    folder = own.folder / f"holdfast-test-{os.getpid()}"
    try:
        folder.mkdir()
        (folder / "memory.limit_in_bytes").write_text(str(600 << 20))
    except OSError as error:
        pytest.skip(f"no memory cgroup can be made: {error}")
    yield folder
    wait_until(lambda: not (folder / "cgroup.procs").read_text())
    folder.rmdir()
