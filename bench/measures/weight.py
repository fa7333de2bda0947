"""What a data set costs in memory, in all processes of a contender together."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import psutil

from bench.contest import Turn
from bench.contests.faults import ONE_COPY
from bench.measures.opening import opening, work_of
from bench.seat import Running


class Weight:
    """Each go opens two loaders, one after the other: one whose array has a single page, and the one that is asked for.

    The figure is how many MB more there are with the second in the trainer and all its descendants, by PSS: each page
    divided by the number of processes that map it. It is taken when each worker has read all of the array.
    """

    def __init__(self, turn: Turn) -> None:
        self._turn, self.note = turn, ""
        open_, work = opening(_without(turn))
        open_(work).close()  # now, for a contender that cannot

    def go(self) -> float:
        trainer, others, _ = _weigh(_without(self._turn))
        heavy_trainer, heavy_others, readers = _weigh(self._turn)
        self.note = f"trainer {(heavy_trainer - trainer) / 1e6:.0f} MB, {readers}"
        return (heavy_trainer - trainer + heavy_others - others) / 1e6

    def close(self) -> None:
        pass


class OneCopy:
    """What no loader can be below: the array itself."""

    note = ""

    def __init__(self, turn: Turn) -> None:
        self._megabytes = work_of(turn).dataset.array.nbytes / 1e6

    def go(self) -> float:
        return self._megabytes

    def close(self) -> None:
        pass


def start(turn: Turn) -> Running:
    return OneCopy(turn) if turn.contender == ONE_COPY else Weight(turn)


def _without(turn: Turn) -> Turn:
    return dataclasses.replace(turn, settings={**turn.settings, "work": "array:page"})


def _weigh(turn: Turn) -> tuple[int, int, str]:
    """Bytes of the trainer, bytes of its descendants, and who read the array; in the middle of an epoch and near its
    end, whichever is more, as workers may be started late or ended early."""
    open_, work = opening(turn)
    batches, loader, readers, weights = work.batches, open_(work), set(), []
    del work  # a data set that was copied into shared memory is there once
    try:
        for seen, batch in enumerate(loader):
            readers.update(batch[0].tolist())
            if seen in (batches // 2, batches * 3 // 4, batches - 2):
                weights.append(_pss_of_all())
    finally:
        loader.close()
    trainer, others = max(weights, key=sum)
    me = psutil.Process().pid
    return trainer, others, "which reads it" if readers == {me} else f"read by {len(readers - {me})} others"


def _pss_of_all() -> tuple[int, int]:
    me = psutil.Process()
    return _pss(me.pid), sum(_pss(child.pid) for child in me.children(recursive=True))


def _pss(pid: int) -> int:
    """0 for a process that has just ended."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:")), 0)
