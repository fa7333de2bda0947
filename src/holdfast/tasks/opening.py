"""When a pool starts its workers, and whether they need torch.

That takes the zygote a second, for which the first pool of a program would wait, and most functions that pools are
given have nothing to do with torch. So where there is no zygote yet that has it, the first call is looked at: what its
function and its arguments are made of, and whether packages of these use torch. If they do, workers wait until the
zygote has imported it, once for all of them. What was not to be seen each worker imports for itself, in its time.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from itertools import islice
from types import ModuleType
from typing import Any

from holdfast._engine.launchers import FromZygote, Launcher
from holdfast._system import starts
from holdfast._transport.parcels import Parcel
from holdfast._transport.shipment import modules_named_in

from .calls import Call

NAMES = 20_000  # that are looked at in packages; whoever has more of them is taken to need torch
PARTS = 8  # of an argument
_INNOCENT = frozenset({*sys.stdlib_module_names, "numpy", "holdfast", "cloudpickle", "__main__", "__mp_main__"})


class Opening:
    """Owned by the works of a pool, and used under their lock. ``start`` starts all workers."""

    def __init__(self, launcher: Launcher, start: Callable[[], None]) -> None:
        self._start, self._wanted = start, False
        self._cold: FromZygote | None = None  # until it is known what they need
        if isinstance(launcher, FromZygote) and not starts.is_warm():
            self._cold = launcher

    def want(self) -> None:
        """All workers are to be started, now or with the first call."""
        self._wanted = True
        if self._cold is None:
            self._start()

    def call(self, call: Call) -> None:
        if self._cold is not None:
            if _needs_torch(self._cold, call):
                starts.warm((), wait=False)  # whoever starts a worker then waits for that
            self.now()

    def now(self) -> None:
        """Wait for no call any more."""
        if self._cold is not None:
            self._cold = None
            if self._wanted:
                self._start()


def _needs_torch(launcher: FromZygote, call: Call) -> bool:
    sent = call.kit.sent
    packed = sent.packed if sent is not None else b""
    names = [*launcher.modules, *modules_named_in(packed.layout.skeleton if isinstance(packed, Parcel) else packed)]
    names += [type(part).__module__ for part in _parts(call.items[0])]
    return _lead_to_torch({name.partition(".")[0] for name in names})


def _parts(value: Any, depth: int = 4) -> Iterator[Any]:
    """Of the arguments of a call, a list of tensors: what it is made of, the first few of each."""
    yield value
    if depth and isinstance(value, list | tuple | dict):
        for part in islice(value.values() if isinstance(value, dict) else value, PARTS):
            yield from _parts(part, depth - 1)


def _lead_to_torch(packages: set[str]) -> bool:
    """Whether one of them is torch, or uses it, or something that does."""
    waiting, known, seen = packages - _INNOCENT, set(packages), 0
    while waiting:
        package = waiting.pop()
        if package == "torch":
            return True
        for home in _homes(package):
            seen += 1
            used = home.partition(".")[0]
            if used not in known:
                known.add(used)
                if used not in _INNOCENT:
                    waiting.add(used)
        if seen > NAMES:
            return True
    return False


def _homes(package: str) -> Iterator[str]:
    """Of all that has a name in a package: the module that it comes from."""
    within = package + "."
    for module in [module for name, module in sys.modules.items() if name == package or name.startswith(within)]:
        for value in list(getattr(module, "__dict__", {}).values()):
            home = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None)
            if type(home) is str:
                yield home
