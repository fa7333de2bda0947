"""# HL605 shared memory that nobody unlinks

## Bad

```python
from multiprocessing import shared_memory

def publish(array):
    memory = shared_memory.SharedMemory(create=True, size=array.nbytes)
    fill(memory, array)
    train(memory.name)
    memory.close()
    memory.unlink()
```

## Good

```python
from multiprocessing import shared_memory

def publish(array):
    memory = shared_memory.SharedMemory(create=True, size=array.nbytes)
    try:
        fill(memory, array)
        train(memory.name)
    finally:
        memory.close()
        memory.unlink()
```

## Why

The memory has a name in `/dev/shm` and stays there until somebody unlinks it: an exception in between, and it is gone
for the machine until it is restarted. In a container whose `/dev/shm` has 64 MB the next run ends with a bus error.

`holdfast.share(array)` has no name: nothing to unlink, and nothing left when every process is killed.

## See

`holdfast explain F64`, `holdfast explain F32`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from ..bindings import keywords
from ..finding import Level, Remark
from ..script import Script

LEVEL = Level.WARNING

_MAKERS = ("multiprocessing.shared_memory.SharedMemory", "torch.multiprocessing.shared_memory.SharedMemory")
_ENDINGS = re.compile(r"exit|__del__|close|unlink|clean|shutdown|stop|release|destroy|free|tear_?down", re.IGNORECASE)


def check(script: Script) -> Iterator[Remark]:
    for call in script.calls_to(*_MAKERS):
        if _creates(call) and not _is_handed_on(script, call) and not _is_unlinked(script):
            yield Remark(
                call,
                "this shared memory stays in /dev/shm when an exception comes before its unlink()",
                "try: ... finally: memory.unlink(); or holdfast.share(array), which has no name to unlink",
            )


def _creates(call: ast.Call) -> bool:
    given = keywords(call).get("create", call.args[1] if len(call.args) > 1 else None)
    return isinstance(given, ast.Constant) and given.value is True


def _is_handed_on(script: Script, call: ast.Call) -> bool:
    """Whether the function gives it to its caller, who then owns it."""
    around = script.parent(call)
    if isinstance(around, ast.Return | ast.Yield):
        return True
    function = script.function_of(call)
    names = {one.id for one in around.targets if isinstance(one, ast.Name)} if isinstance(around, ast.Assign) else set()
    for node in script.nodes(ast.Return, ast.Yield):
        if script.function_of(node) is function and node.value is not None:
            given = node.value.elts if isinstance(node.value, ast.Tuple) else [node.value]
            if function is not None and any(isinstance(one, ast.Name) and one.id in names for one in given):
                return True
    return False


def _is_unlinked(script: Script) -> bool:
    """Somewhere in the file, in a place that is reached whatever happens; or the method is given to somebody who will
    call it: ``atexit.register(memory.unlink)``."""
    for node in script.nodes(ast.Attribute):
        if node.attr == "unlink":
            around = script.parent(node)
            called = isinstance(around, ast.Call) and around.func is node
            if not called or _is_certain(script, node):
                return True
    return False


def _is_certain(script: Script, node: ast.AST) -> bool:
    inner = node
    for one in script.above(node):
        if isinstance(one, ast.Try) and inner in one.finalbody:
            return True
        if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef):
            return _ENDINGS.search(one.name) is not None  # whoever made it is to call that
        inner = one
    return False
