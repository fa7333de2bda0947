"""# HL115 a global is filled in later, and read in a worker

## Bad

```python
from torch.utils.data import Dataset

TABLE = None

def load():
    global TABLE
    TABLE = read_table("table.csv")

class Rows(Dataset):
    def __getitem__(self, index):
        return TABLE[index]
```

## Good

```python
from torch.utils.data import Dataset

class Rows(Dataset):
    def __init__(self, table):
        self.table = table

    def __getitem__(self, index):
        return self.table[index]
```

## Why

A worker that is not a fork of the trainer imports the module anew, and nobody fills the global in there: `'NoneType'
object is not subscriptable`, on Windows, macOS and, from Python 3.14, Linux. A fork has the value that it had when the
worker was started, and no later one. What is an attribute of the data set travels with it.

## See

`holdfast explain F45`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..bindings import parameters
from ..finding import Level, Remark
from ..script import Script

LEVEL = Level.WARNING


def check(script: Script) -> Iterator[Remark]:
    for name, filled_by in _filled_later(script).items():
        read = _read_in_a_worker(script, name)
        if read is not None:
            item = script.item_of(read)
            assert item is not None
            yield Remark(
                read,
                f"{item.via} reads the global {name}, which {filled_by} fills in: a worker that is no fork finds it "
                "empty",
                f"self.{name.lower()} = {name}  # in __init__ of the data set, and read that",
            )


def _filled_later(script: Script) -> dict[str, str]:
    """Globals that are empty when the module is imported, and the function of the trainer's that gives them a value."""
    found: dict[str, str] = {}
    for node in script.nodes(ast.Global):
        function = script.function_of(node)
        if not isinstance(function, ast.FunctionDef) or script.item_of(node) is not None:
            continue
        if not _runs_at_import(script, function):
            for name in node.names:
                if _is_empty(script, name) and _assigns(function, name):
                    found.setdefault(name, function.name)
    return found


def _is_empty(script: Script, name: str) -> bool:
    values = script.values.all(None, name)
    return bool(values) and all(_means_nothing(value) for value in values)


def _means_nothing(value: ast.expr | None) -> bool:
    if isinstance(value, ast.Constant):
        return value.value is None
    return isinstance(value, ast.List | ast.Dict) and not list(ast.iter_child_nodes(value))[1:]


def _assigns(function: ast.FunctionDef, name: str) -> bool:
    stores = (node for node in ast.walk(function) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store))
    return any(node.id == name for node in stores)


def _runs_at_import(script: Script, function: ast.FunctionDef) -> bool:
    """Then every process fills it in for itself."""
    return any(script.at_import(call) for call in script.calls_to(f".{function.name}"))


def _read_in_a_worker(script: Script, name: str) -> ast.Name | None:
    """The first place, unless a function that runs in workers fills it in as well."""
    found = None
    for item in script.items:
        for node in ast.walk(item.node):
            if isinstance(node, ast.Global) and name in node.names:
                return None
            if isinstance(node, ast.Name) and node.id == name and name not in parameters(item.node):
                if not isinstance(node.ctx, ast.Load) or script.values.bound(item.node, name):
                    return None
                found = found or node
    return found
