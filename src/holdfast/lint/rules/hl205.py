"""# HL205 samples are numbered in an order that the file system chose

## Bad

```python
import os
from torch.utils.data import Dataset

class Images(Dataset):
    def __init__(self, folder):
        self.paths = os.listdir(folder)

    def __getitem__(self, index):
        return self.paths[index]
```

## Good

```python
import os
from torch.utils.data import Dataset

class Images(Dataset):
    def __init__(self, folder):
        self.paths = sorted(os.listdir(folder))

    def __getitem__(self, index):
        return self.paths[index]
```

## Why

The order of a listing differs between file systems and hosts, that of a set of strings between processes. Sample 7 is
then another file on another rank or in the next run: a sharded epoch has some twice and others never, a seed reproduces
nothing, and a resumed run goes on with other data. `holdfast.manifest(folder)` is one sorted list for all ranks.

## See

`holdfast explain F47`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..bindings import dotted
from ..finding import Level, Remark
from ..script import Script

LEVEL = Level.WARNING

_LISTINGS = ("os.listdir", "os.scandir", "glob.glob", "glob.iglob")
_TREE = "os.walk"
_METHODS = ("iterdir", "glob", "rglob")
# What may be given a listing, and does not depend on its order.
_SORTS = {"sorted", "natsorted", "sort"}
_CARELESS = {
    *_SORTS,
    *("len", "set", "frozenset", "any", "all", "sum", "max", "min", "dict", "Counter"),
    *("next", "bool", "isdisjoint", "issubset", "unique", "isin"),
}
_YIELDED = "yield"


def check(script: Script) -> Iterator[Remark]:
    for call, what in _unordered(script):
        keeper = _keeper(script, call, set())
        if keeper:
            yield Remark(
                call,
                f"{keeper} has its samples in the order of {what}, which differs between hosts and runs",
                "sort the list when all are found" if what == _TREE else f"sorted({ast.unparse(call)})",
            )


def _unordered(script: Script) -> Iterator[tuple[ast.Call, str]]:
    for call in script.calls_to(*_LISTINGS):
        yield call, dotted(call.func)
    for call in script.calls_to(_TREE):
        around = next(one for one in script.above(call) if isinstance(one, ast.stmt))
        if not any(isinstance(one, ast.Call) and _last(one.func) in _SORTS for one in ast.walk(around)):
            yield call, _TREE
    for call in script.calls_of_method(*_METHODS):
        if isinstance(call.func, ast.Attribute) and script.resolve(call.func) not in _LISTINGS:
            yield call, f".{call.func.attr}()"
    for call in script.calls_to("list", "tuple", "enumerate"):
        argument = script.value_of(call.args[0]) if call.args else None
        made = isinstance(argument, ast.Call) and script.resolve(argument.func) in {"set", "frozenset"}
        if made or isinstance(argument, ast.Set | ast.SetComp):
            yield call, "a set"


def _keeper(script: Script, node: ast.AST, seen: set[ast.AST]) -> str:
    """The data set that keeps these things in the order in which they come; empty if there is none. Follows them
    outwards from call to call, and from name to name."""
    if node in seen:
        return ""
    seen.add(node)
    inner = node
    for one in script.above(node):
        if isinstance(one, ast.Call):
            if _last(one.func) in _CARELESS:
                return ""
            if _last(one.func).endswith("Dataset") or script.class_named(one.func) in _classes(script):
                return _last(one.func)
        if isinstance(one, ast.Compare | ast.Subscript | ast.SetComp | ast.DictComp):
            return ""
        if isinstance(one, ast.stmt):
            kept = (_kept_as(script, name, one, seen) for name in _collectors(one, inner))
            return next((keeper for keeper in kept if keeper), "")
        inner = one
    return ""


def _collectors(statement: ast.stmt, inner: ast.AST) -> Iterator[str]:
    """Names that the statement gives these things to: by assignment, or one by one."""
    if isinstance(statement, ast.Assign):
        yield from map(dotted, statement.targets)
    elif isinstance(statement, ast.AnnAssign | ast.AugAssign):
        yield dotted(statement.target)
    elif isinstance(statement, ast.Expr) or (isinstance(statement, ast.For) and inner is statement.iter):
        for node in ast.walk(statement):
            if isinstance(node, ast.Yield | ast.YieldFrom):
                yield _YIELDED
            elif isinstance(node, ast.Call) and _last(node.func) in {"append", "extend"}:
                yield dotted(node.func).rpartition(".")[0]


def _kept_as(script: Script, name: str, statement: ast.stmt, seen: set[ast.AST]) -> str:
    if not name or _is_sorted(script, name):
        return ""
    dataset = script.dataset_of(statement)
    if dataset is not None and name.startswith("self."):
        return dataset.name
    if name == _YIELDED:
        item = script.item_of(statement)
        return dataset.name if dataset is not None and item is not None else ""
    scope = script.function_of(statement)
    uses = [one for one in script.nodes(ast.Name) if one.id == name and isinstance(one.ctx, ast.Load)]
    kept = (_keeper(script, one, seen) for one in uses if script.function_of(one) is scope)
    return next((keeper for keeper in kept if keeper), "")


def _is_sorted(script: Script, name: str) -> bool:
    """Whether something of this name is sorted anywhere in the file."""
    if any(dotted(call.func) == f"{name}.sort" for call in script.calls_of_method("sort")):
        return True
    given = [call.args[0] for call in script.calls_ending_in("sorted", "natsorted") if call.args]
    return any(dotted(one) == name for argument in given for one in ast.walk(argument))


def _classes(script: Script) -> list[ast.ClassDef]:
    return [dataset.node for dataset in script.datasets]


def _last(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
