"""One file as rules see it. It is walked once; everything else is worked out when a rule asks for it."""

from __future__ import annotations

import ast
from collections import defaultdict
from functools import cached_property
from typing import TYPE_CHECKING, cast

from .bindings import Function, Imports, Values, dotted, parameters
from .tree import Tree, position

if TYPE_CHECKING:
    from .contexts import ItemFunction
    from .datasets import DatasetClass
    from .loaders import Loader
    from .names import Names


class Script(Tree):
    """What rules ask: nodes by kind, calls by the full name of what is called, what encloses what, what a name stands
    for, and the data sets, loaders and *item functions* of the file."""

    is_adopted = False  # it runs under ``holdfast run``, where torch's loaders are ours

    # -- names

    @cached_property
    def imports(self) -> Imports:
        return Imports(self.nodes(ast.Import, ast.ImportFrom), self.tree.body)

    def resolve(self, node: ast.AST) -> str:
        """The full name of what an expression names: ``torch.utils.data.DataLoader`` however it was imported,
        ``.Images`` for a class of this file, ``open`` for a builtin, ``self.rng``; empty if a local variable hides the
        name, or if it is no name."""
        name = dotted(node)
        if not name or self._hidden(node, name.partition(".")[0]):
            return ""
        return self.imports.full(name)

    def calls_to(self, *names: str) -> list[ast.Call]:
        """Calls of what has one of these full names, in the order of the file."""
        found = [call for name in names for call in self._calls.get(name, ()) if self.resolve(call.func)]
        return sorted(found, key=position)

    def calls_under(self, *prefixes: str) -> list[ast.Call]:
        """Calls of anything whose full name begins so: ``numpy.random.``."""
        return self.calls_to(*(name for name in self._calls if name.startswith(prefixes)))

    def calls_ending_in(self, *lasts: str) -> list[ast.Call]:
        """Calls of anything whose full name ends so, of whichever library: ``Compose``."""
        return self.calls_to(*(name for name in self._calls if name.rpartition(".")[2] in lasts))

    def calls_of_method(self, *methods: str) -> list[ast.Call]:
        """Calls ``anything.method(...)``, whatever it is a method of."""
        found = [call for method in methods for call in self._method_calls.get(method, ())]
        return sorted(found, key=position)

    @cached_property
    def _calls(self) -> dict[str, list[ast.Call]]:
        full = self.imports.full
        found: dict[str, list[ast.Call]] = defaultdict(list)
        for call in cast("list[ast.Call]", self._nodes.get(ast.Call, [])):
            name = dotted(call.func)
            if name:
                found[full(name)].append(call)
        return found

    @cached_property
    def _method_calls(self) -> dict[str, list[ast.Call]]:
        found: dict[str, list[ast.Call]] = defaultdict(list)
        for call in cast("list[ast.Call]", self._nodes.get(ast.Call, [])):
            if isinstance(call.func, ast.Attribute):
                found[call.func.attr].append(call)
        return found

    def _hidden(self, node: ast.AST, root: str) -> bool:
        """Whether the name is a local variable or a parameter here, and not what the file imports under that name."""
        if root in {"self", "cls"}:
            return False
        scope = self.function_of(node)
        while scope is not None:
            if root in self._parameters(scope) or self.values.bound(scope, root):
                return not any(self.function_of(one) is scope for one in self._importing.get(root, ()))
            scope = self.function_of(scope)
        return False

    @cached_property
    def _importing(self) -> dict[str, list[ast.AST]]:
        found: dict[str, list[ast.AST]] = defaultdict(list)
        for node in self.imports.nodes:
            for alias in node.names:
                found[alias.asname or alias.name.partition(".")[0]].append(node)
        return found

    def _parameters(self, function: Function) -> set[str]:
        if function not in self._parameters_of:
            self._parameters_of[function] = parameters(function)
        return self._parameters_of[function]

    @cached_property
    def _parameters_of(self) -> dict[Function, set[str]]:
        return {}

    @cached_property
    def values(self) -> Values:
        return values_of(self)

    def value_of(self, node: ast.expr | None) -> ast.expr | None:
        """What an expression stands for: a name that is assigned once in its scope becomes that value, everything
        else is itself. None for a name whose value is not written in this file."""
        seen: set[ast.expr] = set()
        while isinstance(node, ast.Name) and node not in seen:
            seen.add(node)
            node = self._assigned(node)
        return None if isinstance(node, ast.Name) else node

    def _assigned(self, name: ast.Name) -> ast.expr | None:
        found = self.values_of(name)
        return found[0] if len(found) == 1 else None

    def values_of(self, name: ast.Name) -> list[ast.expr | None]:
        """Every value that a name is given in its scope; None for one that is not written in this file."""
        scope = self.function_of(name)
        while True:
            if scope is not None and name.id in self._parameters(scope):
                return [None]
            found = self.values.all(scope, name.id)
            if found or scope is None:
                return found
            scope = self.function_of(scope)

    def function_named(self, node: ast.expr) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
        """The function of this file, of the module or of the function around, that a plain name stands for."""
        if not isinstance(node, ast.Name):
            return None
        for function in self._defined.get(node.id, ()):
            around = self.function_of(function)
            if around is None or around is self.function_of(node) or around in self.above(node):
                return function
        return None

    def class_named(self, node: ast.expr) -> ast.ClassDef | None:
        """The class of this file that a plain name stands for."""
        name = self.resolve(node)
        return next((one for one in self.nodes(ast.ClassDef) if name == f".{one.name}" or name == one.name), None)

    @cached_property
    def _defined(self) -> dict[str, list[ast.FunctionDef | ast.AsyncFunctionDef]]:
        found: dict[str, list[ast.FunctionDef | ast.AsyncFunctionDef]] = defaultdict(list)
        for function in self.nodes(ast.FunctionDef, ast.AsyncFunctionDef):
            if not isinstance(self.parent(function), ast.ClassDef):
                found[function.name].append(function)
        return found

    # -- what the file is about

    @cached_property
    def datasets(self) -> list[DatasetClass]:
        from .datasets import find

        return find(self)

    @cached_property
    def loaders(self) -> list[Loader]:
        from .loaders import find

        return find(self)

    @cached_property
    def may_start_workers(self) -> bool:
        """False if the file makes loaders, and none of them has workers: then a data set stays in one process."""
        return not self.loaders or any(loader.has_workers or loader.open for loader in self.loaders)

    @cached_property
    def items(self) -> list[ItemFunction]:
        """Functions that run in a worker for each sample, batch or task; or once, as a ``worker_init_fn`` does."""
        from .contexts import find

        return find(self)

    def item_of(self, node: ast.AST) -> ItemFunction | None:
        """The item function that the node is in, if it is in one."""
        for one in (node, *self.above(node)):
            if one in self._items:
                return self._items[one]
        return None

    @cached_property
    def _items(self) -> dict[ast.AST, ItemFunction]:
        return {item.node: item for item in self.items}

    def dataset_of(self, node: ast.AST) -> DatasetClass | None:
        """The data set class that the node is in, if it is in one."""
        around = self.class_of(node)
        return next((one for one in self.datasets if one.node is around), None) if around else None

    def undefined_names(self, function: Function) -> frozenset[str]:
        """Names that the function looks up in the module and that nothing in this file defines. Empty where that
        cannot be known: with ``import *`` or ``exec``."""
        return self._names.undefined(function)

    @cached_property
    def _names(self) -> Names:
        from .names import Names

        return Names(self.text)


def values_of(script: Script) -> Values:
    values = Values()
    for node in script.nodes(ast.Assign):
        for target in node.targets:
            values.bind(script.function_of(node), target, node.value)
    for annotated in script.nodes(ast.AnnAssign, ast.NamedExpr):
        if annotated.value is not None:
            values.bind(script.function_of(annotated), annotated.target, annotated.value)
    for augmented in script.nodes(ast.AugAssign):
        values.bind(script.function_of(augmented), augmented.target, None)
    for loop in script.nodes(ast.For, ast.AsyncFor, ast.comprehension):
        values.bind(script.function_of(loop), loop.target, None)
    for item in script.nodes(ast.withitem):
        if item.optional_vars is not None:
            values.bind(script.function_of(item), item.optional_vars, item.context_expr)
    return values
