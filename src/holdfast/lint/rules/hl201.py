"""# HL201 all workers have a copy of one random generator

## Bad

```python
import numpy as np
from torch.utils.data import Dataset

class Images(Dataset):
    def __init__(self):
        self.rng = np.random.default_rng(0)

    def __getitem__(self, index):
        return self.images[index] + self.rng.normal()
```

## Good

```python
import numpy as np
from torch.utils.data import Dataset

class Images(Dataset):
    def __init__(self, seed):
        self.seed, self.epoch = seed, 0

    def __getitem__(self, index):
        rng = np.random.default_rng([self.seed, self.epoch, index])
        return self.images[index] + rng.normal()
```

## Why

Each worker gets the generator in the state it had in the trainer, and so draws the same numbers as every other worker;
new workers, each epoch, draw them again. Loaders seed the global generators of `random`, torch and (torch from 1.9 on)
numpy in each worker, but know nothing of one that the data set keeps.

## See

`holdfast explain F38`; pytorch#5059, pytorch#41329, wolny/pytorch-3dunet#32.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..attributes import Made, made_in_init
from ..bindings import dotted
from ..contexts import Role
from ..finding import Level, Remark
from ..script import Script
from ..seeding import GENERATORS

LEVEL = Level.WARNING

_FIX = "at use: rng = np.random.default_rng([self.seed, self.epoch, index])"
_DRAWS = {Role.SAMPLE, Role.TRANSFORM, Role.COLLATE}


def check(script: Script) -> Iterator[Remark]:
    for made in made_in_init(script, *GENERATORS):
        user = _drawn_from(script, made)
        if user and not _made_anew(script, made):
            copies = f"{made.attribute} of {made.dataset.name} is copied to every worker"
            yield Remark(made.call, f"{copies}: {user} draws the same numbers in all", _FIX)
    for call in script.calls_to(*GENERATORS):
        yield from _of_module(script, call)


def _drawn_from(script: Script, made: Made) -> str:
    """The item function of this data set that uses the attribute."""
    for node in _mentions(script, made):
        item = script.item_of(node)
        if item is not None and item.role in _DRAWS and isinstance(node.ctx, ast.Load):
            return item.name
    return ""


def _made_anew(script: Script, made: Made) -> bool:
    """Whether it is set or seeded outside of the constructor too: in ``set_epoch``, or for each sample."""
    within = script.method_of(made.call)
    return any(_changes(script, node) and script.method_of(node) is not within for node in _mentions(script, made))


def _mentions(script: Script, made: Made) -> list[ast.Attribute]:
    named = [node for node in script.nodes(ast.Attribute) if dotted(node) == made.attribute]
    return [node for node in named if script.class_of(node) is made.dataset.node]


def _changes(script: Script, node: ast.Attribute) -> bool:
    around = script.parent(node)
    seeded = isinstance(around, ast.Attribute) and around.attr in {"manual_seed", "seed", "set_state", "setstate"}
    return seeded or isinstance(node.ctx, ast.Store)


def _of_module(script: Script, call: ast.Call) -> Iterator[Remark]:
    assign = script.parent(call)
    if not isinstance(assign, ast.Assign) or assign not in script.tree.body or not script.may_start_workers:
        return
    names = {target.id for target in assign.targets if isinstance(target, ast.Name)}
    for node in script.nodes(ast.Name):
        if node.id in names and isinstance(node.ctx, ast.Load):
            item = script.item_of(node)
            if item is not None and item.role in _DRAWS and script.resolve(node):
                copies = f"{node.id} of this module is copied to every worker"
                yield Remark(call, f"{copies}: {item.name} draws the same numbers in all", _FIX)
                return
