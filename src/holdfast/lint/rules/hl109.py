"""# HL109 the start method is set when the file is imported, or twice

## Bad

```python
import multiprocessing

multiprocessing.set_start_method("spawn")
```

## Good

```python
import multiprocessing
from torch.utils.data import DataLoader

context = multiprocessing.get_context("spawn")   # for this loader or pool, and nobody else

def loader(dataset):
    return DataLoader(dataset, num_workers=4, multiprocessing_context=context)
```

## Why

It can be set once in a process: the second call raises *context has already been set*. A spawned process imports the
script, and so makes the second call; a library that sets it decides for the whole program. With `force=True` there is
no error, and two libraries that disagree.

## See

`holdfast explain F07`; pytorch#1494.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..bindings import keywords
from ..finding import Level, Remark
from ..script import Script

LEVEL = Level.WARNING

_FIX = 'context = multiprocessing.get_context("spawn"), given to the loader or pool; or call it under the main guard'


def check(script: Script) -> Iterator[Remark]:
    seen: list[ast.Call] = []
    for call in script.calls_to("multiprocessing.set_start_method"):
        if script.is_caught(call, "RuntimeError"):
            continue
        if script.at_import(call) and not (script.is_notebook and "force" in keywords(call)):
            yield Remark(call, "the start method of the whole program is set when this file is imported", _FIX)
        elif "force" not in keywords(call) and any(_same_path(script, one, call) for one in seen):
            yield Remark(call, f"the start method is set again, after line {seen[0].lineno}: RuntimeError", _FIX)
        seen.append(call)


def _same_path(script: Script, one: ast.Call, other: ast.Call) -> bool:
    """Whether both are statements of the same block, so that the one is followed by the other."""
    statements = [script.parent(call) for call in (one, other)]
    blocks = [script.parent(statement) for statement in statements if isinstance(statement, ast.Expr)]
    if len(blocks) != 2 or blocks[0] is not blocks[1]:
        return False
    orelse = getattr(blocks[0], "orelse", [])
    return (statements[0] in orelse) == (statements[1] in orelse)
