"""# HL302 a length that workers multiply

## Bad

```python
from torch.utils.data import IterableDataset

class Lines(IterableDataset):
    def __len__(self):
        return len(self.rows)

    def __iter__(self):
        yield from self.rows
```

## Good

```python
from torch.utils.data import IterableDataset, get_worker_info

class Lines(IterableDataset):
    def __len__(self):
        return len(self.rows)

    def __iter__(self):
        info = get_worker_info()
        yield from self.rows if info is None else self.rows[info.id :: info.num_workers]
```

## Why

`len(loader)` of an iterable data set is worked out from its `__len__`, and every worker yields the whole stream: with
4 workers 4 times as many samples come as were announced. Progress bars, learning rate schedules and Lightning's
`limit_train_batches` go by the length. torch warns while it happens; holdfast with `shard="auto"` keeps the length
true.

## See

`holdfast explain HL301`, `holdfast explain F40`.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..finding import Level, Remark
from ..script import Script
from ..streams import unsharded

LEVEL = Level.INFO


def check(script: Script) -> Iterator[Remark]:
    for dataset in unsharded(script):
        if "__len__" in dataset.methods:
            yield Remark(
                dataset.methods["__len__"],
                f"len(loader) is worked out from {dataset.name}.__len__, and n workers give n times as many",
                'holdfast.DataLoader(..., shard="auto"), or divide by get_worker_info() in __iter__',
            )
