"""# HL602 batches are kept from step to step

## Bad

```python
import torch
from torch.utils.data import DataLoader

def labels_of(dataset):
    kept = []
    for images, labels in DataLoader(dataset, num_workers=4):
        kept.append(labels)
    return torch.cat(kept)
```

## Good

```python
import torch
from torch.utils.data import DataLoader

def labels_of(dataset):
    kept = []
    for images, labels in DataLoader(dataset, num_workers=4):
        kept.append(labels.clone())
    return torch.cat(kept)
```

## Why

A tensor from a worker is a view of shared memory, and holds a file descriptor for as long as it lives: `Too many open
files`, `received 0 items of ancdata`, `unable to mmap ... Cannot allocate memory`. One row that is kept keeps the
whole batch. A copy lies in the trainer's own memory.

holdfast keeps no descriptor for a batch, so there the rule is silent; the memory stays taken there too.

## See

`holdfast explain F33`; pytorch#973, pytorch#65198.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..batches import BatchLoop, batch_loops, starts_torch_workers
from ..bindings import dotted
from ..finding import Level, Remark
from ..loaders import standing_for
from ..script import Script

LEVEL = Level.INFO  # nearly every evaluation loop keeps something, and few come to the limit

_VIEWS = {"detach", "numpy", "view", "reshape", "squeeze", "unsqueeze", "flatten", "contiguous"}


def check(script: Script) -> Iterator[Remark]:
    yield from _listed(script)
    appended = script.calls_of_method("append")
    if not appended:
        return
    for loop in batch_loops(script):
        if not starts_torch_workers(script, loop.source) or _ends_early(loop):
            continue
        changed = _set_in(loop)
        for call in appended:
            kept = _kept(call, loop.names - changed)
            if kept and script.in_loop(call) is loop.node and _outlives(call, changed):
                gathered = ast.unparse(call.func.value) if isinstance(call.func, ast.Attribute) else ""
                what = "every batch" if {kept} == loop.names else f"{kept} of every batch"
                yield Remark(
                    call,
                    f"{gathered} keeps {what}: each holds a descriptor and its shared memory",
                    f"{gathered}.append({kept}.clone()), or from holdfast import DataLoader",
                )


def _listed(script: Script) -> Iterator[Remark]:
    """``list(loader)``, of a loader that this file makes."""
    for call in script.calls_to("list", "tuple") if script.loaders else ():
        loader = standing_for(script, call.args[0]) if call.args else None
        dropped = isinstance(script.parent(call), ast.Expr)
        if loader is not None and loader.has_workers and not loader.is_ours and not dropped:
            yield Remark(
                call,
                "a list of all batches: each of their tensors holds a descriptor and its shared memory",
                "[batch.clone() for batch in loader], or from holdfast import DataLoader",
            )


def _kept(call: ast.Call, names: frozenset[str]) -> str:
    """``labels``, ``labels.numpy()`` or ``batch["labels"]`` of what the loop takes from the loader."""
    node = call.args[0] if call.args else None
    written = ast.unparse(node) if node is not None else ""
    while node is not None:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _VIEWS:
            node = node.func.value
        elif isinstance(node, ast.Subscript):
            node = node.value
        else:
            break
    return written if isinstance(node, ast.Name) and node.id in names else ""


def _set_in(loop: BatchLoop) -> set[str]:
    """Names that the body sets: ``labels = labels.to(device)``, ``rows = []``."""
    nodes = [node for statement in loop.node.body for node in ast.walk(statement)]
    return {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}


def _outlives(call: ast.Call, changed: set[str]) -> bool:
    held = dotted(call.func).partition(".")[0]
    return bool(held) and held not in changed


def _ends_early(loop: BatchLoop) -> bool:
    """A look at the first few."""
    return any(isinstance(node, ast.Break) for statement in loop.node.body for node in ast.walk(statement))
