"""Types that the program taught torch to collate. Imported with the loader: what is in torch's map by then is stock."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch.utils.data._utils.collate import default_collate_fn_map

STOCK: dict[Any, Callable[..., Any]] = dict(default_collate_fn_map)
OURS: list[Callable[..., Any]] = []  # put there by this process as a worker; a loader inside it ships none of them


def types_added_by_user() -> dict[Any, Callable[..., Any]]:
    """What the program put into torch's map since holdfast was imported; workers get it with their job."""
    return {kind: fn for kind, fn in default_collate_fn_map.items() if fn is not STOCK.get(kind) and fn not in OURS}
