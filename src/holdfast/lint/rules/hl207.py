"""# HL207 a `DistributedSampler` is not told the epoch

## Bad

```python
from torch.utils.data import DataLoader, DistributedSampler

def train(dataset, step):
    sampler = DistributedSampler(dataset)
    loader = DataLoader(dataset, sampler=sampler)
    for epoch in range(10):
        for batch in loader:
            step(batch)
```

## Good

```python
from torch.utils.data import DataLoader, DistributedSampler

def train(dataset, step):
    sampler = DistributedSampler(dataset)
    loader = DataLoader(dataset, sampler=sampler)
    for epoch in range(10):
        sampler.set_epoch(epoch)
        for batch in loader:
            step(batch)
```

## Why

The order is a function of the seed and the epoch. Without `set_epoch` the epoch stays 0, and every epoch has the same
order. `holdfast.DistributedSampler` is told by the loader.

## See

pytorch#31771, pytorch#11324.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..bindings import keywords
from ..finding import Level, Remark
from ..loaders import Loader
from ..script import Script

LEVEL = Level.WARNING


def check(script: Script) -> Iterator[Remark]:
    samplers = script.calls_to("torch.utils.data.DistributedSampler")
    if not samplers or script.calls_of_method("set_epoch"):
        return
    for call in samplers:
        shuffle = keywords(call).get("shuffle")
        if isinstance(shuffle, ast.Constant) and not shuffle.value:
            continue
        loaders = [one for one in script.loaders if script.value_of(one.argument("sampler")) is call]
        if any(_is_read_again(script, loader) for loader in loaders):
            yield Remark(
                call,
                "nothing calls set_epoch on this sampler: every epoch has the same order",
                "for epoch in range(epochs): sampler.set_epoch(epoch)",
            )


def _is_read_again(script: Script, loader: Loader) -> bool:
    """Whether the file has a loop that uses the loader each time."""
    assign = script.parent(loader.call)
    names = {target.id for target in getattr(assign, "targets", []) if isinstance(target, ast.Name)}
    uses = [node for node in script.nodes(ast.Name) if node.id in names and script.value_of(node) is loader.call]
    loops = [script.in_loop(node) for node in uses if isinstance(node.ctx, ast.Load)]
    return any(loop is not None and loop not in script.above(loader.call) for loop in loops)
