"""# HL406 an exception that loses its type on the way

## Bad

```python
from torch.utils.data import Dataset

class BadRecord(Exception):
    def __init__(self, path, reason):
        super().__init__(f"{path}: {reason}")
        self.path = path

class Records(Dataset):
    def __getitem__(self, index):
        raise BadRecord(self.paths[index], "too short")
```

## Good

```python
from torch.utils.data import Dataset

class BadRecord(Exception):
    def __init__(self, message, path=None):
        super().__init__(message)
        self.path = path

class Records(Dataset):
    def __getitem__(self, index):
        raise BadRecord("too short", path=self.paths[index])
```

## Why

torch makes the exception anew in the trainer, as `BadRecord(text)`. One that cannot be made of a single text arrives
as a plain `RuntimeError`: `except BadRecord` in the trainer is never reached, and its attributes are gone.
`holdfast.DataLoader` delivers the original, with attributes and traceback, so there the rule is silent.

## See

`holdfast explain F25`; pytorch#30147, pytorch#34130, pytorch#140911.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..batches import runs_in_workers
from ..datasets import methods_of
from ..finding import Level, Remark
from ..script import Script

LEVEL = Level.INFO


def check(script: Script) -> Iterator[Remark]:
    if not script.items or (script.loaders and all(loader.is_ours for loader in script.loaders)):
        return
    for node in script.nodes(ast.Raise):
        item = script.item_of(node)
        if item is None or not isinstance(node.exc, ast.Call) or not runs_in_workers(script, item):
            continue
        made = script.class_named(node.exc.func)
        if made is not None and item.role.of_loader and not _takes_a_text(made):
            yield Remark(
                node,
                f"{made.name} cannot be made of a text alone: what {item.name} raises arrives as RuntimeError",
                f"give all arguments of {made.name}.__init__ but the first a default; or holdfast.DataLoader",
            )


def _takes_a_text(made: ast.ClassDef) -> bool:
    init = methods_of(made).get("__init__")
    if init is None:
        return True
    positional = [*init.args.posonlyargs, *init.args.args][1:]
    needed = len(positional) - len(init.args.defaults)
    named = any(default is None for default in init.args.kw_defaults)
    return needed <= 1 and not named and bool(positional or init.args.vararg)
