"""# HL403 an attribute that is set while a sample is loaded

## Bad

```python
from torch.utils.data import Dataset

class Images(Dataset):
    def __getitem__(self, index):
        self.loaded += 1
        return self.images[index]
```

## Good

```python
import holdfast
from torch.utils.data import Dataset

class Images(Dataset):
    def __init__(self):
        self.loaded = holdfast.Counter()

    def __getitem__(self, index):
        self.loaded += 1            # one number for all workers and the trainer
        return self.images[index]
```

## Why

Each worker has a copy of the data set. What `__getitem__` sets is lost at the end of the epoch, the trainer never sees
it, and samples come to depend on which worker loads them, after which others.

Something that is opened or filled on first use (`if self.file is None: ...`) is left alone.

## See

`holdfast explain F44`; pytorch#35795.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..batches import runs_in_workers
from ..bindings import dotted
from ..bodies import is_set_once
from ..contexts import ItemFunction, Role
from ..finding import Level, Remark
from ..script import Script

LEVEL = Level.INFO


def check(script: Script) -> Iterator[Remark]:
    if not script.items:
        return
    for node in script.nodes(ast.Assign, ast.AugAssign):
        item = script.item_of(node)
        if item is None or not _runs_per_item(item) or not runs_in_workers(script, item):
            continue
        for name in map(dotted, node.targets if isinstance(node, ast.Assign) else [node.target]):
            counts = isinstance(node, ast.AugAssign)
            if not name.startswith("self.") or name.count(".") > 1 or _is_counter(script, name):
                continue
            if counts or not is_set_once(script, node, name):
                yield Remark(
                    node,
                    f"{name} is set in {item.via}: each worker has its own, and it is lost with the worker",
                    f"{name} = holdfast.Counter() in __init__" if counts else f"a local variable in place of {name}",
                )


def _runs_per_item(item: ItemFunction) -> bool:
    """A stream has to remember where it is."""
    if item.role is Role.SAMPLE:
        return item.entry.endswith(("__getitem__", "__getitems__"))
    return item.role in {Role.COLLATE, Role.TRANSFORM}


def _is_counter(script: Script, name: str) -> bool:
    made = [one.value for one in script.nodes(ast.Assign) if name in map(dotted, one.targets)]
    return any(isinstance(one, ast.Call) and script.resolve(one.func) == "holdfast.Counter" for one in made)
