"""Who am I, asked from inside a worker: torch's answer in processes, the thread's own in threads."""

from __future__ import annotations

import threading
from typing import Any

import torch.utils.data

of_thread = threading.local()


def get_worker_info() -> Any:
    """As ``torch.utils.data.get_worker_info``, and right in worker threads too, where torch's function says None."""
    info = getattr(of_thread, "info", None)
    return info if info is not None else torch.utils.data.get_worker_info()
