"""How long the doctor's audit of a large data set takes: ``python -m bench.own.audit``.

It looks at a few items, and pickles for a moment only: 100 ms are allowed for a million items.
"""

from __future__ import annotations

import gc
import math
import time
from collections.abc import Callable
from typing import Any

from torch.utils.data import DataLoader as TorchLoader

from holdfast.doctor import graph
from holdfast.targets.target import Target

COUNT = 1_000_000
ROUNDS = 15
KINDS: dict[str, Callable[[int], Any]] = {
    "str": lambda count: [f"/data/train/{i:07}.jpg" for i in range(count)],
    "dicts": lambda count: [{"path": f"{i}.jpg", "label": i % 10, "box": [1.0, 2.0]} for i in range(count)],
    "nested": lambda count: {"train": [[(str(i), [j]) for j in range(10)] for i in range(count // 10)]},
}


class _Items:
    def __init__(self, items: Any) -> None:
        self.items = items

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, index: int) -> Any:
        return self.items[index]


def seconds(kind: str) -> float:
    """The best of several: it forks, and so depends on who else wants the CPU at that moment."""
    gc.disable()  # while it is built, which takes three times as long otherwise
    dataset = _Items(KINDS[kind](COUNT))
    gc.enable()
    loader = TorchLoader(dataset, num_workers=2, multiprocessing_context="spawn")  # type: ignore[arg-type]
    best = math.inf
    for _ in range(ROUNDS):
        began = time.perf_counter()
        graph.audit(Target(kind, dataset, loader))
        best = min(best, time.perf_counter() - began)
    return best


if __name__ == "__main__":
    for kind in KINDS:
        print(f"audit of {COUNT:,} items ({kind}): {seconds(kind) * 1000:.0f} ms")
