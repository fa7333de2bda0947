"""# HL503 workers are started again for each step

## Bad

```python
def train(loader):
    for step in range(10_000):
        images, labels = next(iter(loader))
        update(images, labels)
```

## Good

```python
def endless(loader):
    while True:
        yield from loader

def train(loader):
    for step, (images, labels) in zip(range(10_000), endless(loader)):
        update(images, labels)
```

## Why

Each `iter(loader)` starts all workers, has them load `prefetch_factor × num_workers` batches, and drops all but one:
237 ms a step where an iterator that is kept takes 2.5. It also begins the epoch anew, so without `shuffle` every step
sees the same batch. holdfast keeps its workers over `iter`, and warns; the rule is silent there.

## See

`holdfast explain F54`, `holdfast explain HF406`; facebookresearch/detectron2#3847, libffcv/ffcv#345.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..batches import batch_loops, is_epoch_loop, is_loader, starts_torch_workers
from ..finding import Level, Remark
from ..script import Script

LEVEL = Level.WARNING


def check(script: Script) -> Iterator[Remark]:
    for call in script.calls_to("next"):
        asked = call.args[0] if call.args else None
        if isinstance(asked, ast.Call) and script.resolve(asked.func) == "iter" and len(asked.args) == 1:
            loader = asked.args[0]
            if is_loader(script, loader) and starts_torch_workers(script, loader) and _is_repeated(script, call):
                yield Remark(
                    call,
                    f"{ast.unparse(call)} in a loop starts the workers of {ast.unparse(loader)[:40]} for each batch",
                    f"batches = iter({ast.unparse(loader)[:40]}) before the loop, next(batches) in it",
                )
    yield from _made_in_steps(script)


def _made_in_steps(script: Script) -> Iterator[Remark]:
    """A loader with workers that is made anew for each batch of another one."""
    inner = {loop.node for loop in batch_loops(script)} if script.loaders else set()
    for loader in script.loaders:
        if loader.has_workers and script.in_loop(loader.call) in inner:
            yield Remark(
                loader.call,
                "a loader is made for each batch of another: its workers start and end each time",
                "make it once, before the loop; persistent_workers=True keeps its workers",
            )


def _is_repeated(script: Script, call: ast.Call) -> bool:
    """In a loop over steps, or in a small function that is called in one. A look at one batch in each epoch is fine."""
    loop = script.in_loop(call)
    if loop is not None:
        inside = {one for one in ast.walk(loop) if isinstance(one, ast.For) and one is not loop}
        return not (is_epoch_loop(loop) and inside) and not any(one.node in inside for one in batch_loops(script))
    function = script.function_of(call)
    if not isinstance(function, ast.FunctionDef) or script.function_of(function) is not None or len(function.body) > 2:
        return False
    return any(script.in_loop(one) is not None for one in script.calls_to(f".{function.name}"))
