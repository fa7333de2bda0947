"""Which sample is to be seen again, and what is known of the random numbers that it had."""

from __future__ import annotations

import ast
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from torch.utils.data import IterableDataset

from holdfast.state.moment import Moment
from holdfast.state.run import Epoch
from holdfast.targets.mistake import Mistake
from holdfast.targets.target import Target

from .orders import Order, epoch_of


@dataclass(frozen=True)
class Wanted:
    """``before`` are the indices that were fetched before it in its batch; None: nobody knows. Without a ``moment`` the
    random numbers are not those of a run. ``batch``: all of its indices, if they are known. ``note``: what the user
    should know of it."""

    index: Any
    moment: Moment | None = None
    before: tuple[Any, ...] | None = ()
    batch: tuple[Any, ...] = ()
    worker: int = 0
    note: str = ""

    @property
    def seed(self) -> int:
        """Of the batch."""
        return self.moment.batch_seed if self.moment is not None else 0


class Place(NamedTuple):
    """How the user says which random numbers are meant."""

    at: str | None = None
    fault: str | None = None
    epoch: int | None = None
    batch: int | None = None
    worker: int = 0


def sought(target: Target, index: str | None, place: Place) -> Wanted:
    """What the user means; `Mistake` when that is nothing."""
    if isinstance(target.dataset, IterableDataset):
        raise Mistake(f"{target.text} is a stream, whose items have no index", "loop over it with num_workers=0")
    if sum(one is not None for one in (place.at, place.fault, place.epoch)) > 1:
        raise Mistake("--at, --fault and --epoch each say which random numbers are meant: give one of them")
    if place.fault is not None:
        return of_fault(place.fault)
    if index is None:
        raise Mistake("which sample?", "holdfast replay TARGET INDEX, or TARGET --fault faults.jsonl")
    sample = index_of(index)
    if place.at is not None:
        return in_batch(sample, _moment(place.at), target.loader, place.worker)
    if place.epoch is None:
        return Wanted(sample, worker=place.worker, note=_beyond(target.dataset, sample))
    if target.loader is None:
        raise Mistake(f"{target.text} is a data set, and epochs are a loader's", "name the loader, or use --at")
    return in_epoch(sample, place.epoch, place.batch, target.loader, place.worker)


def _beyond(dataset: Any, index: Any) -> str:
    """Not a mistake: samplers may draw indices that only the data set understands."""
    try:
        count = len(dataset)
    except Exception:  # the user's, or there is none
        return ""
    outside = isinstance(index, int) and not -count <= index < count
    return f"the data set has {count:,} samples, 0 to {count - 1:,}" if outside else ""


def _moment(text: str) -> Moment:
    try:
        return Moment.of(text)
    except ValueError as error:
        raise Mistake(f"--at {error}", "it is what an error tells: 2/118/8214565720323847/93842") from None


def index_of(text: str) -> Any:
    """As the user types it: a number, a tuple; everything else is a text."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def in_batch(index: Any, moment: Moment, loader: Any, worker: int) -> Wanted:
    """At a place that an error has told. Without a loader nobody knows what was fetched before it."""
    if loader is None:
        return Wanted(index, moment, None, worker=worker)
    order = Order(loader, Epoch(moment.epoch, moment.seed, moment.order))
    return _placed(index, moment, order.batch(moment.batch), worker)


def in_epoch(index: Any, epoch: int, batch: int | None, loader: Any, worker: int) -> Wanted:
    """In an epoch of this loader, in a program that is where this one is now."""
    order = Order(loader, epoch_of(loader, epoch))
    number = order.batch_of(index) if batch is None else batch
    if number is None:
        raise Mistake(f"sample {index!r} is in no batch of epoch {epoch}", "the sampler does not draw it there")
    return _placed(index, order.moment(number), order.batch(number), worker)


def _placed(index: Any, moment: Moment, batch: list[Any], worker: int) -> Wanted:
    if index not in batch:
        held = f"it has {', '.join(map(repr, batch[:8]))}{' …' if len(batch) > 8 else ''}" if batch else "it is empty"
        raise Mistake(
            f"sample {index!r} is not in batch {moment.batch} of epoch {moment.epoch}",
            f"{held}; is this the loader that the place was told of?",
        )
    return Wanted(index, moment, tuple(batch[: batch.index(index)]), tuple(batch), worker)


def of_fault(text: str) -> Wanted:
    """``faults.jsonl``, ``faults.jsonl:3`` or the folder of a bundle: its last fault, or that of the line."""
    name, colon, line = text.rpartition(":")
    if not (colon and line.isdigit()):
        name, line = text, ""
    faults = _read(Path(name))
    if line and not 1 <= int(line) <= len(faults):
        raise Mistake(f"{name} has no line {line}", f"it has {len(faults)} faults")
    known = [fault for fault in faults if fault.get("index") is not None and fault.get("at") and fault["attempts"]]
    found = faults[int(line) - 1] if line else next(reversed(known), None)
    if found is None or found.get("index") is None or not found.get("at"):
        raise Mistake(f"{text} tells of no sample that can be loaded again", "a fault of a stream, or of a whole batch")
    if not found["attempts"]:
        raise Mistake(
            f"{text}: sample {found['index']} was known to be bad, and not loaded",
            "an earlier line tells when it was; or without its random numbers: holdfast replay TARGET INDEX",
        )
    index, before = _index(found["index"]), tuple(map(_index, found["before"]))
    return Wanted(index, Moment.of(found["at"]), before, worker=found["seat"] or 0)


def _read(path: Path) -> list[Any]:
    path = path / "ledger.json" if path.is_dir() else path
    try:
        text = path.read_text(encoding="utf-8")
        return list(json.loads(text)) if text.startswith("[") else [json.loads(line) for line in text.splitlines()]
    except OSError as error:
        raise Mistake(f"{path} cannot be read: {error.strerror}") from None
    except ValueError:
        raise Mistake(f"{path} is not a fault log", "it is the file of fault_log=, or the folder of a bundle") from None


def _index(plain: Any) -> Any:
    return tuple(plain) if isinstance(plain, list) else plain  # JSON has no tuples
