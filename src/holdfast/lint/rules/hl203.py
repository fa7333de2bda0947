"""# HL203 the worker's number is the seed, the same in each epoch

## Bad

```python
import numpy as np
from torch.utils.data import DataLoader

def first(worker_id):
    np.random.seed(worker_id)

def loader(dataset):
    return DataLoader(dataset, num_workers=4, worker_init_fn=first)
```

## Good

```python
import numpy as np
import torch
from torch.utils.data import DataLoader

def first(worker_id):
    np.random.seed(torch.initial_seed() % 2**32)

def loader(dataset):
    return DataLoader(dataset, num_workers=4, worker_init_fn=first)
```

## Why

Workers are started anew in each epoch, with the same numbers, and so repeat the augmentations of the epoch before.
`torch.initial_seed()` in a worker is the loader's seed of that epoch plus the worker's number. torch (from 1.9 on) and
holdfast seed `random`, numpy and torch by themselves: the function can be left out.

## See

`holdfast explain F38`; CenterNet#233.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..bindings import Function, parameters
from ..contexts import Role
from ..finding import Level, Remark
from ..script import Script
from ..seeding import GLOBAL_SEEDS, seed_of

LEVEL = Level.WARNING


def check(script: Script) -> Iterator[Remark]:
    for call in script.calls_to(*GLOBAL_SEEDS):
        item, seed = script.item_of(call), seed_of(call)
        if item is None or item.role is not Role.WORKER_INIT or seed is None:
            continue
        if _is_same_each_epoch(_written_out(script, seed, item.node), parameters(item.node)):
            yield Remark(
                call,
                f"{ast.unparse(call)} in {item.name}: the workers of each epoch draw the same numbers",
                f"{ast.unparse(call.func)}(torch.initial_seed() % 2**32), or leave the seeding to the loader",
            )


def _written_out(script: Script, seed: ast.expr, function: Function) -> list[ast.AST]:
    """All that the seed is made of, with the values of local names in it."""
    parts = list(ast.walk(seed))
    names = [node.id for node in parts if isinstance(node, ast.Name)]
    values = [value for name in names for value in script.values.all(function, name) if value is not None]
    return [*parts, *(part for value in values for part in ast.walk(value))]


def _is_same_each_epoch(parts: list[ast.AST], given: set[str]) -> bool:
    """The worker's number, alone or with what stays as it is: no call, and nothing that is called an epoch."""
    names = [getattr(part, "id", getattr(part, "attr", "")) for part in parts]
    changes = any(isinstance(part, ast.Call) for part in parts) or any("epoch" in name.lower() for name in names)
    return not changes and not given.isdisjoint(names)
