"""# HL102 a lock, thread, executor or queue is an attribute of the data set

## Bad

```python
import threading
from torch.utils.data import Dataset

class Images(Dataset):
    def __init__(self):
        self.lock = threading.Lock()
```

## Good

```python
import threading
import holdfast
from torch.utils.data import Dataset

class Images(Dataset):
    def __init__(self):
        self.lock = holdfast.per_worker(threading.Lock)   # one in each worker
```

## Why

A lock that another thread holds at the fork stays held in the worker for ever, a thread or an executor is not there at
all, and none of them can be pickled for a spawned worker. To share a lock between processes, take one of
`multiprocessing`.

## See

`holdfast explain F01`, `holdfast explain F05`; pytorch#75147.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..attributes import made_in_init
from ..finding import Level, Remark
from ..script import Script

LEVEL = Level.WARNING

_MAKERS = (
    *("threading.Lock", "threading.RLock", "threading.Condition", "threading.Event", "threading.Semaphore"),
    *("threading.BoundedSemaphore", "threading.Barrier", "threading.Thread", "threading.Timer"),
    *("queue.Queue", "queue.LifoQueue", "queue.PriorityQueue"),
    *("concurrent.futures.ThreadPoolExecutor", "concurrent.futures.ProcessPoolExecutor"),
    *("multiprocessing.Pool", "multiprocessing.ThreadPool", "multiprocessing.dummy.Pool"),
)
_PICKLING = {"__getstate__", "__reduce__", "__reduce_ex__"}


def check(script: Script) -> Iterator[Remark]:
    for made in made_in_init(script, *_MAKERS):
        if not _PICKLING & set(made.dataset.methods):  # its author has thought of it
            yield Remark(
                made.call,
                f"{made.dataset.name} keeps {made.attribute} = {made.maker}(...): "
                "a forked worker gets it as it is at the fork, a spawned one cannot be given it",
                f"{made.attribute} = holdfast.per_worker({made.maker})  # or make it on first use in __getitem__",
            )
