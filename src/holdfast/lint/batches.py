"""Where a file takes batches from a loader."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from .bindings import dotted
from .contexts import ItemFunction
from .loaders import standing_for
from .script import Script

_CALLED_SO = re.compile(r"(loader|(^|_)dl)\d?$", re.IGNORECASE)
_EPOCH = re.compile(r"epoch|\bep\b", re.IGNORECASE)
_AROUND = {"enumerate", "tqdm", "trange", "track", "auto", "notebook", "tqdm_notebook", "prefetch"}


@dataclass(frozen=True, eq=False)
class BatchLoop:
    """``for images, labels in loader``: ``names`` are those of the batch and its parts."""

    node: ast.For | ast.AsyncFor
    source: ast.expr
    names: frozenset[str]


def is_loader(script: Script, node: ast.expr) -> bool:
    """Whether it was made as one in this file, or is called one: ``train_loader``, ``self.val_dl``."""
    if standing_for(script, node) is not None:
        return True
    written = isinstance(script.value_of(node), ast.List | ast.Tuple | ast.Dict | ast.Constant | ast.Lambda)
    return not written and _CALLED_SO.search(dotted(node).rpartition(".")[2]) is not None


def runs_in_workers(script: Script, item: ItemFunction) -> bool:
    """False if the file shows that its loaders have none: then the trainer itself calls the function."""
    return script.may_start_workers or not item.role.of_loader


def starts_torch_workers(script: Script, node: ast.expr) -> bool:
    """False if the file shows that this loader has no workers, or that it is ours: by its own call, or, where that is
    elsewhere, by those of all loaders that the file makes."""
    loader = standing_for(script, node)
    made = script.loaders if loader is None else [loader]
    return not made or any((one.has_workers or one.open) and not one.is_ours for one in made)


def batch_loops(script: Script) -> Iterator[BatchLoop]:
    for loop in script.nodes(ast.For, ast.AsyncFor):
        source, target = loop.iter, loop.target
        while isinstance(source, ast.Call) and source.args and _last(source.func) in _AROUND:
            if _last(source.func) == "enumerate" and isinstance(target, ast.Tuple) and len(target.elts) == 2:
                target = target.elts[1]
            source = source.args[0]
        if is_loader(script, source):
            names = {node.id for node in ast.walk(target) if isinstance(node, ast.Name)}
            yield BatchLoop(loop, source, frozenset(names))


def is_epoch_loop(loop: ast.AST | None) -> bool:
    """``for epoch in range(90)``, by the name of its variable."""
    return isinstance(loop, ast.For | ast.AsyncFor) and _EPOCH.search(ast.unparse(loop.target)) is not None


def _last(node: ast.expr) -> str:
    return dotted(node).rpartition(".")[2]
