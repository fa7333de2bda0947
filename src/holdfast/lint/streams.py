"""Iterable data sets that give every worker the whole stream."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from .bodies import own
from .contexts import ItemFunction
from .datasets import DatasetClass
from .loaders import Loader
from .script import Script

# Words by which a data set says that it knows of workers or shares, in whichever way.
_DIVIDES = re.compile(r"worker_?info|worker_?id|num_?workers|shard|split_by|rank|world_?size|islice", re.IGNORECASE)
_WRAPS = re.compile(r"dataset|loader|stream|source|pipe|iterator|iterable|generator|queue|sampler", re.IGNORECASE)
_RANDOM = ("random.", "numpy.random.", "torch.rand", "torch.normal", "torch.bernoulli", "secrets.")
_ORDERING = ("shuffle", "seed", "sample", "randperm", "permutation", "permuted", "default_rng", "Random", "RandomState")


def unsharded(script: Script) -> Iterator[DatasetClass]:
    """Those of which the class shows what it iterates over, and nothing that would divide it: no worker's number, no
    shard, no other stream around which it is only a wrapper, which may be divided itself."""
    for dataset in script.datasets:
        method = dataset.methods.get("__iter__")
        if not dataset.iterable or method is None or method not in dataset.node.body or _is_pipe(dataset):
            continue
        if _DIVIDES.search(ast.unparse(dataset.node)) or not _reads_all(script, dataset, method):
            continue
        loaders = loaders_of(script, dataset) or script.loaders
        if not loaders or any(_gives_all(loader) for loader in loaders):
            yield dataset


def loaders_of(script: Script, dataset: DatasetClass) -> list[Loader]:
    """Loaders of this file that are given an instance of the class."""
    return [loader for loader in script.loaders if _made_of(script, loader) is dataset.node]


def _gives_all(loader: Loader) -> bool:
    several = (loader.has_workers or loader.open) and loader.literal("num_workers") != 1
    return several and loader.argument("shard") is None


def _made_of(script: Script, loader: Loader) -> ast.ClassDef | None:
    value = script.value_of(loader.argument("dataset"))
    return script.class_named(value.func) if isinstance(value, ast.Call) else None


def _is_pipe(dataset: DatasetClass) -> bool:
    """Data pipes are divided from outside, by ``sharding_filter``."""
    return any(ast.unparse(base).partition("[")[0].endswith("DataPipe") for base in dataset.node.bases)


def _reads_all(script: Script, dataset: DatasetClass, method: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether it goes through something of its own. Numbers drawn at random differ from worker to worker anyway, and
    a function of another file may do the dividing."""
    here = [method, *(item.node for item in script.items if _serves(item, dataset))]
    for function in here:
        for call in own(function, ast.Call):
            if _draws(script.resolve(call.func)):
                return False
    read = [loop.iter for function in here for loop in own(function, ast.For)]
    read += [one.value for function in here for one in own(function, ast.YieldFrom)]
    read += [given for function in here for call in own(function, ast.Call) for given in _gone_through(script, call)]
    return bool(read) and not any(_wraps(dataset, node) for one in read for node in ast.walk(one))


def _wraps(dataset: DatasetClass, node: ast.AST) -> bool:
    """Whether it is something by whose name other streams go: ``self.source``, ``load_dataset``; not a method of this
    class, whose body is looked at itself."""
    name = node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
    return name not in dataset.methods and _WRAPS.search(name) is not None


def _draws(name: str) -> bool:
    return name.startswith(_RANDOM) and not name.endswith(_ORDERING)


def _gone_through(script: Script, call: ast.Call) -> list[ast.expr]:
    return call.args if script.resolve(call.func) in {"iter", "map", "filter", "zip", "enumerate"} else []


def _serves(item: ItemFunction, dataset: DatasetClass) -> bool:
    return item.owner is dataset.node and item.entry == f"{dataset.name}.__iter__"
