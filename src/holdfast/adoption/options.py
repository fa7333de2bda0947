"""What can be said about a program's loaders from outside: names, what is valid, and what a text means."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from holdfast._system.starts import STARTS
from holdfast.targets.mistake import Mistake

if TYPE_CHECKING:
    from holdfast.policies import Policy

POLICIES = (
    "raise, skip, skip:10 (samples), skip:0.01 (a share), replace, retry:3, wait, debug, quarantine:FILE; "
    "several in turn: retry:3,skip"
)
_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGT]?)(?:i?B)?", re.IGNORECASE)


@dataclass(frozen=True)
class Option:
    """``read`` makes a plain value, that JSON can carry, of a text or of what TOML has; or a ``ValueError``."""

    name: str
    valid: str
    read: Callable[[Any], Any]


def read(values: Mapping[str, Any], file: str = "") -> dict[str, Any]:
    """What was said in ``file``, or on the command line, as plain values; a `Mistake` that lists what is valid."""
    found = {}
    for name, value in values.items():
        key = name.replace("-", "_")
        if key not in OPTIONS:
            raise Mistake(f"{file}: there is no option {name}", f"there are {', '.join(OPTIONS)}")
        try:
            found[key] = OPTIONS[key].read(value)
        except (ValueError, TypeError):
            said = f"{file}: {name}" if file else f"--{name.replace('_', '-')}"
            raise Mistake(f"{said} cannot be {value!r}", f"valid: {OPTIONS[key].valid}") from None
    return found


def policy_of(text: str) -> Policy:
    """``retry:3,skip:0.01`` is ``Retry(3) | Skip(limit=0.01)``."""
    from holdfast.policies import policy

    whole, *others = [_policy(part.strip()) for part in text.split(",")]
    for other in others:
        whole = whole | other
    return policy(whole)


def _policy(text: str) -> Policy:
    from holdfast.policies import Retry, Skip, policy
    from holdfast.quarantine import Quarantine

    name, colon, value = text.partition(":")
    if not colon:
        return policy(name)
    match name:
        case "retry":
            return Retry(int(value))
        case "skip":
            return Skip(limit=int(value) if value.isdigit() else float(value))
        case "quarantine" if value:
            return Quarantine(value)
    raise ValueError(text)


def _on_error(value: Any) -> str:
    parts = [_with_whole_path(part.strip()) for part in str(value).split(",")]
    policy_of(",".join(parts))
    return ",".join(parts)


def _with_whole_path(part: str) -> str:
    name, _, path = part.partition(":")
    return f"{name}:{_path(path)}" if name == "quarantine" and path else part


def _path(value: Any) -> str:
    """Whole: the program, or one of its processes, may go to another folder."""
    if not value:
        raise ValueError(value)
    return os.path.abspath(os.path.expanduser(str(value)))


def _count(least: int) -> Callable[[Any], int]:
    def read(value: Any) -> int:
        number = int(value) if isinstance(value, str) else value
        if type(number) is not int or number < least:
            raise ValueError(value)
        return number

    return read


def _seconds(value: Any) -> float:
    number = float(value)
    if isinstance(value, bool) or not 0 <= number < float("inf"):
        raise ValueError(value)
    return number


def _size(value: Any) -> int:
    found = _SIZE.fullmatch(str(value))
    number = int(float(found[1]) * _UNITS[found[2].upper()]) if found and not isinstance(value, bool) else 0
    if number <= 0:
        raise ValueError(value)
    return number


def _one_of(*names: str) -> Callable[[Any], str]:
    def read(value: Any) -> str:
        if value not in names:
            raise ValueError(value)
        return str(value)

    return read


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError(value)
    return value


_SIZES = "bytes, or 512M, 2G"
_FLAG = "true or false"
OPTIONS = {
    option.name: option
    for option in (
        # Of the loaders, by the names of their arguments:
        Option("on_error", POLICIES, _on_error),
        Option("stall_timeout", "seconds; 0 for never", _seconds),
        Option("max_restarts", "a whole number", _count(0)),
        Option("start", ", ".join(STARTS), _one_of(*STARTS)),
        Option("workers", "process, thread", _one_of("process", "thread")),
        Option("num_workers", "a whole number", _count(0)),
        Option("shard", "auto, worker", _one_of("auto", "worker")),
        Option("recycle_after", "a number of batches", _count(1)),
        Option("max_worker_memory", _SIZES, _size),
        Option("max_shared_memory", _SIZES, _size),
        Option("fault_log", "a file", _path),
        Option("bundle", "a folder", _path),
        Option("allow_empty", _FLAG, _flag),
        # Of the run:
        Option("warm", _FLAG, _flag),
        Option("quiet", _FLAG, _flag),
        Option("report", "a file", _path),
    )
}
OF_THE_RUN = ("warm", "quiet", "report")
