"""# HL303 a bare `next()` ends the epoch in silence

## Bad

```python
from torch.utils.data import Dataset

class Frames(Dataset):
    def __getitem__(self, index):
        return next(self.frames)
```

## Good

```python
from torch.utils.data import Dataset

class Frames(Dataset):
    def __getitem__(self, index):
        frame = next(self.frames, None)
        if frame is None:
            raise IndexError(f"there is no frame {index}")
        return frame
```

## Why

An iterator that is used up raises `StopIteration`. Raised in `__getitem__`, in a transform or in `collate_fn`, it
reaches the training loop, which takes it for the end of the epoch: 1 of 25 batches, and no error. holdfast raises
`HF305` instead.

## See

`holdfast explain F27`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..contexts import ItemFunction, Role
from ..finding import Level, Remark
from ..script import Script

LEVEL = Level.ERROR

_ENDLESS = {"itertools.count", "itertools.cycle", "itertools.repeat"}


def check(script: Script) -> Iterator[Remark]:
    for call in script.calls_to("next"):
        item = script.item_of(call)
        if item is None or len(call.args) != 1 or not _reaches_the_loop(item):
            continue
        if script.in_generator(call) or script.is_caught(call, "StopIteration") or _is_endless(script, call.args[0]):
            continue
        asked = ast.unparse(call)
        yield Remark(
            call,
            f"{asked} in {item.via} raises StopIteration when there is no more, and the loop takes it for its end",
            f"{ast.unparse(call)[:-1]}, None), or raise IndexError",
        )


def _reaches_the_loop(item: ItemFunction) -> bool:
    """In ``__iter__`` a generator turns it into a RuntimeError, and in ``__next__`` it is meant."""
    if item.role is Role.SAMPLE:
        return item.entry.endswith(("__getitem__", "__getitems__"))
    return item.role in {Role.COLLATE, Role.TRANSFORM}


def _is_endless(script: Script, node: ast.expr) -> bool:
    values: list[ast.expr | None] = [script.value_of(node)]
    if script.resolve(node).startswith("self."):
        name = ast.unparse(node)
        values = [one.value for one in script.nodes(ast.Assign) if name in map(ast.unparse, one.targets)]
    return any(isinstance(value, ast.Call) and script.resolve(value.func) in _ENDLESS for value in values)
