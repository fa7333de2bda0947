"""# HL603 a table of Python objects that grows in every worker

## Bad

```python
import json
from torch.utils.data import Dataset

class Captions(Dataset):
    def __init__(self, path):
        with open(path) as file:
            self.rows = json.load(file)

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        return self.rows[index]["caption"]
```

## Good

```python
import json
import holdfast
from torch.utils.data import Dataset

class Captions(Dataset):
    def __init__(self, path):
        with open(path) as file:
            self.rows = holdfast.share(json.load(file))    # packed: one copy for all workers, reads as before

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        return self.rows[index]["caption"]
```

## Why

A forked worker shares the trainer's memory until it is written to, and reading a Python object writes its count of
references: each worker comes to have a copy of all rows, 587 MB in 2 workers for 3 million paths. Spawned workers are
sent a copy each. `holdfast.share(dataset)` does the same for all of its lists and dicts at once; with stock torch,
keep rows in numpy arrays, or texts in one bytes object with offsets.

The rule knows tables by what made them (JSON, pickle, CSV, YAML, lines of a file, rows of a DataFrame) and by
`__len__`.

## See

`holdfast explain F35`, `holdfast explain F11`; pytorch#13246, pytorch#20433.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..bindings import dotted
from ..bodies import own
from ..datasets import DatasetClass
from ..finding import Level, Remark
from ..script import Script

LEVEL = Level.WARNING

_MAKERS = {
    *("json.load", "json.loads", "orjson.loads", "ujson.load", "pickle.load", "pickle.loads", "yaml.safe_load"),
    *("yaml.load", "csv.reader", "csv.DictReader", "joblib.load", "jsonlines.open", "msgpack.load"),
}
_FILES = {"open", "io.open", "gzip.open", "bz2.open", "lzma.open"}
_METHODS = {"readlines", "splitlines", "to_dict", "tolist", "itertuples", "iterrows"}
_TEXT_METHODS = {"strip", "rstrip", "lstrip", "split", "lower", "upper", "decode", "replace", "format", "join"}
_PASSING = {"list", "tuple", "sorted", "dict", "enumerate", "reversed"}


def check(script: Script) -> Iterator[Remark]:
    for dataset in script.datasets:
        init = dataset.methods.get("__init__")
        counted = _counted(dataset) if init is not None and init in dataset.node.body else set()
        for assignment in own(init, ast.Assign) if init is not None and counted else ():
            name = next((one for one in map(dotted, assignment.targets) if one in counted), "")
            maker = _maker(script, assignment.value) if name else ""
            if maker:
                yield Remark(
                    assignment,
                    f"{name}, which {maker} makes, is a table of Python objects: "
                    "each worker comes to have a copy of it",
                    f"{name} = holdfast.share({name})",
                )


def _counted(dataset: DatasetClass) -> set[str]:
    """Attributes whose length is that of the data set: ``return len(self.rows)``."""
    length = dataset.methods.get("__len__")
    calls = own(length, ast.Call) if length is not None else ()
    return {dotted(call.args[0]) for call in calls if dotted(call.func) == "len" and call.args}


def _maker(script: Script, node: ast.expr | None, depth: int = 6) -> str:
    """What made the value, through indexing, copying and comprehensions: ``json.load`` of
    ``[row for row in json.load(file)["rows"]]``."""
    value = script.value_of(node)
    if depth == 0 or value is None:
        return ""
    if isinstance(value, ast.Subscript | ast.Attribute):
        return _maker(script, value.value, depth - 1)
    if isinstance(value, ast.ListComp):
        return _iterated(script, value.generators[0].iter, depth - 1) if _is_object(value.elt) else ""
    if not isinstance(value, ast.Call):
        return ""
    name = script.resolve(value.func)
    if name in _MAKERS or (isinstance(value.func, ast.Attribute) and value.func.attr in _METHODS):
        return ast.unparse(value.func)[-40:]
    if name in _PASSING and value.args:
        return _iterated(script, value.args[0], depth - 1)
    return ""


def _iterated(script: Script, node: ast.expr, depth: int) -> str:
    """As `_maker`, of what is in it: a file has its lines."""
    value = script.value_of(node)
    opened = isinstance(value, ast.Call) and script.resolve(value.func) in _FILES
    return "reading line by line" if opened else _maker(script, node, depth)


def _is_object(node: ast.expr) -> bool:
    """Texts and containers, as far as the file shows; not arrays or whatever else a call makes."""
    return not isinstance(node, ast.Call) or getattr(node.func, "attr", "") in _TEXT_METHODS
