"""# HL404 a change that persistent workers never see

## Bad

```python
from torch.utils.data import DataLoader

def train(dataset):
    loader = DataLoader(dataset, num_workers=4, persistent_workers=True)
    for epoch in range(90):
        dataset.epoch = epoch
        for batch in loader:
            step(batch)
```

## Good

```python
from holdfast import DataLoader

def train(dataset):
    loader = DataLoader(dataset, num_workers=4, persistent_workers=True)
    for epoch in range(90):
        dataset.epoch = epoch          # reaches workers with the next epoch
        for batch in loader:
            step(batch)
```

## Why

Persistent workers keep the copy of the data set that they were started with. Curricula, crop sizes, `set_epoch` of a
data set: changed in the trainer, and without effect from the second epoch on. With holdfast plain attributes and
`set_epoch` travel with the work, and `loader.broadcast(name=value)` carries anything else. With stock torch, keep the
value in shared memory (`self.epoch = torch.tensor(0).share_memory_()`, then `fill_`), or do without
`persistent_workers`.

A sampler lives in the trainer: `sampler.set_epoch` is right.

## See

`holdfast explain F41`; pytorch#97326, huggingface/datasets#6673.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..bindings import dotted
from ..datasets import methods_of
from ..finding import Level, Remark
from ..loaders import Loader
from ..script import Script
from ..tree import position

LEVEL = Level.WARNING
_PARTS = 4  # of parts; names may go in circles


def check(script: Script) -> Iterator[Remark]:
    for loader in script.loaders:
        if loader.is_ours or not loader.has_workers or loader.literal("persistent_workers") is not True:
            continue
        names = {*_names_of_dataset(script, loader)}
        for node, changed, what in _changes(script) if names else ():
            if changed in names and _comes_later(script, loader, node, changed) and not _shares(script, loader, what):
                yield Remark(
                    node,
                    f"{changed}.{what} changes the trainer's copy: persistent workers keep the one they began with",
                    "from holdfast import DataLoader, which carries it to workers; "
                    "or a tensor with share_memory_() in the data set",
                )


def _names_of_dataset(script: Script, loader: Loader) -> Iterator[str]:
    """``dataset``, ``self.dataset``, and ``loader.dataset`` after what the loader itself is called."""
    yield from filter(None, map(dotted, _and_wholes(script, loader.argument("dataset"))))
    around = script.parent(loader.call)
    if isinstance(around, ast.Assign):
        yield from (f"{name}.dataset" for name in map(dotted, around.targets) if name)


def _and_wholes(script: Script, dataset: ast.expr | None) -> Iterator[ast.expr]:
    """And what it is a part of: a ``Subset`` shares its attributes with nobody, but loads from that."""
    for _ in range(_PARTS):
        if dataset is None:
            return
        yield dataset
        value = script.value_of(dataset)
        part = isinstance(value, ast.Call) and script.resolve(value.func) == "torch.utils.data.Subset"
        dataset = value.args[0] if part and isinstance(value, ast.Call) and value.args else None


def _changes(script: Script) -> Iterator[tuple[ast.AST, str, str]]:
    """``dataset.epoch = 3`` and ``dataset.set_epoch(3)``: the node, ``dataset``, and what is set."""
    for node in script.nodes(ast.Assign, ast.AugAssign):
        for name in map(dotted, node.targets if isinstance(node, ast.Assign) else [node.target]):
            of, _, attribute = name.rpartition(".")
            yield node, of, attribute
    for call in script.nodes(ast.Call):
        of, _, method = dotted(call.func).rpartition(".")
        if of and method.startswith("set_"):
            yield call, of, method


def _comes_later(script: Script, loader: Loader, node: ast.AST, changed: str) -> bool:
    """Whether workers may have started: in a loop below the loader, or, of one that ``self`` keeps, in a method that is
    called for each epoch. Before the first batch a change still reaches them."""
    here, there = script.function_of(node), script.function_of(loader.call)
    if script.class_of(node) is not script.class_of(loader.call):
        return False
    if here is there or there is None:
        around = script.in_loop(node)
        remade = around is not None and script.in_loop(loader.call) is around
        return around is not None and not remade and position(node) > position(loader.call)
    return "epoch" in getattr(here, "name", "") and changed.startswith("self.")


def _shares(script: Script, loader: Loader, method: str) -> bool:
    """Whether the method, if this file has it, writes to shared memory."""
    value = script.value_of(loader.argument("dataset"))
    made = script.class_named(value.func) if isinstance(value, ast.Call) else None
    body = ast.unparse(methods_of(made)[method]) if made and method in methods_of(made) else ""
    return any(word in body for word in (".fill_(", ".value =", ".copy_(", "[0] =", "[:] ="))
