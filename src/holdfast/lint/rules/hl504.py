"""# HL504 a worker for every CPU of the machine

## Bad

```python
import os
from torch.utils.data import DataLoader

loader = DataLoader(dataset, num_workers=os.cpu_count())
```

## Good

```python
from torch.utils.data import DataLoader

loader = DataLoader(dataset, num_workers=4)     # what `holdfast doctor train.py:dataset` found to be best
```

## Why

`cpu_count()` counts the CPUs of the machine, not those that a container, a job scheduler or `taskset` allows this
process, and every rank on the machine counts them again: 8 ranks on 64 CPUs start 512 workers. The trainer needs a CPU
too. More workers than CPUs are slower, and each takes memory.

## See

`holdfast explain F55`, `holdfast explain F85`; pytorch#23048.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..finding import Level, Remark
from ..script import Script

LEVEL = Level.WARNING

_COUNTS = {"os.cpu_count", "multiprocessing.cpu_count", "psutil.cpu_count", "joblib.cpu_count"}


def check(script: Script) -> Iterator[Remark]:
    for loader in script.loaders:
        given = loader.argument("num_workers")
        counted = _counted(script, given)
        if given is not None and counted is not None:
            yield Remark(
                given,
                f"num_workers is {ast.unparse(counted)}: all CPUs of the machine, not those that this process may use",
                "num_workers=4; holdfast doctor measures which number is best",
            )


def _counted(script: Script, node: ast.expr | None) -> ast.Call | None:
    """The call that counts, if all of it is taken: ``cpu_count()``, ``cpu_count() or 1``, ``cpu_count() - 1``, also as
    what a parameter is unless it is given. A part, or a ``min`` with a number, is somebody's judgement."""
    value = script.value_of(node) or _default(script, node)
    if isinstance(value, ast.Name):
        return _counted(script, value)
    if isinstance(value, ast.IfExp):
        return _counted(script, value.body) or _counted(script, value.orelse)
    if isinstance(value, ast.BoolOp):
        return _counted(script, value.values[0])
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Sub | ast.Mult | ast.Add):
        return _counted(script, value.left) or _counted(script, value.right)
    if isinstance(value, ast.Call) and script.resolve(value.func) == "int" and value.args:
        return _counted(script, value.args[0])
    return value if isinstance(value, ast.Call) and script.resolve(value.func) in _COUNTS else None


def _default(script: Script, node: ast.expr | None) -> ast.expr | None:
    """The default of the parameter that a name stands for."""
    function = script.function_of(node) if isinstance(node, ast.Name) else None
    if function is None or not isinstance(node, ast.Name) or script.values.bound(function, node.id):
        return None
    arguments = function.args
    positional = [*arguments.posonlyargs, *arguments.args]
    defaults = dict(zip((one.arg for one in reversed(positional)), reversed(arguments.defaults)))
    named = {one.arg: value for one, value in zip(arguments.kwonlyargs, arguments.kw_defaults) if value is not None}
    return (defaults | named).get(node.id)
