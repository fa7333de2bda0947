"""Samples that are None, where torch's own collate function will meet them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from .bodies import own
from .datasets import DatasetClass, Method
from .script import Script
from .streams import loaders_of


@dataclass(frozen=True, eq=False)
class NoneSample:
    """``node`` is the ``return``, or the handler after which ``__getitem__`` comes to its end."""

    dataset: DatasetClass
    node: ast.Return | ast.ExceptHandler
    handler: ast.ExceptHandler | None

    @property
    def is_written(self) -> bool:
        return isinstance(self.node, ast.Return)


def none_samples(script: Script) -> Iterator[NoneSample]:
    for dataset in script.datasets:
        method = dataset.methods.get("__getitem__")
        if method is None or method not in dataset.node.body:
            continue
        given: list[ast.Return | ast.ExceptHandler] = [*_returned(method), *_fallen_through(method)]
        for node in given:
            handler = node if isinstance(node, ast.ExceptHandler) else _handler_of(script, node)
            if _is_collated_by_default(script, dataset, handler is not None):
                yield NoneSample(dataset, node, handler)


def _returned(method: Method) -> Iterator[ast.Return]:
    for node in own(method, ast.Return):
        values = node.value.elts if isinstance(node.value, ast.Tuple) and node.value.elts else [node.value]
        if all(value is None or (isinstance(value, ast.Constant) and value.value is None) for value in values):
            yield node


def _fallen_through(method: Method) -> Iterator[ast.ExceptHandler]:
    """``try: return read(path)`` / ``except OSError: print(path)``, and nothing after it."""
    last = method.body[-1]
    if isinstance(last, ast.Try) and any(isinstance(one, ast.Return) for one in (*last.body, *last.orelse)):
        ends = (ast.Return, ast.Raise, ast.Yield)
        for handler in last.handlers:
            if not any(isinstance(node, ends) or _exits(node) for node in ast.walk(handler)):
                yield handler


def _exits(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and getattr(node.func, "attr", getattr(node.func, "id", "")) in {"exit", "_exit"}


def _handler_of(script: Script, node: ast.AST) -> ast.ExceptHandler | None:
    return next((one for one in script.above(node) if isinstance(one, ast.ExceptHandler)), None)


def _is_collated_by_default(script: Script, dataset: DatasetClass, in_handler: bool) -> bool:
    """As far as the file shows. Where it shows no loader, only a handler that gives None tells of a bad sample."""
    loaders = loaders_of(script, dataset)
    if loaders:
        return any(one.literal("collate_fn") is None and one.literal("batch_size", 1) is not None for one in loaders)
    return in_handler and "collate" not in script.text
