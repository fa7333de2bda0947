"""# HL506 persistent workers of a loader that is made anew for each epoch

## Bad

```python
from torch.utils.data import DataLoader

def train(dataset):
    for epoch in range(90):
        loader = DataLoader(dataset, num_workers=4, pin_memory=True, persistent_workers=True)
        for batch in loader:
            step(batch)
```

## Good

```python
from torch.utils.data import DataLoader

def train(dataset):
    loader = DataLoader(dataset, num_workers=4, pin_memory=True, persistent_workers=True)
    for epoch in range(90):
        for batch in loader:
            step(batch)
```

## Why

Persistent workers live as long as their loader. Each epoch's loader starts new ones, with a thread that pins memory,
beside those of the epochs before, which torch does not always end: `Too many open files`, far into a long run.
Lightning's `reload_dataloaders_every_n_epochs` does the same, and warns of it.

## See

pytorch#91252; Lightning-AI/pytorch-lightning#18487.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..batches import is_epoch_loop
from ..bindings import keywords
from ..finding import Level, Remark
from ..loaders import Loader
from ..script import Script

LEVEL = Level.WARNING

_RELOAD = "reload_dataloaders_every_n_epochs"


def check(script: Script) -> Iterator[Remark]:
    kept = [loader for loader in script.loaders if _is_kept_and_pinned(loader)]
    reloads = bool(kept) and any(_reloads(call) for call in script.calls_ending_in("Trainer"))
    for loader in kept:
        if reloads or is_epoch_loop(script.in_loop(loader.call)):
            why = f"the Trainer's {_RELOAD} makes it" if reloads else "the loop makes it"
            yield Remark(
                loader.call,
                f"persistent_workers=True of a loader that does not last: {why} anew for each epoch",
                f"{_RELOAD}=0, or persistent_workers=False" if reloads else "make the loader once, before the loop",
            )


def _is_kept_and_pinned(loader: Loader) -> bool:
    wanted = all(loader.literal(name) is True for name in ("pin_memory", "persistent_workers"))
    return wanted and not loader.is_ours


def _reloads(call: ast.Call) -> bool:
    given = keywords(call).get(_RELOAD)
    return isinstance(given, ast.Constant) and bool(given.value)
