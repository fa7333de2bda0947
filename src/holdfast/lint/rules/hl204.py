"""# HL204 tasks of a process pool draw from numpy's global generator

## Bad

```python
import multiprocessing
import numpy as np

def noisy(value):
    return value + np.random.normal()

if __name__ == "__main__":
    with multiprocessing.Pool(4) as pool:
        pool.map(noisy, range(100))
```

## Good

```python
import holdfast
import numpy as np

def noisy(value):
    return value + np.random.normal()

if __name__ == "__main__":
    with holdfast.Pool(4) as pool:   # seeded for each call, the same for any number of workers
        pool.map(noisy, range(100))
```

## Why

Forked processes begin with a copy of numpy's state, and a pool does not seed it: the workers draw the same numbers.
With multiprocessing, pass a seed with each task: `rng = np.random.default_rng([seed, task])`.

## See

`holdfast explain F39`; pytorch#3880.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..bindings import keywords
from ..contexts import Role
from ..finding import Level, Remark
from ..script import Script

LEVEL = Level.WARNING

_SEEDED = ("numpy.random.seed", "numpy.random.set_state")
_OWN = ("default_rng", "RandomState", "Generator", "SeedSequence", "PCG64", "Philox", "get_state")
_POOLS = ("multiprocessing.Pool", "concurrent.futures.ProcessPoolExecutor")


def check(script: Script) -> Iterator[Remark]:
    calls = script.calls_under("numpy.random.")
    if not calls or script.calls_to("holdfast.Pool", "holdfast.Executor") or _is_prepared(script):
        return
    seeded = {script.function_of(call) for call in script.calls_to(*_SEEDED)}
    for call in calls:
        item = script.item_of(call)
        own = script.resolve(call.func).rpartition(".")[2] in _OWN
        if item is None or item.role is not Role.TASK or own or script.function_of(call) in seeded:
            continue
        yield Remark(
            call,
            f"{ast.unparse(call.func)} in {item.via}, a task of a process pool: forked workers draw the same numbers",
            "rng = np.random.default_rng([seed, task]), or holdfast.Pool, which seeds each task",
        )


def _is_prepared(script: Script) -> bool:
    """Whether a pool has an initializer, which may well be there to seed."""
    return any("initializer" in keywords(call) for call in (*script.calls_to(*_POOLS), *script.calls_of_method("Pool")))
