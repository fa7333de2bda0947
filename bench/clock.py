"""How often something is done in a second."""

from __future__ import annotations

import time
from collections.abc import Callable

ENOUGH = 0.5  # seconds; then it is not begun once more


def per_second(epoch: Callable[[], object]) -> float:
    """Epochs that are short are repeated: what disturbs a machine lasts longer than they do."""
    count, began = 0, time.perf_counter()
    while (seconds := time.perf_counter() - began) < ENOUGH:
        epoch()
        count += 1
    return count / seconds
