"""# HL108 threads run when the workers are forked

## Bad

```python
from concurrent.futures import ThreadPoolExecutor
from torch.utils.data import DataLoader

def train(dataset):
    loader = DataLoader(dataset, num_workers=4)
    with ThreadPoolExecutor() as writers:
        for batch in loader:
            writers.submit(print, batch)
```

## Good

```python
from concurrent.futures import ThreadPoolExecutor
from torch.utils.data import DataLoader

def train(dataset):
    loader = DataLoader(dataset, num_workers=4, multiprocessing_context="spawn")
    with ThreadPoolExecutor() as writers:
        for batch in loader:
            writers.submit(print, batch)
```

## Why

A fork copies the memory of the trainer, not its threads: a lock that one of them held at that moment stays held in the
worker for ever. Python 3.12 and later warn. It depends on the moment, so it hangs one run in many.

The rule looks at threads that the same function starts, and that live while the loader begins. It is silent about
`tqdm` and `wandb`, which have threads too: they rarely hold a lock, and everybody uses them. Workers of
`holdfast.DataLoader` are not forks of the trainer.

## See

`holdfast explain F01`; pytorch#138957.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..finding import Level, Remark
from ..loaders import iterations
from ..script import Script

LEVEL = Level.WARNING

_EXECUTORS = {"concurrent.futures.ThreadPoolExecutor", "multiprocessing.ThreadPool", "multiprocessing.dummy.Pool"}
_LIVE = _EXECUTORS | {"rich.live.Live", "rich.progress.Progress"}
_ENDS = ("join", "shutdown", "stop", "cancel", "terminate", "close")


def check(script: Script) -> Iterator[Remark]:
    for node, loader in iterations(script):
        if not loader.has_workers or loader.is_ours or loader.forks is False:
            continue
        threads = next(_threads_before(script, node), None)
        if threads is not None:
            what = ast.unparse(threads.func)
            yield Remark(
                node,
                f"the workers are forked here, while threads of {what} (line {threads.lineno}) run",
                'from holdfast import DataLoader, or multiprocessing_context="spawn"',
            )


def _threads_before(script: Script, start: ast.expr) -> Iterator[ast.Call]:
    """Calls in the same function that started threads which still run when the workers start."""
    for around in script.above(start):
        if isinstance(around, ast.With):
            for item in around.items:
                if isinstance(item.context_expr, ast.Call) and script.resolve(item.context_expr.func) in _LIVE:
                    yield item.context_expr
    scope = script.function_of(start)
    for call in (*script.calls_of_method("start"), *script.calls_to(*_EXECUTORS)):
        before = call.lineno < start.lineno and script.function_of(call) is scope and _starts(script, call)
        if before and not _ended_between(script, call, start) and not isinstance(script.parent(call), ast.withitem):
            yield call


def _starts(script: Script, call: ast.Call) -> bool:
    if script.resolve(call.func) in _EXECUTORS:
        return True
    made = script.value_of(call.func.value) if isinstance(call.func, ast.Attribute) else None
    return isinstance(made, ast.Call) and script.resolve(made.func) in {"threading.Thread", "threading.Timer"}


def _ended_between(script: Script, call: ast.Call, start: ast.expr) -> bool:
    return any(call.lineno <= end.lineno < start.lineno for end in script.calls_of_method(*_ENDS))
