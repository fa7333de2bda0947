"""What names mean in one file: imports under whatever name, and values that were given a name once."""

from __future__ import annotations

import ast
import builtins
from collections import defaultdict
from collections.abc import Iterable, Mapping

Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda

# Modules that re-export another one, and where torch keeps what it shows in torch.utils.data.
_SAME = {
    "torch.multiprocessing": "multiprocessing",
    "multiprocess": "multiprocessing",
    "multiprocessing.pool": "multiprocessing",
    "torch.utils.data.dataloader": "torch.utils.data",
    "torch.utils.data.dataset": "torch.utils.data",
    "torch.utils.data.distributed": "torch.utils.data",
    "torch.utils.data.sampler": "torch.utils.data",
    "concurrent.futures.process": "concurrent.futures",
    "concurrent.futures.thread": "concurrent.futures",
    "holdfast.loader": "holdfast",
}
# Of `from ... import *` only these names are known: those that mean something to a rule.
_STARS = {
    "torch.utils.data": {"DataLoader", "Dataset", "IterableDataset", "DistributedSampler", "get_worker_info"},
    "multiprocessing": {"Pool", "Process", "Lock", "Queue", "set_start_method", "get_context"},
    "holdfast": {"DataLoader", "Pool", "Executor"},
}
_BUILTINS = frozenset(vars(builtins))


def dotted(node: ast.AST) -> str:
    """``a.b.c`` as it is written; empty for anything but names and attributes of them."""
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return ""
    parts.append(node.id)
    return ".".join(reversed(parts))


def canonical(name: str) -> str:
    """One name for one thing: ``torch.multiprocessing.Pool`` is ``multiprocessing.Pool``."""
    module, _, last = name.rpartition(".")
    same = _SAME.get(module)
    return f"{same}.{last}" if same else name


class Imports:
    """From a name in this file to the full one. A user's own things have a full name that begins with a dot."""

    def __init__(self, imports: Iterable[ast.Import | ast.ImportFrom], top: Iterable[ast.stmt]) -> None:
        self._full: dict[str, str] = {}
        self.stars: list[str] = []
        self.nodes: list[ast.Import | ast.ImportFrom] = sorted(imports, key=lambda node: node.lineno)
        for node in self.nodes:
            if isinstance(node, ast.Import):
                self._import(node)
            else:
                self._import_from(node)
        self._own(top)

    def full(self, name: str) -> str:
        """``np.random.seed`` is ``numpy.random.seed``; ``.Images`` is what this file or package defines itself."""
        root, dot, rest = name.partition(".")
        full = self._full.get(root)
        if full is None:
            full = self._from_star(root)
        return canonical(f"{full}{dot}{rest}")

    def knows(self, root: str) -> bool:
        return root in self._full

    def _import(self, node: ast.Import) -> None:
        for alias in node.names:
            if alias.asname:
                self._full[alias.asname] = alias.name
            else:
                root = alias.name.partition(".")[0]
                self._full[root] = root

    def _import_from(self, node: ast.ImportFrom) -> None:
        module = "." * node.level + (node.module or "")
        for alias in node.names:
            if alias.name == "*":
                self.stars.append(module)
            else:
                dot = "" if module.endswith(".") or not module else "."
                self._full[alias.asname or alias.name] = canonical(f"{module}{dot}{alias.name}")

    def _own(self, top: Iterable[ast.stmt]) -> None:
        """What the module defines, and names that it gives to imported things. What is imported stays what it is:
        ``cv2 = None`` is what to do where the import fails."""
        for statement in top:
            if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                self._full.setdefault(statement.name, f".{statement.name}")
            elif isinstance(statement, ast.Assign):
                for target in statement.targets:
                    if isinstance(target, ast.Name) and target.id not in self._full:
                        value = dotted(statement.value)
                        known = value and self.knows(value.partition(".")[0])
                        self._full[target.id] = self.full(value) if known else f".{target.id}"

    def _from_star(self, root: str) -> str:
        if root not in _BUILTINS:
            for module in self.stars:
                if root in _STARS.get(canonical(f"{module}.x")[:-2], ()):
                    return f"{module}.{root}"
        return root


class Values:
    """Names that are assigned in one place of their scope, with the value. A scope is a function, or None for the
    module (a class body counts as the scope around it)."""

    def __init__(self) -> None:
        self._values: dict[tuple[ast.AST | None, str], list[ast.expr | None]] = defaultdict(list)

    def bind(self, scope: ast.AST | None, target: ast.expr, value: ast.expr | None) -> None:
        if isinstance(target, ast.Name):
            self._values[scope, target.id].append(value)
        elif isinstance(target, ast.Tuple | ast.List):
            values: list[ast.expr | None] = [None] * len(target.elts)
            if isinstance(value, ast.Tuple | ast.List) and len(value.elts) == len(target.elts):
                values = [*value.elts]
            for element, part in zip(target.elts, values, strict=True):
                self.bind(scope, element, part)
        elif isinstance(target, ast.Starred):
            self.bind(scope, target.value, None)

    def bound(self, scope: ast.AST | None, name: str) -> bool:
        return (scope, name) in self._values

    def all(self, scope: ast.AST | None, name: str) -> list[ast.expr | None]:
        """Every value it is given there; None for one that is not written out, such as that of a loop."""
        return self._values.get((scope, name), [])


def parameters(function: Function) -> set[str]:
    arguments = function.args
    named = {one.arg for one in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)}
    return named | {one.arg for one in (arguments.vararg, arguments.kwarg) if one is not None}


def keywords(call: ast.Call) -> Mapping[str, ast.expr]:
    """Arguments that are given by name."""
    return {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg is not None}
