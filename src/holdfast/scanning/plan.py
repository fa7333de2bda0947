"""Which samples are to be read, by their keys in the data set, and in what order."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any

import numpy
from torch.utils.data import (
    BatchSampler,
    DistributedSampler,
    RandomSampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)

import holdfast
from holdfast._worker.describe import describe
from holdfast.fault import plain
from holdfast.targets.mistake import Mistake, raised
from holdfast.targets.target import Target

# These draw from the whole data set, however much of it they give in one epoch.
OF_ALL = (RandomSampler, SequentialSampler, WeightedRandomSampler, DistributedSampler, holdfast.DistributedSampler)
ENDLESS = 2  # times the length of the data set, after which a sampler has no more to tell


@dataclass(frozen=True)
class Plan:
    """Samples are numbered from 0: ``keys[position]`` is what the data set knows one by.

    ``identity``: by what a scan that was interrupted is known to be this one.
    """

    keys: Sequence[Any]
    identity: dict[str, Any]

    def __len__(self) -> int:
        return len(self.keys)

    def key(self, position: int) -> Any:
        return plain(self.keys[position])


def planned(target: Target, share: float | None, seed: int, limit: int | None) -> Plan:
    """``share``: of all samples, so many are chosen by chance; ``limit``: and of those the first."""
    keys = _keys(target)
    if not len(keys):
        raise Mistake(f"{target.text} has no samples")
    identity = {
        "data set": type(target.dataset).__qualname__,
        "length": len(keys),
        "samples": [_told(target.dataset, keys[place]) for place in (0, len(keys) // 2, len(keys) - 1)],
        "--sample": share,
        "--seed": seed if share is not None else None,
        "--limit": limit,
    }
    if share is not None:
        count = max(1, round(share * len(keys)))
        chosen = numpy.sort(numpy.random.default_rng(seed).choice(len(keys), count, replace=False))
        keys = _picked(keys, chosen)
    return Plan(keys[:limit], identity)


def _picked(keys: Sequence[Any], places: Any) -> Sequence[Any]:
    if isinstance(keys, list):
        return [keys[place] for place in places]
    return array("q", numpy.asarray(keys)[places].tobytes() if isinstance(keys, array) else places.tobytes())


def _told(dataset: Any, key: Any) -> str:
    return describe(dataset, key) or str(plain(key))


# -- what there is -----------------------------------------------------------------------------


def _keys(target: Target) -> Sequence[Any]:
    sampler = _sampler(target.loader)
    if sampler is None or isinstance(sampler, OF_ALL):
        return range(_length(target))
    drawn = sampler.indices if type(sampler) is SubsetRandomSampler else _drawn(sampler, target)
    return _compact(drawn, target.text)


def _sampler(loader: Any) -> Any:
    """Where indices come from, or lists of them; None: there is no loader."""
    if loader is None:
        return None
    if type(loader.batch_sampler) is BatchSampler:
        return loader.batch_sampler.sampler
    return loader.batch_sampler or loader.sampler


def _drawn(sampler: Any, target: Target) -> Iterator[Any]:
    """Of a sampler that we do not know, what one epoch gives; and of one without end, enough."""
    most = len(sampler) if hasattr(sampler, "__len__") else ENDLESS * _length(target)
    drawn: Iterable[Any] = islice(sampler, most)
    gives_lists = target.loader is not None and target.loader.batch_sampler is sampler
    return chain.from_iterable(drawn) if gives_lists else iter(drawn)


def _compact(drawn: Iterable[Any], text: str) -> Sequence[Any]:
    """Each once, in the order of the first time; 8 bytes each where they are whole numbers."""
    try:
        found = list(dict.fromkeys(plain(key) if not isinstance(key, tuple) else key for key in drawn))
    except TypeError:
        raise Mistake(f"the sampler of {text} gives what has no hash, and cannot be told apart") from None
    except Exception as error:
        raise raised(f"the sampler of {text}", error) from None
    return array("q", found) if all(type(key) is int for key in found) else found


def _length(target: Target) -> int:
    try:
        return len(target.dataset)
    except Exception as error:
        raise raised(f"len({target.text})", error) from None
