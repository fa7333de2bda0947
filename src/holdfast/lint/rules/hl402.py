"""# HL402 a cache for each worker

## Bad

```python
from functools import lru_cache
from torch.utils.data import Dataset

class Images(Dataset):
    @lru_cache(maxsize=None)
    def read(self, path):
        return decode(path)

    def __getitem__(self, index):
        return self.read(self.paths[index])
```

## Good

```python
import holdfast
import torch
from torch.utils.data import Dataset

class Images(Dataset):
    def __init__(self, paths):
        self.paths = paths
        self.images = holdfast.share(torch.zeros(len(paths), 3, 64, 64))   # one copy for all workers
        self.there = holdfast.share(torch.zeros(len(paths), dtype=torch.bool))

    def __getitem__(self, index):
        if not self.there[index]:
            self.images[index] = decode(self.paths[index])
            self.there[index] = True
        return self.images[index]
```

## Why

The cache is in the memory of one process. With 8 workers there are 8 of them, each meets an eighth of the requests,
and each grows to the size of the data set; without `persistent_workers` all are empty again in the next epoch. A cache
on a method also keeps every data set alive that was ever asked.

Methods without arguments, and caches of up to 16 entries, are left alone: they hold handles or tables, not samples.

## See

`holdfast explain F35`; ruff B019; pytorch#35795.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..bindings import keywords
from ..datasets import DatasetClass, Method
from ..finding import Level, Remark
from ..script import Script

LEVEL = Level.WARNING

_CACHES = {"functools.lru_cache", "functools.cache"}
_SMALL = 16


def check(script: Script) -> Iterator[Remark]:
    for dataset in script.datasets:
        for method in dataset.methods.values():
            if method in dataset.node.body:
                yield from _cached(script, dataset, method)


def _cached(script: Script, dataset: DatasetClass, method: Method) -> Iterator[Remark]:
    arguments = [one.arg for one in (*method.args.posonlyargs, *method.args.args) if one.arg not in {"self", "cls"}]
    for decorator in method.decorator_list:
        maker = decorator.func if isinstance(decorator, ast.Call) else decorator
        if script.resolve(maker) in _CACHES and arguments and not _is_small(decorator):
            yield Remark(
                decorator,
                f"{dataset.name}.{method.name} caches in the worker's own memory: n workers have n caches, "
                "and each grows by itself",
                "fill a holdfast.share(...) array that all workers see, or cache on disk",
            )


def _is_small(decorator: ast.expr) -> bool:
    if not isinstance(decorator, ast.Call):
        return False
    size = decorator.args[0] if decorator.args else keywords(decorator).get("maxsize")
    return isinstance(size, ast.Constant) and isinstance(size.value, int) and size.value <= _SMALL
