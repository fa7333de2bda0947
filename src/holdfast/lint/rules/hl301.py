"""# HL301 every worker yields the whole stream

## Bad

```python
from torch.utils.data import DataLoader, IterableDataset

class Lines(IterableDataset):
    def __init__(self, paths):
        self.paths = paths

    def __iter__(self):
        for path in self.paths:
            with open(path) as file:
                yield from file

loader = DataLoader(Lines(["a.txt", "b.txt"]), num_workers=4)
```

## Good

```python
from holdfast import DataLoader
from torch.utils.data import IterableDataset

class Lines(IterableDataset):
    def __init__(self, paths):
        self.paths = paths

    def __iter__(self):
        for path in self.paths:
            with open(path) as file:
                yield from file

loader = DataLoader(Lines(["a.txt", "b.txt"]), num_workers=4, shard="auto")   # by worker and rank
```

## Why

Each worker has a copy of the data set and iterates over all of it: with 4 workers every sample is trained on 4 times
in an epoch that is 4 times as long, and nothing looks wrong. With stock torch, divide in `__iter__`:

```python
def __iter__(self):
    info = torch.utils.data.get_worker_info()
    paths = self.paths if info is None else self.paths[info.id::info.num_workers]
```

The rule is silent about streams that are made of random numbers, that wrap another data set, or that say anything of
workers or shards.

## See

`holdfast explain F40`, `holdfast explain HF403`; pytorch#47576.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..finding import Level, Remark
from ..script import Script
from ..streams import loaders_of, unsharded

LEVEL = Level.WARNING


def check(script: Script) -> Iterator[Remark]:
    for dataset in unsharded(script):
        counts = [loader.literal("num_workers") for loader in loaders_of(script, dataset) if loader.has_workers]
        count = next((one for one in counts if isinstance(one, int)), "n")
        yield Remark(
            dataset.methods["__iter__"],
            f"{dataset.name}.__iter__ gives every worker the whole stream: "
            f"with {count} workers each item comes {count} times",
            'holdfast.DataLoader(..., shard="auto"), or divide by get_worker_info() in __iter__',
        )
