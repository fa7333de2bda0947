"""# HL508 samples are loaded while the training waits

## Bad

```python
from torch.utils.data import DataLoader

loader = DataLoader(dataset, batch_size=64)
```

## Good

```python
from torch.utils.data import DataLoader

loader = DataLoader(dataset, batch_size=64, num_workers=4)
```

## Why

Without workers each batch is loaded when it is asked for, in the trainer: its time is added to that of the step. For
data that is in memory already, or for debugging, that is right.

## See

`holdfast doctor` measures how many workers are best; `holdfast explain F86`.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..finding import Level, Remark
from ..script import Script

LEVEL = Level.INFO


def check(script: Script) -> Iterator[Remark]:
    for loader in script.loaders:
        if loader.literal("num_workers", 0) == 0 and "pool" not in loader.arguments:
            yield Remark(
                loader.call,
                "this loader has no workers: the training waits while each batch is loaded",
                "num_workers=4; holdfast doctor measures which number is best",
            )
