"""A loader of torch's becomes ours before anything is in it; and a class that is made of torch's is made of ours."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any

import torch.utils.data
from torch.utils.data import IterableDataset

from holdfast._engine.notices import warn
from holdfast.errors import NotAdopted
from holdfast.loader import OF_A_POOL, DataLoader

from .options import policy_of

# What a loader without workers cannot have, in torch: where num_workers=0 is said from outside, it goes.
_NEED_WORKERS = ("prefetch_factor", "persistent_workers", "timeout", "multiprocessing_context")
# They replace the whole of torch's loader, and know its inside: theirs stay as they are.
_LEFT_ALONE = ("torchdata",)


class Maker:
    """Makes loaders with the options of the run, and has each of them noted."""

    def __init__(self, options: Mapping[str, Any], note: Callable[[Any], None]) -> None:
        self._defaults, self._note = Defaults(options), note
        self._stock: Any = torch.utils.data.DataLoader
        self._ours = DataLoader.__init__
        self._signature = inspect.signature(self._ours)
        self._being_made: set[int] = set()  # ids: those whose torch's part is torch's to make
        DataLoader.__init__ = self._making()  # type: ignore[method-assign]
        for made in self._stock.__subclasses__():
            self.rebase(made)

    def begin(self, loader: Any, torchs: Callable[..., None], args: Any, kwargs: Any) -> None:
        """In the place of torch's constructor, which is ``torchs``."""
        is_stock = type(loader) is self._stock
        if id(loader) in self._being_made or not (is_stock or isinstance(loader, DataLoader)):
            torchs(loader, *args, **kwargs)
        elif not is_stock:
            DataLoader.__init__(loader, *args, **kwargs)  # the program's class calls torch's constructor by its name
        elif (refusal := self._refusal(loader, args, kwargs)) is None:
            self._note(loader)
        else:
            torchs(loader, *args, **kwargs)  # or its own error, where torch refuses it, too
            warn(NotAdopted(f"this DataLoader stays torch's own: {refusal}"))

    def rebase(self, made: Any) -> None:
        """A class of the program's."""
        alone = any(each.__module__.partition(".")[0] in _LEFT_ALONE for each in made.__mro__)
        if made is DataLoader or alone or self._stock not in made.__bases__:
            return
        bases = dict.fromkeys(DataLoader if base is self._stock else base for base in made.__bases__)
        try:
            made.__bases__ = tuple(bases)
        except TypeError as error:  # another base of it, written in C, does not go together with ours
            warn(NotAdopted(f"{made.__qualname__} stays made of torch's DataLoader: {error}"))

    def _making(self) -> Callable[..., None]:
        @functools.wraps(self._ours)
        def __init__(loader: Any, *args: Any, **kwargs: Any) -> None:
            self._construct(loader, args, kwargs)
            self._note(loader)

        return __init__

    def _construct(self, loader: Any, args: Any, kwargs: Any) -> None:
        bound = self._signature.bind_partial(loader, *args, **kwargs)
        self._defaults.complete(bound.arguments)
        self._being_made.add(id(loader))
        try:
            self._ours(*bound.args, **bound.kwargs)
        finally:
            self._being_made.discard(id(loader))

    def _refusal(self, loader: Any, args: Any, kwargs: Any) -> str | None:
        """None: it is ours now. Else what we have against it, and it is as it was before."""
        before = dict(vars(loader))  # frameworks leave notes on what is not even made
        object.__setattr__(loader, "__class__", DataLoader)
        try:
            self._construct(loader, args, kwargs)
            return None
        except (TypeError, ValueError) as refusal:
            object.__setattr__(loader, "__class__", self._stock)
            vars(loader).clear()
            vars(loader).update(before)
            return str(refusal)


class Defaults:
    """Values for arguments that the program does not give; ``num_workers`` also where it does."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        self._values = {name: value for name, value in options.items() if name != "num_workers"}
        self._num_workers: int | None = options.get("num_workers")
        if "on_error" in options:
            self._values["on_error"] = policy_of(options["on_error"])

    def complete(self, given: dict[str, Any]) -> None:
        for name, value in self._values.items():
            if name not in given and self._fits(name, given):
                given[name] = value
        if self._num_workers is not None and given.get("pool") is None:
            given["num_workers"] = self._num_workers
            for name in _NEED_WORKERS if self._num_workers == 0 else ():
                given.pop(name, None)

    def _fits(self, name: str, given: Mapping[str, Any]) -> bool:
        if name == "shard":
            return isinstance(given.get("dataset"), IterableDataset)
        return given.get("pool") is None or name not in OF_A_POOL
