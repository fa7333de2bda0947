"""# HL408 a result that cannot be sent

## Bad

```python
from torch.utils.data import Dataset

class Texts(Dataset):
    def __getitem__(self, index):
        return open(self.paths[index])
```

## Good

```python
from torch.utils.data import Dataset

class Texts(Dataset):
    def __getitem__(self, index):
        with open(self.paths[index]) as file:
            return file.read()
```

## Why

What a worker loads is pickled to reach the trainer, in a thread behind a queue. An open file, a generator, a lambda or
a lock cannot be: torch's worker drops the batch, and the trainer waits for it for ever. holdfast raises `CannotSend`,
which names the member, and pools raise an error too. A `yield` in `__getitem__` makes it return a generator.

## See

`holdfast explain F26`, `holdfast explain HF302`; pytorch#142884.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..batches import runs_in_workers
from ..bodies import own, results
from ..contexts import ItemFunction, Role
from ..finding import Level, Remark
from ..script import Script

LEVEL = Level.ERROR

_MAKERS = {
    **dict.fromkeys(("open", "io.open", "gzip.open", "h5py.File", "zipfile.ZipFile", "tarfile.open"), "an open file"),
    **dict.fromkeys(("sqlite3.connect", "lmdb.open", "socket.socket"), "an open connection"),
    **dict.fromkeys(("threading.Lock", "threading.RLock", "threading.Event", "threading.Thread"), "a lock or thread"),
    **dict.fromkeys(("multiprocessing.Lock", "multiprocessing.Queue", "queue.Queue"), "a lock or queue"),
    **dict.fromkeys(("os.scandir",), "a handle"),
}


def check(script: Script) -> Iterator[Remark]:
    for item in script.items:
        sent = item.role in {Role.SAMPLE, Role.COLLATE, Role.TASK} and runs_in_workers(script, item)
        if sent and item.entry == item.name:
            yield from _generators(script, item)
            for result in results(script, item.node):
                what = _unsendable(script, result)
                if what:
                    yield _remark(script, result, item, f"{item.name} gives {what}")


def _generators(script: Script, item: ItemFunction) -> Iterator[Remark]:
    if item.name.endswith((".__iter__", ".__getitems__")) or isinstance(item.node, ast.Lambda):
        return
    for kind in (ast.Yield, ast.YieldFrom):
        for node in own(item.node, kind):
            yield _remark(script, node, item, f"the yield makes {item.name} return a generator")
            return


def _remark(script: Script, node: ast.AST, item: ItemFunction, what: str) -> Remark:
    told = item.role is Role.TASK or _are_ours(script)
    outcome = "it ends in an error" if told else "the trainer waits for that batch for ever"
    return Remark(
        node,
        f"{what}, which cannot be pickled: {outcome}",
        "return what is in it: bytes, an array, a tensor, a list",
    )


def _unsendable(script: Script, node: ast.expr) -> str:
    if isinstance(node, ast.Lambda):
        return "" if _are_ours(script) else "a lambda"  # we send those by value
    if isinstance(node, ast.GeneratorExp):
        return "a generator"
    return _MAKERS.get(script.resolve(node.func), "") if isinstance(node, ast.Call) else ""


def _are_ours(script: Script) -> bool:
    return bool(script.loaders) and all(loader.is_ours for loader in script.loaders)
