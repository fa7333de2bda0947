"""# HL509 batches of numpy arrays

## Bad

```python
import numpy as np
from torch.utils.data import DataLoader

def collate(samples):
    images, labels = zip(*samples)
    return np.stack(images), np.array(labels)

loader = DataLoader(dataset, num_workers=4, collate_fn=collate)
```

## Good

```python
import numpy as np
import torch
from torch.utils.data import DataLoader

def collate(samples):
    images, labels = zip(*samples)
    return torch.from_numpy(np.stack(images)), torch.tensor(labels)

loader = DataLoader(dataset, num_workers=4, collate_fn=collate)
```

## Why

torch passes tensors through shared memory. Everything else is pickled, written to a pipe and read again by the
trainer, which has no time for it: several copies of each batch, and one process that reads them all.
`holdfast.DataLoader` puts arrays into shared memory as well, so there the rule is silent.

## See

`holdfast explain F86`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..bodies import results
from ..contexts import Role
from ..finding import Level, Remark
from ..script import Script

LEVEL = Level.WARNING

_MAKERS = ("stack", "array", "asarray", "concatenate", "vstack", "hstack", "zeros", "ones", "empty", "full", "pad")
_ARRAYS = {f"numpy.{maker}" for maker in _MAKERS}


def check(script: Script) -> Iterator[Remark]:
    if not any(loader.has_workers and not loader.is_ours for loader in script.loaders):
        return
    for item in script.items:
        if item.role is Role.COLLATE and item.entry == item.name:
            for result in results(script, item.node):
                if isinstance(result, ast.Call) and script.resolve(result.func) in _ARRAYS:
                    made = ast.unparse(result.func)
                    yield Remark(
                        result,
                        f"{item.name} gives an array of {made}, which goes through a pipe; tensors go through memory",
                        f"torch.from_numpy({made}(...)), or from holdfast import DataLoader",
                    )
