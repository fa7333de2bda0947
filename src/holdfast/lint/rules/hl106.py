"""# HL106 a worker raises the number of its threads

## Bad

```python
import torch
from torch.utils.data import Dataset

class Images(Dataset):
    def __getitem__(self, index):
        torch.set_num_threads(8)
        return torch.ones(1000, 1000) @ self.images[index]
```

## Good

```python
import torch
from torch.utils.data import Dataset

class Images(Dataset):
    def __getitem__(self, index):
        return torch.ones(1000, 1000) @ self.images[index]
```

## Why

Workers begin with one thread on purpose. OpenMP's threads are not copied by a fork, and its library waits for them for
ever: the first larger operation hangs. Where it does not, workers × threads compete for the same cores.

## See

`holdfast explain F01`, `holdfast explain F55`; pytorch#45198.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..finding import Level, Remark
from ..script import Script

LEVEL = Level.ERROR

_SETTERS = ("torch.set_num_threads", "torch.set_num_interop_threads", "mkl.set_num_threads")
_ALL_CORES = {"os.cpu_count", "multiprocessing.cpu_count", "os.process_cpu_count"}


def check(script: Script) -> Iterator[Remark]:
    for call in script.calls_to(*_SETTERS):
        item = script.item_of(call)
        if item is not None and item.role.of_loader and call.args and _is_many(script, call.args[0]):
            yield Remark(
                call,
                f"{ast.unparse(call)} in {item.via}: a forked worker hangs in its next OpenMP loop",
                f"{ast.unparse(call.func)}(1), or leave it out; raise num_workers instead",
            )


def _is_many(script: Script, node: ast.expr) -> bool:
    value = script.value_of(node)
    if isinstance(value, ast.Constant):
        return isinstance(value.value, int) and value.value > 1
    return isinstance(value, ast.Call) and script.resolve(value.func) in _ALL_CORES
