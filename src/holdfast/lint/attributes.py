"""What a data set keeps: attributes that its constructor gives it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from .bindings import dotted
from .datasets import DatasetClass, methods_of
from .script import Script


@dataclass(frozen=True)
class Made:
    """``self.file = h5py.File(path)`` in a data set, a transform, or a class that one of them keeps an instance of:
    ``attribute`` and ``maker`` as they are written."""

    dataset: DatasetClass
    attribute: str
    maker: str
    call: ast.Call


def made_in_init(script: Script, *makers: str) -> Iterator[Made]:
    """Attributes of a data set that ``__init__``, or a method that it calls, sets to what one of these makers made.

    The call may be in a list, a dict or a comprehension: the data set keeps those too. What a ``with`` block opened is
    closed again, and is none.
    """
    if not script.may_start_workers:
        return
    calls = script.calls_to(*makers)
    held = _held(script) if calls else {}
    for call in calls:
        keeper = held.get(script.class_of(call))
        attribute = _kept_as(script, call)
        if keeper is not None and attribute and script.method_of(call) in _constructing(keeper):
            yield Made(keeper, attribute, dotted(call.func), call)


def _held(script: Script) -> dict[ast.ClassDef | None, DatasetClass]:
    """The data sets of the file, callables that workers are handed with them, and classes of the file whose instances
    the constructors of these keep."""
    held: dict[ast.ClassDef | None, DatasetClass] = {dataset.node: dataset for dataset in script.datasets}
    for item in script.items:
        if item.owner is not None and item.owner not in held and item.is_callable:
            held[item.owner] = DatasetClass(item.owner, methods_of(item.owner), iterable=False)
    waiting = list(held.values())
    while waiting:
        for method in _constructing(waiting.pop()):
            for call in (node for node in ast.walk(method) if isinstance(node, ast.Call)):
                made = script.class_named(call.func)
                if made is not None and made not in held and _kept_as(script, call):
                    held[made] = DatasetClass(made, methods_of(made), iterable=False)
                    waiting.append(held[made])
    return held


def _constructing(dataset: DatasetClass) -> list[ast.AST]:
    """``__init__``, and methods that it calls."""
    begin = dataset.methods.get("__init__")
    if begin is None:
        return []
    called = {dotted(node.func) for node in ast.walk(begin) if isinstance(node, ast.Call)}
    return [begin, *(method for name, method in dataset.methods.items() if f"self.{name}" in called)]


def _kept_as(script: Script, call: ast.Call) -> str:
    """``self.file`` if that is what the statement around the call sets to it, or to a container with it."""
    inner: ast.AST = call
    for one in script.above(call):
        if isinstance(one, ast.Assign | ast.AnnAssign):
            targets = one.targets if isinstance(one, ast.Assign) else [one.target]
            return next((name for name in map(dotted, targets) if name.startswith("self.")), "")
        if not (_keeps(one, inner) or _is_seeding(one)):
            return ""
        inner = one
    return ""


def _keeps(around: ast.AST, inner: ast.AST) -> bool:
    """Whether the inner expression is what the one around it holds or becomes. A part by name, ``File(p)["images"]``,
    keeps the handle open; by number or slice it is a value."""
    if isinstance(around, ast.ListComp):
        return inner is around.elt
    if isinstance(around, ast.Subscript):
        return isinstance(around.slice, ast.Constant) and isinstance(around.slice.value, str)
    return isinstance(around, ast.List | ast.Tuple | ast.Dict | ast.DictComp | ast.IfExp | ast.BoolOp)


def _is_seeding(node: ast.AST) -> bool:
    """``torch.Generator().manual_seed(0)`` is the generator."""
    called = node.func if isinstance(node, ast.Call) else node
    return isinstance(called, ast.Attribute) and called.attr == "manual_seed"
