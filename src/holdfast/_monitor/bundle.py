"""A crash bundle: one folder with everything known about a run that ended by a fault, to look at or to send."""

from __future__ import annotations

import itertools
import json
import os
import platform
import sys
import time
import traceback
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import psutil

from holdfast._system.limits import memory_groups
from holdfast._transport.faults import add_note
from holdfast.ledger import Ledger

MOST = 10  # folders that one process writes: a loop that catches every error must not fill a disk
_PACKAGES = ("holdfast", "torch", "numpy", "cloudpickle", "psutil", "pillow")
_LONGEST = 500  # characters of an option
_numbers = itertools.count(1)


def place(option: str | os.PathLike[str] | None) -> Path | None:
    """Where bundles go: the loader's option, or HOLDFAST_BUNDLE; None when nobody wants any."""
    chosen = option if option is not None else os.environ.get("HOLDFAST_BUNDLE")
    return Path(chosen) if chosen else None


def options(loader: Any) -> dict[str, str]:
    """What the loader was made with, in words: the bundle must not keep it alive."""
    return {name: _shortened(value) for name, value in vars(loader).items() if not name.startswith("_")}


def write(
    folder: Path, error: BaseException, ledger: Ledger, story: list[str], options: dict[str, str]
) -> Path | None:
    """Write one; the folder it is in, or None: it could not be written, which must not hide the error itself."""
    number = next(_numbers)
    if number > MOST:
        return None
    bundle = folder / f"holdfast-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}-{number}"
    try:
        bundle.mkdir(parents=True)
        (bundle / "error.txt").write_text("".join(traceback.format_exception(type(error), error, error.__traceback__)))
        (bundle / "ledger.json").write_text(ledger.to_json(indent=1))
        (bundle / "story.txt").write_text("\n".join(story) + "\n")
        (bundle / "loader.json").write_text(_json(options))
        (bundle / "environment.json").write_text(_json(environment()))
    except OSError:
        return None
    add_note(error, f"everything known about it is in {bundle}")
    return bundle


def environment() -> dict[str, Any]:
    """The machine, its limits, and the versions that matter."""
    memory = psutil.virtual_memory()
    return {
        "python": sys.version,
        "platform": platform.platform(),
        "argv": sys.argv,
        "cwd": _or_none(os.getcwd),
        "packages": {name: _version(name) for name in _PACKAGES},
        "cpus": {"machine": os.cpu_count(), "allowed": _or_none(lambda: len(psutil.Process().cpu_affinity()))},
        "memory": {"total": memory.total, "available": memory.available},
        "cgroups": [
            {"folder": str(group.folder), "limit": group.limit(), "room": group.room(), "oom_kills": group.oom_kills()}
            for group in memory_groups()
        ],
        "limits": _limits(),
        "shared memory": _or_none(lambda: psutil.disk_usage("/dev/shm")._asdict()),
        "variables": {name: value for name, value in os.environ.items() if name.startswith(_TELLING)},
    }


_TELLING = ("HOLDFAST_", "OMP_", "MKL_", "TORCH_", "PYTORCH_", "CUDA_VISIBLE", "RANK", "LOCAL_RANK", "WORLD_SIZE")


def _shortened(value: Any) -> str:
    try:
        text = repr(value)
    except Exception:  # an object that cannot be shown must not hide the error that is told
        text = f"<{type(value).__name__}>"
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def _limits() -> dict[str, Any]:
    try:
        import resource
    except ImportError:
        return {}
    names = [name for name in dir(resource) if name.startswith("RLIMIT_")]
    return {name: resource.getrlimit(getattr(resource, name)) for name in names}


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _or_none(ask: Any) -> Any:
    try:
        return ask()
    except Exception:  # a question that this system does not answer
        return None


def _json(facts: dict[str, Any]) -> str:
    return json.dumps(facts, indent=1, default=repr) + "\n"
