"""The roll of the quarantine: the file that ``on_error=Quarantine(file)`` reads. Lines that are there stay."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from holdfast.quarantine import append, listed

from .reader import Failed
from .writing import writing


class Roll:
    """``before``: lines that were there; ``added``: lines that are new."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with writing(path):
            self._known = {(json.dumps(index), where) for index, where in listed(path)}
        self.before, self.added = len(self._known), 0

    def add(self, index: Any, failed: Failed) -> None:
        """Once only, also when an earlier scan has found it. ``index``: what the loader's sampler would say."""
        known = json.dumps(index), failed.where
        if known in self._known and index is not None:
            return
        self._known.add(known)
        self.added += 1
        told = {"where": failed.where, "kind": failed.kind, "error": failed.error, "when": failed.when}
        with writing(self.path):
            append(self.path, {"index": index, **told})
