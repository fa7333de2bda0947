"""# HL405 an exception is swallowed where samples are loaded

## Bad

```python
from decoding import decode
from torch.utils.data import Dataset

class Images(Dataset):
    def __getitem__(self, index):
        try:
            return decode(self.paths[index])
        except Exception:
            return self[index + 1]
```

## Good

```python
from decoding import decode
from holdfast import DataLoader, Skip
from torch.utils.data import Dataset

class Images(Dataset):
    def __getitem__(self, index):
        return decode(self.paths[index])

loader = DataLoader(Images(), num_workers=4, on_error=Skip(limit=0.01))
print(loader.faults)        # which samples, and why
```

## Why

A rotten file, a disk that is gone and a mistake in the code look the same: nothing. Part of the data is trained on
twice, or not at all, and nobody is told. With stock torch, catch what reading raises, `(OSError, ValueError)`, and log
the path.

The rule looks at `except:`, `except Exception` and `except BaseException` that pass, continue or return. A handler
that raises, logs, prints, counts, or uses the exception is left alone, and so is one around clearing up.

## See

`holdfast explain F20`, `holdfast explain F22`; ruff S110, S112, BLE001.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..contexts import Role
from ..finding import Level, Remark
from ..handlers import catches_all, cleans_up, goes_on, swallows
from ..nones import none_samples
from ..script import Script

LEVEL = Level.WARNING


def check(script: Script) -> Iterator[Remark]:
    if not script.items:
        return
    told = {none.handler for none in none_samples(script)}  # HL304 has more to say of those
    for handler in script.nodes(ast.ExceptHandler):
        attempt = script.parent(handler)
        if handler in told or not catches_all(handler) or not isinstance(attempt, ast.Try) or cleans_up(attempt):
            continue
        item = script.item_of(handler)
        if item is not None and goes_on(handler) and swallows(handler):
            of_task = item.role is Role.TASK
            yield Remark(
                handler,
                f"every exception is swallowed in {item.via}: rotten data and mistakes in the code look like nothing",
                "let it raise, and holdfast.Pool(..., retries=1)"
                if of_task
                else 'let it raise, and holdfast.DataLoader(..., on_error="skip"), which keeps a ledger',
            )
