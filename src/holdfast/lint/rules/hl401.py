"""# HL401 a global that is changed in a worker

## Bad

```python
from torch.utils.data import Dataset

missing = 0

class Images(Dataset):
    def __getitem__(self, index):
        global missing
        missing += 1
        return index
```

## Good

```python
import holdfast
from torch.utils.data import Dataset

missing = holdfast.Counter()

class Images(Dataset):
    def __getitem__(self, index):
        missing.add(1)         # one number for all workers and the trainer
        return index
```

## Why

Each worker has a copy of its own of every module: the trainer goes on with the value that it had, 0, and so does the
next epoch's worker. With stock torch, return the number with the sample, or use `multiprocessing.Value` with its lock.

Filling a global on first use (`if reader is None: reader = ...`) is the right way to have one per worker, and so is a
`worker_init_fn`: the rule is silent there. Lists and dicts of the module count when the trainer's code reads them.

## See

`holdfast explain F44`, `holdfast explain F45`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..batches import runs_in_workers
from ..bindings import Function
from ..bodies import is_set_once, own
from ..contexts import ItemFunction, Role
from ..finding import Level, Remark
from ..script import Script

LEVEL = Level.WARNING

_SHARED = ("holdfast.Counter", "holdfast.share", "multiprocessing.Value", "multiprocessing.Array")
_GATHERING = ("append", "extend", "add", "update")
_CONTAINERS = {"list", "dict", "set", "defaultdict", "Counter", "deque", "OrderedDict"}


def check(script: Script) -> Iterator[Remark]:
    for statement in script.nodes(ast.Global):
        item = script.item_of(statement)
        function = script.function_of(statement)
        if item is not None and function is not None and _is_on_its_own(script, item):
            for name in statement.names:
                yield from _written(script, function, name, item)
    if script.items:
        yield from _gathered(script)


def _written(script: Script, function: Function, name: str, item: ItemFunction) -> Iterator[Remark]:
    if any(_is_shared(script, value) for value in script.values.all(None, name)):
        return
    written: list[ast.AugAssign | ast.Assign] = [*own(function, ast.AugAssign), *own(function, ast.Assign)]
    for node in written:
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        if not any(isinstance(target, ast.Name) and target.id == name for target in targets):
            continue
        if isinstance(node, ast.AugAssign) or not is_set_once(script, node, name):
            yield Remark(
                node,
                f"the global {name} is set in {item.via}: each worker has its own, and the trainer's stays as it is",
                _fix(name, counts=isinstance(node, ast.AugAssign)),
            )
            return


def _gathered(script: Script) -> Iterator[Remark]:
    """``RESULTS.append(x)`` and ``COUNTS[key] += 1``, of what the module made as a list, a set or a dict."""
    changes: list[tuple[ast.AST, ast.expr]] = []
    for call in script.calls_of_method(*_GATHERING):
        assert isinstance(call.func, ast.Attribute)
        changes.append((call, call.func.value))
    for node in script.nodes(ast.AugAssign):
        if isinstance(node.target, ast.Subscript):
            changes.append((node, node.target.value))
    for place, changed in changes:
        item = script.item_of(place)
        if item is None or not _is_on_its_own(script, item) or not isinstance(changed, ast.Name):
            continue
        if _is_of_module(script, changed) and _is_read(script, changed.id):
            yield Remark(
                place,
                f"the global {changed.id} is filled in {item.via}: each worker has its own, the trainer's stays",
                _fix(changed.id, counts=isinstance(place, ast.AugAssign)),
            )


def _is_on_its_own(script: Script, item: ItemFunction) -> bool:
    """In a worker, and for one item: a ``worker_init_fn`` sets globals for those that come after it."""
    return item.role is not Role.WORKER_INIT and runs_in_workers(script, item)


def _is_of_module(script: Script, name: ast.Name) -> bool:
    values = script.values.all(None, name.id)
    empty = isinstance(script.value_of(name), ast.List | ast.Dict | ast.Set | ast.Call)
    made = [value.func for value in values if isinstance(value, ast.Call)]
    gathers = all(script.resolve(one).rpartition(".")[2] in _CONTAINERS for one in made)
    return len(values) == 1 and empty and gathers and script.resolve(name) == f".{name.id}"


def _is_read(script: Script, name: str) -> bool:
    """Whether code that is not a worker's uses it: else it is what a worker keeps for itself."""
    uses = [node for node in script.nodes(ast.Name) if node.id == name and isinstance(node.ctx, ast.Load)]
    return any(script.item_of(node) is None for node in uses)


def _is_shared(script: Script, value: ast.expr | None) -> bool:
    return isinstance(value, ast.Call) and script.resolve(value.func) in _SHARED


def _fix(name: str, counts: bool) -> str:
    if counts:
        return f"{name} = holdfast.Counter(), and {name}.add(1) in the worker; {name}.value in the trainer"
    return f"return it with the result; holdfast.share({name}) for an array that all processes write to"
