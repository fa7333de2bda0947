"""Where a file makes loaders, and with which arguments."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from .bindings import keywords

if TYPE_CHECKING:
    from .script import Script

TORCH_LOADERS = (
    "torch.utils.data.DataLoader",
    "torchdata.stateful_dataloader.StatefulDataLoader",
    "torch_geometric.loader.DataLoader",
    "torch_geometric.data.DataLoader",
    "monai.data.DataLoader",
)
LOADERS = (*TORCH_LOADERS, "holdfast.DataLoader")
_POSITIONAL = (
    *("dataset", "batch_size", "shuffle", "sampler", "batch_sampler", "num_workers", "collate_fn", "pin_memory"),
    *("drop_last", "timeout", "worker_init_fn", "multiprocessing_context", "generator"),
)


_TAKE_ALL = ("iter", "list", "tuple", "sum", "sorted", "set")
_AROUND = {*_TAKE_ALL, "enumerate", "next", "zip", "tqdm", "islice", "track", "chain"}


class Unknown:
    """What is not written out in the file."""


UNKNOWN = Unknown()


@dataclass(frozen=True, eq=False)
class Loader:
    """A call that makes one. ``open``: there are ``*args`` or ``**kwargs``, so an argument that is missing here may
    be in them."""

    call: ast.Call
    arguments: dict[str, ast.expr]
    open: bool
    is_ours: bool
    constants: dict[str, ast.Constant] = field(default_factory=dict)  # of arguments that are names: ``WORKERS``

    def argument(self, name: str) -> ast.expr | None:
        return self.arguments.get(name)

    def literal(self, name: str, default: object = None) -> object:
        """The value, if it is written as a literal; the default, if it is not given; else ``UNKNOWN``."""
        node = self.constants.get(name, self.arguments.get(name))
        if node is None:
            return UNKNOWN if self.open else default
        try:
            return ast.literal_eval(node)
        except ValueError:
            return UNKNOWN

    @property
    def forks(self) -> bool | None:
        """Whether the way its workers start is written out: True for fork, False for another, None if it is not."""
        given = self.arguments.get("multiprocessing_context")
        names = {node.value for node in ast.walk(given) if isinstance(node, ast.Constant)} if given else set()
        if not names & {"fork", "spawn", "forkserver"}:
            return None
        return "fork" in names

    @property
    def has_workers(self) -> bool:
        """Whether ``num_workers`` is given, and is not a plain 0."""
        return "num_workers" in self.arguments and self.literal("num_workers") != 0


def find(script: Script) -> list[Loader]:
    return [_read(script, call) for call in script.calls_to(*LOADERS)]


def _read(script: Script, call: ast.Call) -> Loader:
    starred = any(isinstance(one, ast.Starred) for one in call.args)
    named = {} if starred else dict(zip(_POSITIONAL, call.args))
    is_open = starred or any(keyword.arg is None for keyword in call.keywords)
    arguments = named | dict(keywords(call))
    values = {name: script.value_of(node) for name, node in arguments.items() if isinstance(node, ast.Name)}
    constants = {name: value for name, value in values.items() if isinstance(value, ast.Constant)}
    made = script.resolve(call.func)
    ours = made.startswith("holdfast.") or (script.is_adopted and made == TORCH_LOADERS[0])
    return Loader(call, arguments, is_open, ours, constants)


def standing_for(script: Script, node: ast.expr | None) -> Loader | None:
    """The loader that an expression is: its call, or a name for it."""
    value = script.value_of(node)
    return next((loader for loader in script.loaders if loader.call is value), None)


def behind(script: Script, node: ast.expr | None) -> Loader | None:
    """The loader that an expression iterates over: ``enumerate(tqdm(loader))``."""
    return standing_for(script, _innermost(script, node))


def iterations(script: Script) -> Iterator[tuple[ast.expr, Loader]]:
    """Where loaders are iterated over, by a loop or by what takes all of it. The expression is the one that is the
    loader: ``loader`` in ``enumerate(loader)``."""
    if not script.loaders:
        return
    iterated: list[ast.expr] = [loop.iter for loop in script.nodes(ast.For, ast.comprehension)]
    iterated += [call for call in script.calls_to(*_TAKE_ALL) if call.args]
    for node in dict.fromkeys(_innermost(script, one) for one in iterated):
        loader = behind(script, node)
        if node is not None and loader is not None:
            yield node, loader


def _innermost(script: Script, node: ast.expr | None) -> ast.expr | None:
    """What is inside of ``enumerate``, ``tqdm`` and their kin, also where that has a name."""
    while True:
        value = script.value_of(node)
        if not isinstance(value, ast.Call) or not value.args or _last_name(value.func) not in _AROUND:
            return node
        node = value.args[0]


def _last_name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
