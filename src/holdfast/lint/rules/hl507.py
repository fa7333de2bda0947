"""# HL507 shared memory that is left behind

## Bad

```python
import torch

torch.multiprocessing.set_sharing_strategy("file_system")
```

## Good

```python
import resource

soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))      # the same as ulimit -n
```

## Why

It is the usual advice against `Too many open files` and `received 0 items of ancdata`. Each tensor then has a name in
`/dev/shm`, and a process that is killed leaves them there until the machine is restarted. holdfast has one descriptor
for each worker, however many batches you keep, and no names.

## See

`holdfast explain F33`, `holdfast explain F32`; pytorch#973, pytorch#65198.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..finding import Level, Remark
from ..script import Script

LEVEL = Level.INFO


def check(script: Script) -> Iterator[Remark]:
    for call in script.calls_to("multiprocessing.set_sharing_strategy"):
        if call.args and isinstance(call.args[0], ast.Constant) and call.args[0].value == "file_system":
            yield Remark(
                call,
                "file_system sharing leaves tensors in /dev/shm when a process is killed",
                "ulimit -n 65536; holdfast.DataLoader needs neither",
            )
