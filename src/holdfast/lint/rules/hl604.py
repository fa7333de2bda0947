"""# HL604 rows of a DataFrame, one at a time

## Bad

```python
from torch.utils.data import Dataset

class Captions(Dataset):
    def __getitem__(self, index):
        row = self.frame.iloc[index]
        return row["path"], row["label"]
```

## Good

```python
from torch.utils.data import Dataset

class Captions(Dataset):
    def __init__(self, frame):
        self.paths = frame["path"].to_numpy(dtype="U")    # of fixed width: no Python objects
        self.labels = frame["label"].to_numpy()

    def __getitem__(self, index):
        return self.paths[index], self.labels[index]
```

## Why

`iloc` makes a Series of each row, of a type that fits all columns, which takes longer than reading the values. Columns
of text hold Python objects, so each worker comes to have a copy of them (`holdfast explain HL603`).

## See

`holdfast explain F35`; pytorch#5902.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..bindings import dotted
from ..contexts import Role
from ..finding import Level, Remark
from ..script import Script

LEVEL = Level.INFO


def check(script: Script) -> Iterator[Remark]:
    if not script.datasets:
        return
    said = set()
    for node in script.nodes(ast.Subscript):
        if not isinstance(node.value, ast.Attribute) or node.value.attr not in {"iloc", "loc"}:
            continue
        item, frame = script.item_of(node), dotted(node.value.value)
        if item is not None and item.role is Role.SAMPLE and frame.startswith("self.") and (item, frame) not in said:
            said.add((item, frame))
            yield Remark(
                node,
                f"rows of {frame} are taken one by one in {item.via}: slow, and texts in it are copied to each worker",
                f'self.paths = {frame}["path"].to_numpy(dtype="U") in __init__, for each column that is used',
            )
