"""What a function does itself, and what it hands out."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TypeVar

from .bindings import Function, dotted
from .script import Script

N = TypeVar("N", bound=ast.AST)

_OTHERS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)


def own(function: Function, kind: type[N]) -> Iterator[N]:
    """Nodes of this kind in the order of the file, without those of functions and classes inside."""
    waiting = [function.body] if isinstance(function, ast.Lambda) else [*reversed(function.body)]
    while waiting:
        node: ast.AST = waiting.pop()
        if isinstance(node, kind):
            yield node
        if not isinstance(node, _OTHERS):
            waiting.extend(reversed(list(ast.iter_child_nodes(node))))  # type: ignore[arg-type]


def results(script: Script, function: Function) -> Iterator[ast.expr]:
    """What it returns or yields, taken apart: the elements of tuples, lists and dicts, and what names stand for. What
    an ``__iter__`` returns is gone through, and is not a result."""
    if isinstance(function, ast.Lambda):
        yield from parts(script, function.body)
        return
    for node in own(function, ast.Return) if function.name != "__iter__" else ():
        yield from parts(script, node.value)
    for produced in own(function, ast.Yield):
        yield from parts(script, produced.value)


def parts(script: Script, node: ast.expr | None) -> Iterator[ast.expr]:
    value = script.value_of(node)
    if isinstance(value, ast.Tuple | ast.List | ast.Set):
        for element in value.elts:
            yield from parts(script, element)
    elif isinstance(value, ast.Dict):
        for element in value.values:
            yield from parts(script, element)
    elif isinstance(value, ast.IfExp):
        yield from parts(script, value.body)
        yield from parts(script, value.orelse)
    elif value is not None:
        yield value


def is_set_once(script: Script, node: ast.AST, name: str) -> bool:
    """Whether an assignment is the kind that fills something on first use: an ``if`` of the same function asks about
    ``name``, or it is in the handler of a ``try`` that did."""
    function = script.function_of(node)
    tests = [] if function is None else [branch.test for branch in own(function, ast.If)]
    if any(_asks(test, name) for test in tests):
        return True
    handler = next((one for one in script.above(node) if isinstance(one, ast.ExceptHandler)), None)
    attempt = script.parent(handler) if handler is not None else None
    tried = attempt.body if isinstance(attempt, ast.Try) else []
    return any(dotted(one) == name for statement in tried for one in ast.walk(statement))


def _asks(test: ast.expr, name: str) -> bool:
    """``if self.file is None``, ``if not hasattr(self, "file")``."""
    last = name.rpartition(".")[2]
    return any(dotted(one) == name or (isinstance(one, ast.Constant) and one.value == last) for one in ast.walk(test))
