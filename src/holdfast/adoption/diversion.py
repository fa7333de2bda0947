"""What torch's class makes is ours: wherever its name was imported to, and whatever was made of it.

Not a class of ours in the place of torch's name: code that has the name already would keep the old class, stock loaders
would not be instances of the new one, and a metaclass that says so forbids subclasses their own. The class stays what
it is, and only its constructor is another one.

That is put in place as soon as torch is imported, before anybody can have wrapped it, and is light: our loader is
imported when the first one is made. It may be our loader's own import that imports torch, so it could not be sooner.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .making import Maker


class Diversion:
    """Of this process, for the rest of its life. ``letters``: the folder for them, where another process sums up."""

    def __init__(self, options: Mapping[str, Any], letters: str, began: float) -> None:
        self._options, self._letters, self._began = options, letters, began
        self._maker: Maker | None = None

    def begin(self) -> None:
        """When torch is there."""
        import torch.utils.data

        stock: Any = torch.utils.data.DataLoader
        torchs, attend = stock.__init__, stock.__init_subclass__.__func__

        @functools.wraps(torchs)
        def __init__(loader: Any, *args: Any, **kwargs: Any) -> None:
            self._made_ready().begin(loader, torchs, args, kwargs)

        def __init_subclass__(made: Any, /, **kwargs: Any) -> None:
            attend(made, **kwargs)
            if self._maker is not None:  # else it is done when there is one
                self._maker.rebase(made)

        stock.__init__ = __init__
        stock.__init_subclass__ = classmethod(__init_subclass__)

    def make_ready(self) -> None:
        """When our loader is there."""
        from . import usage
        from .making import Maker

        if self._letters:
            usage.tell_at_end(self._letters, self._began)
        self._maker = Maker(self._options, usage.note)

    def _made_ready(self) -> Maker:
        if self._maker is None:
            importlib.import_module("holdfast.loader")  # whoever imports it, `make_ready` is called
        assert self._maker is not None
        return self._maker
