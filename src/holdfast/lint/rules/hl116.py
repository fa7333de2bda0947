"""# HL116 an `Array`, `Value`, `Lock` or `Queue` is sent to a pool as an argument

## Bad

```python
import multiprocessing as mp

def add(totals, index):
    totals[index] += 1

if __name__ == "__main__":
    totals = mp.Array("i", 4)
    with mp.Pool(2) as pool:
        pool.starmap(add, [(totals, 0), (totals, 1)])
```

## Good

```python
import numpy
from holdfast import Pool, lock_of, share

def add(totals, index):
    with lock_of(totals):
        totals[index] += 1

if __name__ == "__main__":
    totals = share(numpy.zeros(4, dtype="int32"))
    with Pool(2) as pool:
        pool.starmap(add, [(totals, 0), (totals, 1)])
```

## Why

Such an object can be inherited by a process when it is started, and not be pickled afterwards: `SynchronizedArray
objects should only be shared between processes through inheritance`. With Python's own pool, hand it over at the start
(`initializer=`, `initargs=`), or let a `Manager` keep it.

## See

`holdfast explain F62`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..contexts import POOL_METHODS, is_context, is_pool
from ..finding import Level, Remark
from ..script import Script

LEVEL = Level.ERROR

_ARRAYS = {"Array", "Value", "RawArray", "RawValue"}
_INHERITED = {*_ARRAYS, "Lock", "RLock", "Semaphore", "BoundedSemaphore", "Condition", "Event", "Barrier"}
_QUEUES = {"Queue", "SimpleQueue", "JoinableQueue"}


def check(script: Script) -> Iterator[Remark]:
    for call in script.calls_of_method(*POOL_METHODS):
        assert isinstance(call.func, ast.Attribute)
        if is_pool(script, call.func.value):
            yield from _remarks(script, call)


def _remarks(script: Script, call: ast.Call) -> Iterator[Remark]:
    told: set[str] = set()
    for name in _names(script, call):
        kind = _kind(script, name)
        if kind and name.id not in told:
            told.add(name.id)
            yield Remark(
                name,
                f"{name.id} is an mp.{kind}, which can be inherited by a process and not be sent to one: RuntimeError",
                f"{name.id} = holdfast.share(array), or Pool(initializer=..., initargs=({name.id},))"
                if kind in _ARRAYS
                else f"Pool(initializer=..., initargs=({name.id},)), or multiprocessing.Manager().{kind}()",
            )


def _names(script: Script, call: ast.Call) -> Iterator[ast.Name]:
    """In the arguments, and in a list of arguments that has a name of its own. Not what a function does inside."""
    for given in (*call.args, *(keyword.value for keyword in call.keywords)):
        parts = [given] if isinstance(given, ast.Name) and _kind(script, given) else [script.value_of(given) or given]
        for part in parts:
            yield from (node for node in _evaluated_here(part) if isinstance(node, ast.Name))


def _evaluated_here(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, ast.Lambda):
        return
    yield node
    for child in ast.iter_child_nodes(node):
        yield from _evaluated_here(child)


def _kind(script: Script, name: ast.Name) -> str:
    value = script.value_of(name)
    if not isinstance(value, ast.Call):
        return ""
    module, _, last = script.resolve(value.func).rpartition(".")
    of_context = isinstance(value.func, ast.Attribute) and is_context(script, value.func.value)
    if of_context and isinstance(value.func, ast.Attribute):
        last = value.func.attr
    inherited = last in _INHERITED | _QUEUES and (of_context or module in {"multiprocessing", "multiprocessing.queues"})
    return last if inherited else ""
