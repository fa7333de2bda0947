"""# HL502 arguments that contradict each other

## Bad

```python
from torch.utils.data import DataLoader

loader = DataLoader(dataset, num_workers=0, persistent_workers=True)
```

## Good

```python
from torch.utils.data import DataLoader

loader = DataLoader(dataset, num_workers=4, persistent_workers=True)
```

## Why

Most of these are a `ValueError` as soon as the loader is made, which is late when that is after an hour of
preparation: `persistent_workers`, `prefetch_factor` and `multiprocessing_context` without workers; `shuffle` with a
sampler or with an iterable data set; `batch_sampler` with `batch_size`, `shuffle`, `sampler` or `drop_last`;
`drop_last` without batches. `timeout` without workers has no effect, and no error.

## See

torch's documentation of `DataLoader`.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from ..finding import Level, Remark
from ..loaders import UNKNOWN, Loader
from ..script import Script

LEVEL = Level.ERROR

_OF_WORKERS = {"persistent_workers": False, "prefetch_factor": None, "multiprocessing_context": None, "timeout": 0}
_WITH_BATCH_SAMPLER = ("batch_size", "shuffle", "sampler", "drop_last")


def check(script: Script) -> Iterator[Remark]:
    for loader in script.loaders:
        for contradiction in (_without_workers, _with_a_sampler, _without_batches, _of_a_stream):
            yield from contradiction(script, loader)


def _without_workers(script: Script, loader: Loader) -> Iterator[Remark]:
    if loader.literal("num_workers", 0) != 0 or "pool" in loader.arguments:
        return
    for name, default in _OF_WORKERS.items():
        if _differs(loader, name, default):
            effect = "has no effect" if name == "timeout" else "is a ValueError"
            yield Remark(loader.call, f"{name} without workers {effect}", "num_workers=4 (or more)")


def _with_a_sampler(script: Script, loader: Loader) -> Iterator[Remark]:
    made = _made(script, loader)
    if made("sampler") and loader.literal("shuffle") is True:
        yield Remark(loader.call, "shuffle=True with a sampler is a ValueError", "leave out shuffle")
    if made("batch_sampler"):
        for name in _WITH_BATCH_SAMPLER:
            if made(name) if name == "sampler" else _differs(loader, name, 1 if name == "batch_size" else False):
                yield Remark(
                    loader.call,
                    f"{name} with a batch_sampler is a ValueError",
                    f"leave out {name}: the batch_sampler says what is in a batch",
                )


def _differs(loader: Loader, name: str, default: object) -> bool:
    return loader.literal(name, default) not in (UNKNOWN, default)


def _without_batches(_: Script, loader: Loader) -> Iterator[Remark]:
    if loader.literal("batch_size", 1) is None and loader.literal("drop_last") is True:
        yield Remark(loader.call, "drop_last=True with batch_size=None is a ValueError", "leave out drop_last")


def _of_a_stream(script: Script, loader: Loader) -> Iterator[Remark]:
    value = script.value_of(loader.argument("dataset"))
    made = script.class_named(value.func) if isinstance(value, ast.Call) else None
    dataset = next((one for one in script.datasets if one.node is made), None) if made else None
    if dataset is None or not dataset.iterable or "__getitem__" in dataset.methods:
        return
    if loader.literal("shuffle") is True:
        yield Remark(
            loader.call,
            f"shuffle=True with {dataset.name}, an iterable data set, is a ValueError",
            f"leave out shuffle, and shuffle in {dataset.name}.__iter__",
        )


def _made(script: Script, loader: Loader) -> Callable[[str], bool]:
    """Whether an argument is made in this file: a name may stand for None when the program is not distributed."""
    return lambda name: isinstance(script.value_of(loader.argument(name)), ast.Call)
