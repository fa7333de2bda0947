"""What the program's loaders did, for people and, with ``--report``, for programs: the last that a program does."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from typing import Any

from . import letters, remarks
from .text import lines, lines_of_lint

Facts = dict[str, Any]


def conclude(terms: Mapping[str, Any], seconds: float) -> None:
    """Of the program, which took so long on these terms."""
    found = gathered(terms, seconds)
    told = [] if terms["quiet"] else [*lines(found, terms["options"]), *lines_of_lint(found["remarks"])]
    if terms["report"]:
        try:
            _write(terms["report"], found)
        except OSError as error:
            told.append(f"holdfast: the report cannot be written to {terms['report']}: {error.strerror}")
    try:
        if told and sys.stderr is not None:  # to None would be to standard output
            print("\n".join(told), file=sys.stderr, flush=True)
    except (OSError, ValueError):
        pass  # standard error is closed, or gone: nobody listens any more


def gathered(terms: Mapping[str, Any], seconds: float) -> Facts:
    """Facts of this process, and of all that it started and that made loaders."""
    usage = sys.modules.get(f"{__package__}.usage")  # not there: the program did not even import torch
    processes = [usage.facts(seconds)] if usage is not None else []
    processes += letters.receive(terms["folder"])
    used = [one for one in processes if one["loaders"]]
    return {"seconds": seconds, "processes": used, "remarks": remarks.on(terms["script"], terms["options"])}


def _write(path: str, found: Facts) -> None:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        json.dump(found, file, indent=2, default=repr)
        file.write("\n")
