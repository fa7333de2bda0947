"""When a pool starts its workers, and whether they need torch.

That takes the zygote a second, for which the first pool of a program would wait, and most functions that pools are
given have nothing to do with torch. So where there is no zygote yet that has it, the first call is looked at: what its
function and its arguments are made of, and whether packages of these use torch. If they do, workers wait until the
zygote has imported it, once for all of them. What was not to be seen each worker imports for itself, in its time.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate, islice
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

    def want(self, at_once: bool) -> None:
        """All workers are to be started: now, or with the first call."""
        self._wanted = True
        if self._cold is None:
            self._start()
        elif at_once:
            self.now()

    def call(self, call: Call) -> None:
        if self._cold is not None:
            self.now(_modules_of(call))

    def now(self, modules: Sequence[str] = ()) -> None:
        """Wait for no call any more, with what is known of it: modules that it needs."""
        cold, self._cold = self._cold, None
        if cold is not None:
            if starts.LOADING in modules or _lead_to_torch([*cold.modules, *modules]):
                starts.warm((), wait=False)  # whoever starts a worker then waits for that
            if self._wanted:
                self._start()


def _modules_of(call: Call) -> list[str]:
    sent = call.kit.sent
    packed = sent.packed if sent is not None else b""
    of_function = modules_named_in(packed.layout.skeleton if isinstance(packed, Parcel) else packed)
    return [*of_function, *(type(part).__module__ for part in _parts(call.items[0]))]


def _parts(value: Any, depth: int = 4) -> Iterator[Any]:
    """Of the arguments of a call, a list of tensors: what it is made of, the first few of each."""
    yield value
    if depth and isinstance(value, list | tuple | dict):
        for part in islice(value.values() if isinstance(value, dict) else value, PARTS):
            yield from _parts(part, depth - 1)


def _lead_to_torch(modules: Iterable[str]) -> bool:
    """Whether one of them, or the package that it is part of, uses torch, or something that does."""
    known = set(_INNOCENT)
    waiting, seen = {part for name in modules for part in _parts_of_name(name)} - known, 0
    while waiting:
        one = waiting.pop()
        known.add(one)
        if one == "torch":
            return True
        for home in _homes(one):
            seen += 1
            used = home.partition(".")[0]
            if used not in known:
                waiting.add(used)
        if seen > NAMES:
            return True
    return False


def _parts_of_name(name: str) -> list[str]:
    """The package, for all that is in it; of ours, each module that is imported with this one."""
    package, *inner = name.split(".")
    return list(accumulate([package, *inner], "{}.{}".format)) if package == "holdfast" else [package]


def _homes(package: str) -> Iterator[str]:
    """Of all that has a name in there: the module that it comes from."""
    names = [package] if "." in package else [name for name in sys.modules if name.partition(".")[0] == package]
    for module in map(sys.modules.get, names):
        for value in list(getattr(module, "__dict__", {}).values()):
            home = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None)
            if type(home) is str:
                yield home
