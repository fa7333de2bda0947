"""Which classes of a file are data sets."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .script import Script

Method = ast.FunctionDef | ast.AsyncFunctionDef

_ITERABLE = ("IterableDataset", "IterDataPipe")
_ENDINGS = ("Dataset", "DataPipe")
_OTHERS = ("tensorflow.", "datasets.", "paddle.")  # their data sets are not read by a torch loader's workers


@dataclass(frozen=True, eq=False)
class DatasetClass:
    """A class that workers take samples from. ``methods`` has those of base classes in the same file too;
    ``iterable``: workers iterate over it, rather than ask for an index."""

    node: ast.ClassDef
    methods: dict[str, Method]
    iterable: bool

    @property
    def name(self) -> str:
        return self.node.name


def find(script: Script) -> list[DatasetClass]:
    """Classes whose base is called ``...Dataset`` or is such a class of this file, and classes with ``__getitem__``
    that a loader of this file is given."""
    classes = {node.name: node for node in script.nodes(ast.ClassDef)}
    given = _given_to_loaders(script)
    found = []
    for node in script.nodes(ast.ClassDef):
        bases = list(_bases(script, node, classes, set()))
        methods = all_methods(node, classes, bases)
        if any(_is_dataset(base) for base in bases) or (node.name in given and "__getitem__" in methods):
            streams = "__iter__" in methods and "__getitem__" not in methods
            iterable = streams or any(base.endswith(_ITERABLE) for base in bases)
            found.append(DatasetClass(node, methods, iterable))
    return found


def methods_of(node: ast.ClassDef) -> dict[str, Method]:
    return {one.name: one for one in node.body if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)}


def all_methods(node: ast.ClassDef, classes: dict[str, ast.ClassDef], bases: list[str]) -> dict[str, Method]:
    methods: dict[str, Method] = {}
    for base in reversed(bases):
        if base.removeprefix(".") in classes:
            methods |= methods_of(classes[base.removeprefix(".")])
    return methods | methods_of(node)


def _bases(script: Script, node: ast.ClassDef, classes: dict[str, ast.ClassDef], seen: set[str]) -> Iterator[str]:
    """Full names of all bases that can be seen from here, nearest first."""
    for base in node.bases:
        name = script.resolve(base.value if isinstance(base, ast.Subscript) else base)
        if name and name not in seen:
            seen.add(name)
            yield name
            own = classes.get(name.removeprefix("."))
            if own is not None and own is not node:
                yield from _bases(script, own, classes, seen)


def _is_dataset(base: str) -> bool:
    return base.endswith(_ENDINGS) and not base.startswith(_OTHERS)


def _given_to_loaders(script: Script) -> set[str]:
    """Names of classes whose instances are the first argument of a loader: ``DataLoader(Images(...))``."""
    values = [script.value_of(loader.argument("dataset")) for loader in script.loaders]
    return {script.resolve(value.func).removeprefix(".") for value in values if isinstance(value, ast.Call)}
