"""Types that the program taught torch to collate. Imported with the loader: what is in torch's map by then is stock."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

import numpy
import torch
from torch.utils.data._utils.collate import default_collate_fn_map

STOCK: dict[Any, Callable[..., Any]] = dict(default_collate_fn_map)
# One of each kind of which most samples are made.
PLAIN: tuple[Any, ...] = ((), {}, 0, 0.0, torch.empty(0), numpy.empty(0))
OURS: list[Callable[..., Any]] = []  # put there by this process as a worker; a loader inside it ships none of them


def types_added_by_user() -> dict[Any, Callable[..., Any]]:
    """What the program put into torch's map since holdfast was imported; workers get it with their job."""
    return {kind: fn for kind, fn in default_collate_fn_map.items() if fn is not STOCK.get(kind) and fn not in OURS}


def are_apart(added: Collection[Any]) -> bool:
    """Whether these types are none that plain samples have: libraries add some of their own when they are imported."""
    return not any(isinstance(value, kind) for kind in added for value in PLAIN)
