"""How each peer is used, from the docstrings of the code that uses it: what a reader sees here is what is run."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench import peers
from bench.pools import POOLS

BENCH = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Setting:
    name: str
    version: str
    text: str


def settings(versions: dict[str, str]) -> Iterator[Setting]:
    """`versions`: of distributions, as they were when it was measured."""
    for package, registry in _registries():
        for peer in registry:
            module, _, function = peer.way.partition(":")
            version = versions.get(peer.distribution, "")
            yield Setting(peer.name, f"{peer.distribution} {version}".strip(), _text(package / module, function))


def _registries() -> Iterator[tuple[Path, list[Any]]]:
    """Of loaders and of pools; neither import what they name."""
    yield BENCH / "peers", list(peers.PEERS.values())
    yield BENCH / "pools", list(POOLS.values())


def _text(path: Path, function: str) -> str:
    """Of the module, then of the function where that says more."""
    source = path.with_suffix(".py")
    if not source.is_file():
        return ""
    tree = ast.parse(source.read_text())
    own = [node for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == function]
    found = [ast.get_docstring(node) for node in (tree, *own)]
    return " ".join(" ".join(text.split()) for text in found if text)
