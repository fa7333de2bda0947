"""# HL202 a worker sets the same seed again and again

## Bad

```python
import numpy as np
from torch.utils.data import Dataset

class Images(Dataset):
    def __getitem__(self, index):
        np.random.seed(0)
        return self.images[index] + np.random.normal()
```

## Good

```python
import numpy as np
from torch.utils.data import Dataset

class Images(Dataset):
    def __getitem__(self, index):
        rng = np.random.default_rng([self.seed, self.epoch, index])
        return self.images[index] + rng.normal()
```

## Why

Every sample then gets the same "random" augmentation, in every worker and epoch; and a global seed also changes what
everything else in the worker draws.

## See

`holdfast explain F38`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..contexts import ItemFunction, Role
from ..finding import Level, Remark
from ..script import Script
from ..seeding import GENERATORS, GLOBAL_SEEDS, is_constant, seed_of

LEVEL = Level.WARNING


def check(script: Script) -> Iterator[Remark]:
    calls = (*script.calls_to(*GLOBAL_SEEDS, *GENERATORS), *script.calls_of_method("manual_seed"))
    for call in dict.fromkeys(calls):  # torch.manual_seed is one of both
        item = script.item_of(call)
        if item is None or not is_constant(script, seed_of(call)) or _is_an_order(script, call, item):
            continue
        each = "each worker" if item.role is Role.WORKER_INIT else "each call"
        yield Remark(
            call,
            f"{ast.unparse(call)} in {item.via}: {each} draws the same numbers",
            "rng = np.random.default_rng([self.seed, self.epoch, index]), used instead of the global generator",
        )


def _is_an_order(script: Script, call: ast.Call, item: ItemFunction) -> bool:
    """A generator of its own in ``__iter__`` orders files alike in all workers, which sharding needs."""
    return item.entry.endswith("__iter__") and script.resolve(call.func) not in GLOBAL_SEEDS
