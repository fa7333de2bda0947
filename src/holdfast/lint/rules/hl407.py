"""# HL407 a worker ends itself

## Bad

```python
import sys
from torch.utils.data import Dataset

class Images(Dataset):
    def __getitem__(self, index):
        if not self.paths[index].exists():
            sys.exit("no such file")
```

## Good

```python
from torch.utils.data import Dataset

class Images(Dataset):
    def __getitem__(self, index):
        if not self.paths[index].exists():
            raise FileNotFoundError(self.paths[index])
```

## Why

It ends the worker, not the program. torch says `DataLoader worker (pid 4711) exited unexpectedly with exit code 1.
Details are lost due to multiprocessing`, or, for `KeyboardInterrupt`, shows an empty `EOFError`;
`multiprocessing.Pool` waits for the result for ever. An exception arrives in the trainer, with its text.

## See

`holdfast explain F30`, `holdfast explain HF201`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..batches import runs_in_workers
from ..contexts import Role
from ..finding import Level, Remark
from ..script import Script

LEVEL = Level.WARNING

_EXITS = ("sys.exit", "os._exit", "exit", "quit", "os.abort")
_RAISED = {"SystemExit", "KeyboardInterrupt"}


def check(script: Script) -> Iterator[Remark]:
    if not script.items:
        return
    for call in script.calls_to(*_EXITS):
        yield from _remark(script, call, ast.unparse(call.func))
    for node in script.nodes(ast.Raise):
        raised = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
        if raised is not None and script.resolve(raised) in _RAISED:
            yield from _remark(script, node, f"raise {ast.unparse(raised)}")


def _remark(script: Script, node: ast.AST, what: str) -> Iterator[Remark]:
    item = script.item_of(node)
    if item is not None and runs_in_workers(script, item):
        waits = "gives no result, for which multiprocessing.Pool waits for ever"
        effect = waits if item.role is Role.TASK else "ends the worker and not the program, and says nothing of why"
        yield Remark(
            node,
            f"{what} in {item.via} {effect}",
            'raise RuntimeError("what is wrong")',
        )
