"""An empty stand-in for torchvision, with the two names that MosaicML Streaming imports from it."""

from __future__ import annotations

import sys
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any


def stand_in() -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "torchvision"]:
        del sys.modules[name]  # what a failed import has left
    _module("torchvision")
    _module("torchvision.datasets", VisionDataset=type("VisionDataset", (), {}))
    _module("torchvision.transforms")
    _module("torchvision.transforms.functional", to_tensor=None)


def _module(name: str, **names: Any) -> None:
    module = ModuleType(name)
    module.__spec__ = ModuleSpec(name, None)  # others ask whether there is a torchvision by looking for it
    vars(module).update(names)
    sys.modules[name] = module
