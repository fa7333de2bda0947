"""# HL208 a worker shuffles the data set in place

## Bad

```python
import random
from torch.utils.data import IterableDataset

class Lines(IterableDataset):
    def __iter__(self):
        random.shuffle(self.files)
        yield from self.files
```

## Good

```python
import random
from torch.utils.data import IterableDataset, get_worker_info

class Lines(IterableDataset):
    def __iter__(self):
        files = sorted(self.files)
        random.Random(f"{self.seed} {self.epoch}").shuffle(files)   # the same order in all workers
        worker = get_worker_info()
        yield from files[worker.id :: worker.num_workers] if worker else files
```

## Why

Each worker shuffles its own copy, each in another way: shards that are cut from it overlap and leave gaps. With workers
that persist, each epoch shuffles what the last one left. Loading the sample again gives another one.

## See

`holdfast explain F40`; pytorch#41329.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..bindings import dotted
from ..contexts import Role
from ..finding import Level, Remark
from ..script import Script

LEVEL = Level.WARNING


def check(script: Script) -> Iterator[Remark]:
    for call in script.calls_of_method("shuffle") if script.datasets else ():
        item = script.item_of(call)
        if item is None or item.role is not Role.SAMPLE or not call.args:
            continue
        shuffled = dotted(call.args[0])
        if shuffled.startswith("self."):
            yield Remark(
                call,
                f"{ast.unparse(call)} in {item.via} changes this worker's copy alone, and for good",
                f"order = list({shuffled}); random.Random(seed).shuffle(order), with a seed of the epoch",
            )
