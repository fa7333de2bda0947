"""# HL606 every rank unpickles the whole model

## Bad

```python
import torch
import torch.multiprocessing as mp

def predict(rank, path):
    model = torch.load(path)
    model.eval()

if __name__ == "__main__":
    mp.spawn(predict, args=("model.pt",), nprocs=4)
```

## Good

```python
import torch
from holdfast import share, spawn

def predict(rank, model):
    model.eval()

if __name__ == "__main__":
    model = Net()
    model.load_state_dict(torch.load("weights.pt"))
    spawn(predict, args=(share(model),), nprocs=4)
```

## Why

Since torch 2.6 `torch.load` reads weights only, and refuses a pickled module: `Weights only load failed`, in every
rank. Where it is allowed, each rank has a copy of all weights. `share` puts them into memory that all ranks see.

## See

`holdfast explain F65`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..bindings import Function, keywords
from ..contexts import Role, functions_behind
from ..finding import Level, Remark
from ..script import Script

LEVEL = Level.WARNING

_SPAWNS = ("multiprocessing.spawn", "torch.multiprocessing.spawn.spawn", "holdfast.spawn")
_PROCESSES = ("multiprocessing.Process", "multiprocessing.context.Process")
_OF_A_MODULE = {"eval", "train", "to", "cuda", "half", "parameters", "state_dict", "forward", "share_memory"}


def check(script: Script) -> Iterator[Remark]:
    loads = script.calls_to("torch.load")
    if not loads:
        return
    ranks = {function: function.name for function in _ranks(script) if isinstance(function, ast.FunctionDef)}
    for call in loads:
        function = script.function_of(call)
        if function in ranks and "weights_only" not in keywords(call) and _is_a_module(script, call, function):
            yield Remark(
                call,
                f"{ranks[function]} unpickles a whole model in every process that runs it: refused since torch 2.6, "
                "and a copy for each",
                "model = holdfast.share(model)  # before they start, and give it to them as an argument",
            )


def _ranks(script: Script) -> Iterator[Function]:
    given: list[ast.expr | None] = []
    for call in script.calls_to(*_SPAWNS):
        given.append(call.args[0] if call.args else keywords(call).get("fn"))
    for call in script.calls_to(*_PROCESSES):
        given.append(keywords(call).get("target"))
    for node in given:
        yield from (function for function, _ in functions_behind(script, node))
    yield from (item.node for item in script.items if item.role is Role.TASK)


def _is_a_module(script: Script, call: ast.Call, function: ast.AST) -> bool:
    """By what is done with it: ``model.eval()``, ``model(batch)``. A state dict, or a checkpoint, is neither."""
    above = script.parent(call)
    if isinstance(above, ast.Attribute):
        return above.attr in _OF_A_MODULE - {"state_dict"}
    if not isinstance(above, ast.Assign) or not isinstance(above.targets[0], ast.Name):
        return False
    name = above.targets[0].id
    called = (node.func for node in ast.walk(function) if isinstance(node, ast.Call))
    return any(
        (isinstance(one, ast.Name) and one.id == name)
        or (isinstance(one, ast.Attribute) and one.attr in _OF_A_MODULE and getattr(one.value, "id", "") == name)
        for one in called
    )
