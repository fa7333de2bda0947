"""# HL112 a call that does not exist

## Bad

```python
import multiprocessing

if __name__ == "__main__":
    with multiprocessing.Pool(4, mp_context="spawn") as pool:
        pool.map(print, range(4))
```

## Good

```python
import multiprocessing

if __name__ == "__main__":
    with multiprocessing.get_context("spawn").Pool(4) as pool:
        pool.map(print, range(4))
```

## Why

`multiprocessing.Pool` takes no context, `ProcessPoolExecutor` does: `TypeError: got an unexpected keyword argument`.
`multiprocessing.shared_memory` is a module of its own: until something imports it, `AttributeError`; and
`torch.multiprocessing` never has it.

## See

`holdfast explain F09`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..bindings import dotted, keywords
from ..contexts import is_context
from ..finding import Level, Remark
from ..script import Script

LEVEL = Level.ERROR

_POOL = ("processes", "initializer", "initargs", "maxtasksperchild", "context")
_KEYWORDS = {
    "multiprocessing.Pool": _POOL,
    "concurrent.futures.ProcessPoolExecutor": (
        *("max_workers", "mp_context", "initializer", "initargs", "max_tasks_per_child"),
    ),
    "multiprocessing.Process": ("group", "target", "name", "args", "kwargs", "daemon"),
    "multiprocessing.spawn": ("fn", "args", "nprocs", "join", "daemon", "start_method"),
    "torch.utils.data.DataLoader": (
        *("dataset", "batch_size", "shuffle", "sampler", "batch_sampler", "num_workers", "collate_fn", "pin_memory"),
        *("drop_last", "timeout", "worker_init_fn", "multiprocessing_context", "generator", "prefetch_factor"),
        *("persistent_workers", "pin_memory_device", "in_order"),
    ),
}
_INSTEAD = {
    "mp_context": 'multiprocessing.get_context("spawn").Pool(...)',
    "max_workers": "Pool(processes=...)",
    "num_workers": "Pool(processes=...)",
    "workers": "num_workers=...",
}
_MODULES = ("shared_memory", "managers", "sharedctypes", "dummy")


def check(script: Script) -> Iterator[Remark]:
    for name, valid in _KEYWORDS.items():
        for call in script.calls_to(name):
            yield from _unknown_keywords(call, valid)
    for call in script.calls_of_method("Pool"):
        if isinstance(call.func, ast.Attribute) and is_context(script, call.func.value):
            yield from _unknown_keywords(call, _POOL[:-1])
    yield from _modules(script)


def _unknown_keywords(call: ast.Call, valid: tuple[str, ...]) -> Iterator[Remark]:
    for keyword in keywords(call):
        if keyword not in valid:
            called = ast.unparse(call.func)
            fix = _INSTEAD.get(keyword, f"{called} takes {', '.join(valid)}")
            yield Remark(call, f"{called} has no argument {keyword}: TypeError", fix)


def _modules(script: Script) -> Iterator[Remark]:
    if "multiprocessing" not in script.text or not any(module in script.text for module in _MODULES):
        return
    imported = {name for node in script.imports.nodes for name in _imported(node)}
    for node in script.nodes(ast.Attribute):
        module = f"multiprocessing.{node.attr}"
        if node.attr in _MODULES and module not in imported and script.resolve(node) == module:
            yield Remark(
                node,
                f"{dotted(node)} is a module that nothing imports here: AttributeError",
                f"from multiprocessing import {node.attr}",
            )


def _imported(node: ast.Import | ast.ImportFrom) -> Iterator[str]:
    module = f"{node.module}." if isinstance(node, ast.ImportFrom) else ""
    for alias in node.names:
        yield f"{module}{alias.name}"
    yield module.rstrip(".")
