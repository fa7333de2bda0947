"""Where a sample is seen again: in a worker of its own, whose death is told; or here, under pdb."""

from __future__ import annotations

import os
import pdb
from bdb import BdbQuit
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Any

from holdfast._worker.describe import describe
from holdfast.errors import Verdict, WorkerDied
from holdfast.loader import DataLoader

from .stage import Seen, Stage, from_users_code

OURS = f"{os.path.dirname(__file__)}{os.sep}"
SKIPPED = ["holdfast.*", "torch.*"]  # modules in whose lines nobody wants to stop


@dataclass(frozen=True)
class Died:
    """The sample ended its process, and did so twice, as a process may be killed from outside."""

    where: str
    how: str  # "was killed by SIGSEGV"
    why: str


def in_a_worker(stage: Stage, loader: Any) -> Seen | Died:
    """Started as the workers of the loader are, if that says how."""
    alone: DataLoader[Any] = DataLoader(
        stage,  # type: ignore[arg-type]  # it has all that is needed of one
        batch_size=None,
        num_workers=1,
        collate_fn=_itself,
        multiprocessing_context=getattr(loader, "multiprocessing_context", None),
        start=loader.start if isinstance(loader, DataLoader) else "auto",
        stall_timeout=0,
    )
    alone.faults.warn = False
    try:
        [seen] = alone
    except WorkerDied as death:
        return Died(describe(stage.dataset, stage.wanted.index), str(death.verdict), _cause(death.verdict))
    return seen  # type: ignore[no-any-return]


def _cause(verdict: Verdict) -> str:
    """Without the part of its stack, and of what it was doing, that is ours."""
    users = takewhile(lambda line: OURS not in line, verdict.stack.splitlines())
    return replace(verdict, stack="\n".join(users), doing="").cause()


def under_pdb(stage: Stage) -> bool:
    """Post-mortem where it raises; or, when it does not, a prompt at the first line of it. Whether it raised."""
    try:
        stage.set_up()(stage.wanted.index)
    except Exception as error:
        print(f"{type(error).__name__}: {error}")
        pdb.post_mortem(from_users_code(error))
        return True
    get = stage.set_up()  # once more, as it was
    try:
        pdb.Pdb(skip=SKIPPED).runcall(get, stage.wanted.index)
    except BdbQuit:
        pass  # the user has seen enough
    return False


def _itself(sample: Any) -> Any:
    return sample
