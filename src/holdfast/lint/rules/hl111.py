"""# HL111 `fork` or `forkserver` is asked for on every platform

## Bad

```python
import multiprocessing

context = multiprocessing.get_context("forkserver")
```

## Good

```python
import multiprocessing

methods = multiprocessing.get_all_start_methods()
context = multiprocessing.get_context("forkserver" if "forkserver" in methods else "spawn")
```

## Why

Windows has `spawn` only: `ValueError: cannot find context for 'forkserver'`. On macOS a fork of a program with system
libraries crashes now and then. `holdfast.DataLoader(..., start="auto")` chooses what the platform has.

## See

`holdfast explain F08`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..bindings import dotted, keywords
from ..finding import Level, Remark
from ..script import Script

LEVEL = Level.WARNING

_ABSENT = {"fork", "forkserver"}
_ASKS = ("multiprocessing.get_context", "multiprocessing.set_start_method")
_PLATFORM = {
    *("sys.platform", "os.name", "os.uname", "os.fork", "platform.system", "multiprocessing.get_all_start_methods"),
}
_FLAGS = {"IS_WINDOWS", "IS_MACOS", "IS_LINUX", "WINDOWS", "WIN32"}


def check(script: Script) -> Iterator[Remark]:
    asked = [(call.args[0] if call.args else keywords(call).get("method")) for call in script.calls_to(*_ASKS)]
    asked += [loader.argument("multiprocessing_context") for loader in script.loaders if not loader.is_ours]
    for node in asked:
        if isinstance(node, ast.Constant) and node.value in _ABSENT and not _is_guarded(script, node):
            yield Remark(
                node,
                f"{node.value!r} does not exist on Windows, where this raises ValueError",
                f'"{node.value}" if "{node.value}" in multiprocessing.get_all_start_methods() else "spawn"',
            )


def _is_guarded(script: Script, node: ast.expr) -> bool:
    """Whether the platform is looked at around it or earlier in the same function, or the error is caught."""
    if script.is_caught(node, "ValueError"):
        return True
    scope = script.function_of(node)
    looks = [look for look in _names(script) if look.lineno <= node.lineno and _is_of_platform(script, look)]
    return any(script.function_of(look) in {scope, None} for look in looks)


def _names(script: Script) -> list[ast.Attribute | ast.Name]:
    return [*script.nodes(ast.Attribute), *script.nodes(ast.Name)]


def _is_of_platform(script: Script, node: ast.Attribute | ast.Name) -> bool:
    return script.resolve(node) in _PLATFORM or dotted(node) in _FLAGS
