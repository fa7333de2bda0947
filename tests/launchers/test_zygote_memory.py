"""The memory of the zygote: as cheap to fork as the kernel allows, and not looked at by collections."""

from __future__ import annotations

import ctypes
import gc
import mmap
import re
import sys
import time
from pathlib import Path

import psutil
import pytest
from torch.utils.data import Dataset

from holdfast import DataLoader
from holdfast._system import huge_pages, zygote
from holdfast._system.zygote_server import QUIET, Server

PATIENCE = 30.0
MIB = 1 << 20


def huge(pid: int | str) -> int:
    """Bytes that lie in huge pages."""
    return 1024 * int(re.findall(r"^AnonHugePages:\s+(\d+)", Path(f"/proc/{pid}/smaps_rollup").read_text(), re.M)[0])


def kernel_moves_memory() -> bool:
    """Also where it gives nobody huge pages who did not ask."""
    if sys.platform != "linux":
        return False
    mapping = mmap.mmap(-1, 4 * huge_pages.SIZE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    mapping.write(bytes(len(mapping)))
    view = ctypes.c_char.from_buffer(mapping)
    address, before = ctypes.addressof(view), huge("self")
    huge_pages.collapse(-(-address // huge_pages.SIZE) * huge_pages.SIZE)
    moved = huge("self") > before
    del view
    mapping.close()
    return moved


class Collections(Dataset):
    """Each sample: what this worker's collector is set to, and how many objects it never looks at."""

    def __len__(self):
        return 4

    def __getitem__(self, index):
        return *gc.get_threshold(), gc.get_freeze_count()


@pytest.mark.skipif(not kernel_moves_memory(), reason="this kernel does not move memory into huge pages")
def test_a_zygote_that_has_nothing_to_do_moves_its_memory_into_huge_pages():
    zygote.shut_down()
    list(DataLoader(Collections(), num_workers=1))
    (process,) = (child for child in psutil.Process().children() if "zygote_server" in " ".join(child.cmdline()))
    until = time.monotonic() + PATIENCE
    while huge(process.pid) < 64 * MIB:  # nobody is told of it
        assert time.monotonic() < until
        time.sleep(0.01)
    assert len(list(DataLoader(Collections(), num_workers=1))) == 4


def test_memory_is_moved_when_no_child_shares_it_and_nobody_has_asked_for_anything():
    server = Server.__new__(Server)
    server._scattered, server._told = [0], {}
    assert server._patience(quiet=False) == QUIET
    assert server._patience(quiet=True) == 0
    server._told = {1: "the socket of a worker"}
    assert server._patience(quiet=True) is None
    server._scattered, server._told = [], {}
    assert server._patience(quiet=False) is None


def test_workers_collect_as_always_and_never_look_at_what_was_imported_before_them():
    *threshold, frozen = next(iter(DataLoader(Collections(), num_workers=1)))
    assert [int(number) for number in threshold] == list(gc.get_threshold())
    assert int(frozen) > 100_000
