"""The syntax tree of one file, walked once: nodes by kind, and who encloses whom."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from typing import Any, TypeVar, overload

from .bindings import Function

A = TypeVar("A", bound=ast.AST)
B = TypeVar("B", bound=ast.AST)
C = TypeVar("C", bound=ast.AST)

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
# Fields without nodes, or with nodes that are shared by all trees (ctx, operators): half of the time of a walk.
_LEAVES = {"ctx", "op", "ops", "id", "attr", "arg", "name", "names", "kind", "level", "module", "type_comment"}
_FIELDS = {
    kind: tuple(field for field in kind._fields if field not in _LEAVES)
    for kind in vars(ast).values()
    if isinstance(kind, type) and issubclass(kind, ast.AST)
}


class Tree:
    """Answers by place: what is around a node, and when does it run."""

    def __init__(self, text: str, tree: ast.Module, is_notebook: bool = False) -> None:
        self.text = text
        self.tree = tree
        self.is_notebook = is_notebook
        self._nodes: dict[type[ast.AST], list[ast.AST]] = defaultdict(list)
        self._parents: dict[ast.AST, ast.AST] = {}
        self._walk()

    def _walk(self) -> None:
        nodes, parents = self._nodes, self._parents
        waiting: list[ast.AST] = [self.tree]
        while waiting:
            node = waiting.pop()
            nodes[node.__class__].append(node)
            for field in _FIELDS[node.__class__]:
                value = getattr(node, field, None)
                if value.__class__ is list:
                    for child in value:
                        if isinstance(child, ast.AST):
                            parents[child] = node
                            waiting.append(child)
                elif isinstance(value, ast.AST):
                    parents[value] = node
                    waiting.append(value)

    @overload
    def nodes(self, kind: type[A], /) -> list[A]: ...
    @overload
    def nodes(self, kind: type[A], other: type[B], /) -> list[A | B]: ...
    @overload
    def nodes(self, kind: type[A], other: type[B], third: type[C], /) -> list[A | B | C]: ...
    def nodes(self, *kinds: type[ast.AST]) -> list[Any]:
        """All nodes of these kinds, in the order of the file."""
        found = [node for kind in kinds for node in self._nodes.get(kind, [])]
        return sorted(found, key=position)

    def parent(self, node: ast.AST) -> ast.AST | None:
        return self._parents.get(node)

    def above(self, node: ast.AST) -> Iterator[ast.AST]:
        """What encloses the node, innermost first."""
        above = self._parents.get(node)
        while above is not None:
            yield above
            above = self._parents.get(above)

    def function_of(self, node: ast.AST) -> Function | None:
        """The innermost function around the node. Decorators and defaults belong to the function around theirs."""
        inner = node
        for one in self.above(node):
            if isinstance(one, _FUNCTIONS) and self._in_body(one, inner):
                return one
            inner = one
        return None

    def class_of(self, node: ast.AST) -> ast.ClassDef | None:
        """The innermost class around the node, also from within its methods."""
        return next((one for one in self.above(node) if isinstance(one, ast.ClassDef)), None)

    def method_of(self, node: ast.AST) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
        """The method of a class that the node is in, however deep."""
        for one in self.above(node):
            if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef) and isinstance(self.parent(one), ast.ClassDef):
                return one
        return None

    def at_import(self, node: ast.AST) -> bool:
        """Whether it runs when another process imports this file: outside functions, and not under the main guard."""
        return self.function_of(node) is None and not self.under_main_guard(node)

    def under_main_guard(self, node: ast.AST) -> bool:
        return any(isinstance(one, ast.If) and _is_main_guard(one.test) for one in self.above(node))

    def in_loop(self, node: ast.AST) -> ast.For | ast.AsyncFor | ast.While | None:
        """The innermost loop of the same function that runs the node again and again."""
        inner = node
        for one in self.above(node):
            if isinstance(one, _FUNCTIONS):
                return None
            if isinstance(one, ast.For | ast.AsyncFor) and inner in one.body:
                return one
            if isinstance(one, ast.While) and inner not in one.orelse:
                return one
            inner = one
        return None

    def in_generator(self, node: ast.AST) -> bool:
        """Whether the innermost function around the node is a generator."""
        around = self.function_of(node)
        yields = self.nodes(ast.Yield, ast.YieldFrom)
        return around is not None and any(self.function_of(one) is around for one in yields)

    def is_caught(self, node: ast.AST, error: str) -> bool:
        """Whether this exception, raised there, is caught in the same function."""
        inner = node
        for one in self.above(node):
            if isinstance(one, _FUNCTIONS):
                return False
            if isinstance(one, ast.Try) and inner in one.body and any(_catches(each, error) for each in one.handlers):
                return True
            inner = one
        return False

    @staticmethod
    def _in_body(function: Function, inner: ast.AST) -> bool:
        return inner is function.body if isinstance(function, ast.Lambda) else inner in function.body


def position(node: ast.AST) -> tuple[int, int]:
    return getattr(node, "lineno", 0), getattr(node, "col_offset", 0)


def _catches(handler: ast.ExceptHandler, error: str) -> bool:
    if handler.type is None:
        return True
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(getattr(kind, "id", "") in {error, "Exception", "BaseException"} for kind in kinds)


def _is_main_guard(test: ast.expr) -> bool:
    return any(isinstance(node, ast.Name) and node.id == "__name__" for node in ast.walk(test))
