"""From what a case told to its outcome. No process, no clock."""

from __future__ import annotations

import re
import signal
from collections.abc import Sequence
from typing import Any

Event = dict[str, Any]
Finding = tuple[str, float | None, str]  # outcome, seconds, text
FINAL = ("ended", "error", "cannot", "exited")


def is_final(event: Event) -> bool:
    """Whether nothing that comes after it matters."""
    return event["event"] in FINAL


def classify(events: Sequence[Event], struck: float | None, limit: float, *, strikes: bool = True) -> Finding:
    """`struck`: when the fault happened, if it did; of one that does not strike, the beginning of the epoch counts,
    and an epoch that finishes has no time."""
    outcome, seconds, text = _classify(events, struck, limit)
    if strikes and struck is None and outcome != "cannot":
        return outcome, None, ": ".join(filter(None, ["before the fault was met", text]))
    return outcome, seconds, text


def _classify(events: Sequence[Event], struck: float | None, limit: float) -> Finding:
    final = next((event for event in events if is_final(event)), None)
    if final is None:
        return "hangs", None, f"no batch within {limit:g} s"
    began = struck if struck is not None else next((one["at"] for one in events if one["event"] == "loading"), None)
    match final["event"]:
        case "cannot":
            return "cannot", None, final["text"]
        case "error":
            return "error", _since(began, final["at"]), final["text"]
        case "exited":
            return "ends", _since(began, final["at"]), ending(final["status"])
        case _:
            if final["missing"] or final["double"]:
                return "loss", _since(began, final["at"]), _loss(final)
            there = next((one["at"] for one in events if one["event"] == "there"), final["at"])
            return "finishes", _since(struck, there), ""


def ending(status: int) -> str:
    """Of a shell's status."""
    return f"killed by {signal.Signals(status - 128).name}" if status > 128 else f"exit code {status}"


def names(text: str, index: int) -> bool:
    """Whether an error tells which sample it was. Numbers of lines and processes are none of samples."""
    text = re.sub(r"\bline \d+|\bpid(\(s\))?\W{0,6}\d+|0x[0-9a-f]+", "", text)
    return re.search(rf"(?<![\w.]){index}(?!\w)", text) is not None


def told_by(error: BaseException) -> str:
    """What stands at the end of a traceback, in short; of the original one, where that is in the message."""
    lines = re.sub(r"\x1b\[\d*m", "", f"{type(error).__name__}: {error}").strip().splitlines()  # without colours
    return lines[-1 if "Traceback (most recent call last)" in str(error) else 0].strip().removesuffix(":")[:160]


def leftovers(processes: Sequence[str], files: Sequence[str] | None, seconds: float) -> Finding:
    """`files`: in /dev/shm; None where they cannot be told from those of others."""
    parts = [_counted(len(processes), "process", "processes")] if processes else []
    if files:
        parts.append(f"{_counted(len(files), 'file', 'files')} in /dev/shm")
    if parts:
        return "leaves", None, ", ".join(parts)
    return "clean", seconds, "files in /dev/shm not counted" if files is None else ""


def _since(began: float | None, at: float) -> float | None:
    return None if began is None else max(0.0, at - began)


def _loss(final: Event) -> str:
    counts = {"missing": final["missing"], "double": final["double"]}
    return ", ".join(f"{count} samples {how}" for how, count in counts.items() if count)


def _counted(count: int, one: str, many: str) -> str:
    return f"{count} {one if count == 1 else many}"
