"""What the processes of a run tell the one that sums up: a file each, in a folder that exists when there is any."""

from __future__ import annotations

import json
import os
import shutil
import time
from pathlib import Path
from typing import Any

PATIENCE = 3.0  # seconds for ranks that end a moment after the first


def announce(folder: str) -> None:
    """An empty file: this process is going to have something to tell."""
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        _file(folder).touch()
    except OSError:
        pass  # no room for it: the summary goes without us, and the program goes on


def send(folder: str, facts: dict[str, Any]) -> None:
    file = _file(folder)
    try:
        file.with_suffix(".new").write_text(json.dumps(facts, default=repr))
        file.with_suffix(".new").replace(file)
    except OSError:
        pass  # the same; or whoever sums up has ended before us, and cleared up


def receive(folder: str) -> list[dict[str, Any]]:
    """Of those that have yet to tell, the living are waited for. The folder is gone then."""
    files = sorted(Path(folder).glob("*.json"), key=lambda file: int(file.stem))
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline and any(_is_written(file) for file in files):
        time.sleep(0.02)  # nobody tells of the end of a process that is not our child
    found = [json.loads(text) for file in files if (text := file.read_text())]
    shutil.rmtree(folder, ignore_errors=True)
    return found


def _is_written(file: Path) -> bool:
    """Still, by a process that lives."""
    import psutil

    return not file.stat().st_size and psutil.pid_exists(int(file.stem))


def _file(folder: str) -> Path:
    return Path(folder, f"{os.getpid()}.json")
