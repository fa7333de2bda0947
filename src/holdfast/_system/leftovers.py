"""What earlier runs left behind: shared memory that nobody uses, workers whose trainer is gone."""

from __future__ import annotations

import os
import re
import tempfile
import time
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import psutil

from .proc import is_readable, text

SHARED_MEMORY = "/dev/shm"
_NAMES = re.compile(r"(torch_|psm_|sem\.mp-|holdfast)")
_TEMPORARY = re.compile(r"holdfast-\d+-[0-9a-f]{12}-")  # not the folders of crash reports, which begin with a date
_MAKER = re.compile(r"(?:torch_|holdfast-)(\d+)[-_]")  # whose pid is in the name
_WORKER = re.compile(r"pt_data_worker|holdfast \d+")
_INTERPRETER = re.compile(r"python|pt_main_thread")
_YOUNG = 10.0  # seconds: somebody is about to open it


class File(NamedTuple):
    path: str
    size: int


class Orphan(NamedTuple):
    pid: int
    name: str
    memory: int  # bytes, resident


class Leftovers(NamedTuple):
    files: tuple[File, ...] = ()
    orphans: tuple[Orphan, ...] = ()


def leftovers(shared_memory: str = SHARED_MEMORY) -> Leftovers:
    """Of this user's; the files of others cannot be removed, nor can it be seen who uses them."""
    if not hasattr(os, "geteuid"):
        return Leftovers()  # Windows removes both by itself
    suspects = [*_ours(shared_memory, _NAMES), *_ours(tempfile.gettempdir(), _TEMPORARY)]
    used = _in_use(path for path, _ in suspects) if suspects else set()
    return Leftovers(tuple(file for file in suspects if file.path not in used), tuple(_orphans()))


def _ours(folder: str, names: re.Pattern[str]) -> Iterator[File]:
    try:
        entries = [entry for entry in os.scandir(folder) if names.match(entry.name)]
    except OSError:
        return
    for entry in entries:
        maker = _MAKER.match(entry.name)
        if maker and psutil.pid_exists(int(maker[1])):
            continue
        try:
            told = entry.stat(follow_symlinks=False)
        except OSError:
            continue
        if (
            told.st_uid == os.geteuid()
            and time.time() - told.st_mtime > _YOUNG
            and entry.is_file(follow_symlinks=False)
        ):
            yield File(entry.path, told.st_blocks * 512)


def _in_use(paths: Iterable[str]) -> set[str]:
    """Those that a process has mapped or open. Whose memory may not be read does not tell what it has mapped."""
    sought, used = set(paths), set[str]()
    for pid in psutil.pids():
        if is_readable(pid):
            told = text(f"/proc/{pid}/maps")
            used |= {path for path in sought - used if path in told}
        used |= sought.intersection(_open_files(pid))
    return used


def _open_files(pid: int) -> Iterator[str]:
    try:
        for name in os.listdir(f"/proc/{pid}/fd"):
            yield os.readlink(f"/proc/{pid}/fd/{name}")
    except OSError:
        return  # it has ended, or is another user's


def _orphans() -> Iterator[Orphan]:
    """Workers whose parent is the first process. Where that is an interpreter, in a container, it is their trainer."""
    if _INTERPRETER.match(text("/proc/1/comm")):
        return
    for process in psutil.process_iter():
        try:
            if process.ppid() == 1 and _WORKER.fullmatch(process.name()) and process.uids().effective == os.geteuid():
                yield Orphan(process.pid, process.name(), process.memory_info().rss)
        except psutil.Error:
            continue
