"""Which functions of a file run in workers: the *item context* that most rules ask about."""

from __future__ import annotations

import ast
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from .bindings import Function, keywords
from .datasets import Method, methods_of

if TYPE_CHECKING:
    from .script import Script

_SAMPLES = ("__getitem__", "__getitems__", "__iter__", "__next__")
_TRANSFORMS = ("transform", "transforms", "target_transform", "batch_transform")
_PARTIAL = "functools.partial"
PYTHONS_POOLS = ("multiprocessing.Pool", "concurrent.futures.ProcessPoolExecutor")
POOLS = (*PYTHONS_POOLS, "holdfast.Pool", "holdfast.Executor")
POOL_METHODS = (
    *("map", "imap", "imap_unordered", "starmap", "apply", "map_async", "starmap_async", "apply_async", "submit"),
)


class Role(Enum):
    """What a function is to the worker that calls it."""

    SAMPLE = "sample"  # of a data set: __getitem__ and its kin
    COLLATE = "collate"
    TRANSFORM = "transform"
    WORKER_INIT = "worker_init"  # once in each worker
    TASK = "task"  # what a process pool is given

    @property
    def of_loader(self) -> bool:
        return self is not Role.TASK


@dataclass(frozen=True, eq=False)
class ItemFunction:
    """``entry`` is by what name workers call it, or the function that calls it: ``Images.__getitem__``."""

    node: Function
    role: Role
    owner: ast.ClassDef | None
    entry: str

    @property
    def name(self) -> str:
        """As a message should call it: ``Images._read``."""
        own = "a lambda" if isinstance(self.node, ast.Lambda) else self.node.name
        return f"{self.owner.name}.{own}" if self.owner and not isinstance(self.node, ast.Lambda) else own

    @property
    def is_callable(self) -> bool:
        """Whether workers are handed an object to call, and with it all that it keeps."""
        return self.role.of_loader and not isinstance(self.node, ast.Lambda) and self.node.name == "__call__"

    @property
    def via(self) -> str:
        """The name, and who calls it: ``Images._read (called by Images.__getitem__)``."""
        return self.name if self.entry == self.name else f"{self.name} (called by {self.entry})"


def find(script: Script) -> list[ItemFunction]:
    """Those that are handed to a worker, and all functions of this file that they call, each once."""
    found: dict[ast.AST, ItemFunction] = {}
    waiting = deque(_entries(script))
    while waiting:
        item = waiting.popleft()
        if item.node in found:
            continue
        found[item.node] = item
        waiting.extend(_called(script, item))
    return list(found.values())


def _entries(script: Script) -> Iterator[ItemFunction]:
    yield from _samples(script)
    for loader in script.loaders:
        yield from _handed(script, loader.argument("collate_fn"), Role.COLLATE)
    yield from _transforms(script)
    for loader in script.loaders:
        yield from _handed(script, loader.argument("worker_init_fn"), Role.WORKER_INIT)
    for given in tasks(script):
        yield from _handed(script, given, Role.TASK)


def _samples(script: Script) -> Iterator[ItemFunction]:
    for dataset in script.datasets:
        for name in _SAMPLES:
            if name in dataset.methods:
                yield _entry(dataset.methods[name], Role.SAMPLE, dataset.node)
        for name in ("collate_fn", "collate"):
            if name in dataset.methods:
                yield _entry(dataset.methods[name], Role.COLLATE, dataset.node)


def _transforms(script: Script) -> Iterator[ItemFunction]:
    for keyword in script.nodes(ast.keyword):
        if keyword.arg in _TRANSFORMS:
            yield from _handed(script, keyword.value, Role.TRANSFORM)
    for call in script.calls_ending_in("Compose", "Lambda"):
        yield from _handed_in_list(script, call)
    for node in script.nodes(ast.ClassDef):
        if node.name.endswith("Transform") and "__call__" in methods_of(node):
            yield _entry(methods_of(node)["__call__"], Role.TRANSFORM, node)


def _handed_in_list(script: Script, call: ast.Call) -> Iterator[ItemFunction]:
    for argument in call.args:
        for one in argument.elts if isinstance(argument, ast.List | ast.Tuple) else [argument]:
            yield from _handed(script, one, Role.TRANSFORM)


def tasks(script: Script, pools: tuple[str, ...] = POOLS) -> Iterator[ast.expr | None]:
    """What such pools are given to call."""
    for call in script.calls_of_method(*POOL_METHODS):
        assert isinstance(call.func, ast.Attribute)
        if is_pool(script, call.func.value, pools):
            yield call.args[0] if call.args else keywords(call).get("func", keywords(call).get("fn"))


def is_pool(script: Script, node: ast.expr, pools: tuple[str, ...] = POOLS) -> bool:
    """Whether it is a pool of processes, as far as the file shows: ``with Pool(4) as pool``, once or again."""
    values = script.values_of(node) if isinstance(node, ast.Name) else [node]
    return bool(values) and all(_makes_pool(script, value, pools) for value in values)


def _makes_pool(script: Script, made: ast.expr | None, pools: tuple[str, ...]) -> bool:
    value = script.value_of(made)
    if not isinstance(value, ast.Call):
        return False
    if script.resolve(value.func) in pools:
        return True
    return isinstance(value.func, ast.Attribute) and value.func.attr == "Pool" and is_context(script, value.func.value)


def is_context(script: Script, node: ast.expr, methods: tuple[str, ...] = ()) -> bool:
    """Whether it is a context of multiprocessing, ``get_context("spawn")``; of one of these ``methods``, if given."""
    value = script.value_of(node)
    if not isinstance(value, ast.Call) or script.resolve(value.func) != "multiprocessing.get_context":
        return False
    given = value.args[0] if value.args else keywords(value).get("method")
    return not methods or (isinstance(given, ast.Constant) and given.value in methods)


def _handed(script: Script, node: ast.expr | None, role: Role) -> Iterator[ItemFunction]:
    """The functions of this file behind an argument: a name, a method, a lambda, a partial, a callable object."""
    for function, owner in functions_behind(script, node):
        yield _entry(function, role, owner)


def functions_behind(script: Script, node: ast.expr | None) -> Iterator[tuple[Function, ast.ClassDef | None]]:
    if isinstance(node, ast.Lambda):
        yield node, None
    elif isinstance(node, ast.Name):
        function = script.function_named(node)
        if function is not None:
            yield function, None
        else:
            value = script.value_of(node)
            if value is not None and not isinstance(value, ast.Name):
                yield from functions_behind(script, value)
    elif isinstance(node, ast.Call) and script.resolve(node.func) == _PARTIAL and node.args:
        yield from functions_behind(script, node.args[0])
    elif isinstance(node, ast.Call):
        made = script.class_named(node.func)
        if made is not None and "__call__" in methods_of(made):
            yield methods_of(made)["__call__"], made
    elif isinstance(node, ast.Attribute):
        owner = _class_behind(script, node.value)
        if owner is not None and node.attr in methods_of(owner):
            yield methods_of(owner)[node.attr], owner


def _class_behind(script: Script, node: ast.expr) -> ast.ClassDef | None:
    """The class of ``self``, of an instance that was made in this file, or the class itself."""
    if isinstance(node, ast.Name) and node.id in {"self", "cls"}:
        return script.class_of(node)
    value = script.value_of(node)
    return script.class_named(value.func) if isinstance(value, ast.Call) else script.class_named(node)


def _entry(function: Function, role: Role, owner: ast.ClassDef | None) -> ItemFunction:
    item = ItemFunction(function, role, owner, "")
    return ItemFunction(function, role, owner, item.name)


def _called(script: Script, item: ItemFunction) -> Iterator[ItemFunction]:
    """Functions and methods of this file that the item function calls."""
    for call in ast.walk(item.node):
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name | ast.Attribute):
            for function, owner in _callees(script, call.func, item):
                yield ItemFunction(function, item.role, owner, item.entry)


def _callees(
    script: Script, called: ast.Name | ast.Attribute, item: ItemFunction
) -> Iterator[tuple[Function, ast.ClassDef | None]]:
    if isinstance(called, ast.Name):
        function = script.function_named(called)
        if function is not None:
            yield function, None
    elif isinstance(called.value, ast.Name) and called.value.id in {"self", "cls"} and item.owner is not None:
        method = _method(script, item.owner, called.attr)
        if method is not None:
            yield method, item.owner


def _method(script: Script, owner: ast.ClassDef, name: str) -> Method | None:
    dataset = next((one for one in script.datasets if one.node is owner), None)
    return (dataset.methods if dataset else methods_of(owner)).get(name)
