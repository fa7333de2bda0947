"""# HL501 workers without a time limit

## Bad

```python
from torch.utils.data import DataLoader

loader = DataLoader(dataset, num_workers=8)
```

## Good

```python
from holdfast import DataLoader

loader = DataLoader(dataset, num_workers=8, stall_timeout=120)
```

## Why

A worker that hangs, in a socket, a lock or a dead mount, is waited for without end and without a word. torch's
`timeout=120` ends the run with an error that names neither worker nor sample. holdfast reports after 60 seconds what
the worker waits for, and with `stall_timeout` treats the sample as `on_error` says.

## See

`holdfast explain F31`, `holdfast explain HF205`; pytorch#1355, pytorch#43502.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..finding import Level, Remark
from ..script import Script

LEVEL = Level.INFO


def check(script: Script) -> Iterator[Remark]:
    for loader in script.loaders:
        if loader.has_workers and not loader.is_ours and loader.literal("timeout", 0) == 0:
            yield Remark(
                loader.call,
                "this loader waits without end for a worker that hangs",
                "holdfast.DataLoader(..., stall_timeout=120), or timeout=120",
            )
