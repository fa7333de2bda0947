"""The rules of the house that a machine can check."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).parent.parent / "src" / "holdfast"
MODULES = sorted(SOURCE.rglob("*.py"))
CORE = sorted((SOURCE / "_core").glob("*.py"))

# The core is values: it may import these, and itself. A list of what is allowed, as nobody can list what is not.
MAY_BE_IN_CORE = {"__future__", "abc", "bisect", "collections", "dataclasses", "enum", "heapq", "math", "typing"}
PLATFORM_CHECKS = {("sys", "platform"), ("os", "name"), ("os", "uname"), ("platform", "system")}


def name(path: Path) -> str:
    return str(path.relative_to(SOURCE))


def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(), str(path))


def imported(path: Path) -> Iterator[tuple[int, str]]:
    """Every import of a module, wherever it stands, as (dots, top name)."""
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            yield from ((0, alias.name.split(".")[0]) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.level, (node.module or "").split(".")[0]


def platform_checks(path: Path) -> Iterator[str]:
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            if (node.value.id, node.attr) in PLATFORM_CHECKS:
                yield f"{name(path)}:{node.lineno} {node.value.id}.{node.attr}"
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                if (node.module, alias.name) in PLATFORM_CHECKS:
                    yield f"{name(path)}:{node.lineno} from {node.module} import {alias.name}"


def test_the_core_decides_and_never_acts():
    foreign = {
        f"{name(path)} imports {module}"
        for path in CORE
        for dots, module in imported(path)
        if dots != 1 and module not in MAY_BE_IN_CORE
    }
    assert not foreign


def test_a_module_fits_in_the_head():
    lengths = {name(path): len(path.read_text().splitlines()) for path in MODULES}
    assert not {module: length for module, length in lengths.items() if length > 350}


def test_a_function_fits_on_the_screen():
    lengths = {
        f"{name(path)}:{node.lineno} {node.name}": node.end_lineno - node.body[0].lineno  # without its signature
        for path in MODULES
        for node in ast.walk(tree(path))
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    }
    assert not {function: length for function, length in lengths.items() if length >= 50}


def test_only_one_room_knows_the_platform():
    elsewhere = [path for path in MODULES if SOURCE / "_system" not in path.parents]
    assert not [check for path in elsewhere for check in platform_checks(path)]


def test_no_two_test_modules_have_one_name():
    """They are imported by it, and pytest refuses the second."""
    names = [path.stem for path in Path(__file__).parent.rglob("*.py") if path.stem != "conftest"]
    assert sorted(set(names)) == sorted(names)
