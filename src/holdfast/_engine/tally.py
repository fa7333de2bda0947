"""What is counted over all crews of one loader."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Tally:
    """Plain numbers that outlive the crews and go wherever the loader is copied or pickled to."""

    restarts: int = 0
