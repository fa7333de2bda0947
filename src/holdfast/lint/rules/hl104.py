"""# HL104 processes are started when the file is imported

## Bad

```python
from torch.utils.data import DataLoader

loader = DataLoader(range(100), num_workers=4)
for batch in loader:
    print(batch)
```

## Good

```python
from torch.utils.data import DataLoader

def main():
    loader = DataLoader(range(100), num_workers=4)
    for batch in loader:
        print(batch)

if __name__ == "__main__":
    main()
```

## Why

Under spawn and forkserver each new process imports the script again. Without the guard it starts processes in turn:
*An attempt has been made to start a new process before the current process has finished its bootstrapping phase*, or
no end of processes. `holdfast.DataLoader` and `holdfast.Pool` need no guard, so there the rule is silent.

## See

`holdfast explain F04`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..contexts import is_context
from ..finding import Level, Remark
from ..loaders import iterations
from ..script import Script

LEVEL = Level.ERROR

_STARTERS = ("multiprocessing.Pool", "multiprocessing.spawn", "concurrent.futures.ProcessPoolExecutor")
_FIX = 'def main(): ...; if __name__ == "__main__": main()'


def check(script: Script) -> Iterator[Remark]:
    if script.is_notebook:  # workers do not import a notebook
        return
    for node, what in _starts(script):
        if script.at_import(node):
            yield Remark(node, f"{what} when this file is imported, which each spawned process does too", _FIX)
            continue
        for call in _calls_at_import(script, script.function_of(node)):
            called = ast.unparse(call.func)
            yield Remark(call, f"{called}() runs when this file is imported, and {what} (line {node.lineno})", _FIX)


def _starts(script: Script) -> Iterator[tuple[ast.expr, str]]:
    """Expressions that start processes, and what they do."""
    for node, loader in iterations(script):
        if loader.has_workers and not loader.is_ours and not loader.forks:
            yield node, "a loader starts its workers"
    for call in script.calls_to(*_STARTERS):
        yield call, f"{ast.unparse(call.func)} starts processes"
    for call in script.calls_of_method("Pool", "start"):
        if isinstance(call.func, ast.Attribute) and _is_of_processes(script, call.func):
            yield call, f"{ast.unparse(call.func)}() starts processes"


def _is_of_processes(script: Script, called: ast.Attribute) -> bool:
    if called.attr == "Pool":
        return is_context(script, called.value)
    value = script.value_of(called.value)
    return isinstance(value, ast.Call) and script.resolve(value.func) == "multiprocessing.Process"


def _calls_at_import(script: Script, function: ast.AST | None) -> Iterator[ast.Call]:
    """Calls of that function outside of everything, such as a bare ``main()``."""
    if isinstance(function, ast.FunctionDef) and script.function_of(function) is None:
        for call in script.calls_to(f".{function.name}"):
            if script.at_import(call):
                yield call
