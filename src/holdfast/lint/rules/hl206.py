"""# HL206 a sample depends on the clock, on the system's entropy or on `hash`

## Bad

```python
import time
from torch.utils.data import Dataset

class Images(Dataset):
    def __getitem__(self, index):
        return self.images[index], time.time()
```

## Good

```python
from torch.utils.data import Dataset

class Images(Dataset):
    def __getitem__(self, index):
        return self.images[index], self.times[index]
```

## Why

No seed reproduces it: the sample differs in each run, and when it is loaded again after a worker died. `hash` of a
string differs between processes that are not forks of each other, unless `PYTHONHASHSEED` is set. Off by default, as
most of these calls measure time.

## See

`holdfast explain F80`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..contexts import Role
from ..finding import Level, Remark
from ..script import Script

LEVEL = Level.INFO

_SOURCES = (
    *("time.time", "time.time_ns", "datetime.datetime.now", "datetime.datetime.utcnow", "uuid.uuid1", "uuid.uuid4"),
    *("os.urandom", "secrets.token_bytes", "secrets.token_hex", "secrets.randbelow", "secrets.choice", "hash"),
    "random.SystemRandom",
)


def check(script: Script) -> Iterator[Remark]:
    for call in script.calls_to(*_SOURCES):
        item = script.item_of(call)
        if item is None or item.role in {Role.WORKER_INIT, Role.TASK}:
            continue
        asked = ast.unparse(call.func)
        yield Remark(
            call,
            f"{asked}() in {item.via} gives something else in each run, whatever the seed",
            "derive it from the index and a seed: np.random.default_rng([self.seed, index])",
        )
