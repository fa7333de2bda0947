"""# HL103 a lambda or local function is handed to workers

## Bad

```python
from torch.utils.data import DataLoader

def loader(dataset):
    return DataLoader(dataset, num_workers=4, collate_fn=lambda batch: batch)
```

## Good

```python
from torch.utils.data import DataLoader

def as_list(batch):
    return batch

def loader(dataset):
    return DataLoader(dataset, num_workers=4, collate_fn=as_list)
```

## Why

Under spawn and forkserver, the defaults on Windows, macOS and, from Python 3.14, Linux, functions are pickled by their
name in their module; these have none: `Can't pickle local object 'loader.<locals>.<lambda>'`. A class with `__call__`,
or `functools.partial` of a function of the module, can hold what the closure held.

Tasks of `multiprocessing.Pool` and `ProcessPoolExecutor` are pickled under fork too; targets of processes are where
the file says `spawn` or `forkserver`.

`holdfast.DataLoader` and `holdfast.Pool` ship such functions by value, so there the rule is silent.

## See

`holdfast explain F02`; pytorch#169252.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..bindings import keywords
from ..contexts import PYTHONS_POOLS, is_context, tasks
from ..finding import Level, Remark
from ..script import Script

LEVEL = Level.ERROR

_ARGUMENTS = ("collate_fn", "worker_init_fn")


def check(script: Script) -> Iterator[Remark]:
    loaders = [one for one in script.loaders if one.has_workers and not one.is_ours and not one.forks]
    for loader in loaders:
        for name in _ARGUMENTS:
            given = loader.argument(name)
            yield from _remark(script, given, name)
    if loaders:
        for keyword in script.nodes(ast.keyword):
            if keyword.arg in {"transform", "target_transform"}:
                yield from _remark(script, keyword.value, keyword.arg)
        for call in script.calls_to("torchvision.transforms.Lambda", "torchvision.transforms.v2.Lambda"):
            yield from _remark(script, call.args[0] if call.args else None, "transforms.Lambda")
    for task in tasks(script, PYTHONS_POOLS):
        yield from _remark(script, task, "the task", "a pool of processes")
    for target in _targets(script):
        yield from _remark(script, target, "the target", "a process that is spawned")


def _targets(script: Script) -> Iterator[ast.expr | None]:
    """Of processes for which the file says that they are not forked."""
    for call in script.calls_to("multiprocessing.spawn"):
        yield call.args[0] if call.args else keywords(call).get("fn")
    for call in script.calls_of_method("Process"):
        assert isinstance(call.func, ast.Attribute)
        if is_context(script, call.func.value, ("spawn", "forkserver")):
            yield keywords(call).get("target")


def _remark(
    script: Script, given: ast.expr | None, argument: str, who: str = "spawn and forkserver"
) -> Iterator[Remark]:
    what = _nameless(script, given)
    if given is not None and what:
        yield Remark(
            given,
            f"{argument} is {what}, which {who} cannot pickle",
            "def it at the top of the module; functools.partial(function, ...) for what it closes over",
        )


def _nameless(script: Script, given: ast.expr | None) -> str:
    value = given
    if isinstance(given, ast.Name):
        function = script.function_named(given)
        if function is not None:
            around = script.function_of(function)
            return f"the local function {function.name}" if around is not None else ""
        value = script.value_of(given)
    if isinstance(value, ast.Call) and script.resolve(value.func) == "functools.partial" and value.args:
        return _nameless(script, value.args[0])
    return "a lambda" if isinstance(value, ast.Lambda) else ""
