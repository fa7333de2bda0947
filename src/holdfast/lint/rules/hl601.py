"""# HL601 `itertools.cycle` keeps every batch

## Bad

```python
import itertools

def train(loader):
    for batch in itertools.cycle(loader):
        step(batch)
```

## Good

```python
def endless(loader):
    while True:
        yield from loader

def train(loader):
    for batch in endless(loader):
        step(batch)
```

## Why

`cycle` saves a copy of all that it has seen, to give it again: the whole data set, decoded, stays in memory. From the
second epoch on the loader is not asked any more: the same augmentation, in the same order.

## See

pytorch#23900.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..batches import is_loader
from ..finding import Level, Remark
from ..script import Script

LEVEL = Level.ERROR


def check(script: Script) -> Iterator[Remark]:
    for call in script.calls_to("itertools.cycle"):
        given = call.args[0] if call.args else None
        if isinstance(given, ast.Call) and script.resolve(given.func) == "iter" and given.args:
            given = given.args[0]
        if given is not None and is_loader(script, given):
            loader = ast.unparse(given)[:40]
            yield Remark(
                call,
                f"cycle({loader}) keeps every batch in memory, and repeats the first epoch for ever",
                f"while True: yield from {loader}  # in a generator function",
            )
