"""# HL409 a name that nothing defines, where every exception is caught

## Bad

```python
from torch.utils.data import Dataset

class Images(Dataset):
    def __getitem__(self, index):
        try:
            return imread(self.paths[index])    # which was never imported
        except Exception:
            return self[index + 1]
```

## Good

```python
from imageio import imread
from torch.utils.data import Dataset

class Images(Dataset):
    def __getitem__(self, index):
        try:
            return imread(self.paths[index])
        except (OSError, ValueError):
            return self[index + 1]
```

## Why

A `NameError` is an `Exception` like any other, and the handler takes it for bad data: every sample is bad, and the run
looks successful, or never ends. Functions of this file that are called inside the `try` count too.

holdfast's policies never treat a programming error as bad data: leave the handling to `on_error="skip"`, and a
`NameError` is raised at once.

A handler that raises, or that catches `NameError` by its name, is left alone. In a file with `import *`, `exec` or
`globals()` nobody can tell, and the rule is silent.

## See

`holdfast explain F22`, `holdfast explain HL405`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..bodies import own
from ..contexts import functions_behind
from ..finding import Level, Remark
from ..handlers import catches_all, caught, goes_on
from ..script import Script

LEVEL = Level.ERROR

# Put among the builtins by somebody else: notebooks, gettext, profilers, Windows.
_GIVEN = {"display", "get_ipython", "_", "profile", "reveal_type", "WindowsError"}


def check(script: Script) -> Iterator[Remark]:
    said: set[ast.AST] = set()
    for item in script.items:
        for attempt in own(item.node, ast.Try):
            handler = _blind(attempt)
            for name in _undefined(script, attempt) if handler is not None else ():
                if handler is not None and name not in said:
                    said.add(name)
                    yield Remark(
                        name,
                        f"{name.id} is defined nowhere, and the handler in line {handler.lineno} takes the NameError "
                        "for bad data: every sample counts as bad",
                        f"import or define {name.id}; except (OSError, ValueError) for what reading raises",
                    )


def _blind(attempt: ast.Try) -> ast.ExceptHandler | None:
    """The handler that a NameError comes to, if it goes on as if nothing was."""
    for handler in attempt.handlers:
        if "NameError" in caught(handler):
            return None
        if catches_all(handler):
            return handler if goes_on(handler) else None
    return None


def _undefined(script: Script, attempt: ast.Try) -> Iterator[ast.Name]:
    """Names in what is tried, and in functions of this file that it calls."""
    waiting: list[ast.AST] = [*attempt.body]
    seen: set[ast.AST] = set()
    while waiting:
        for node in ast.walk(waiting.pop(0)):
            if isinstance(node, ast.Name) and _is_undefined(script, node):
                yield node
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute):
                for function, _ in functions_behind(script, node.func):
                    if function not in seen:
                        seen.add(function)
                        waiting.append(function)


def _is_undefined(script: Script, node: ast.Name) -> bool:
    function = script.function_of(node)
    if function is None or not isinstance(node.ctx, ast.Load) or node.id in _GIVEN:
        return False
    return node.id in script.undefined_names(function) and not _is_annotation(script, node)


def _is_annotation(script: Script, node: ast.AST) -> bool:
    """Those of variables in a function are never evaluated."""
    inner = node
    for one in script.above(node):
        if isinstance(one, ast.AnnAssign | ast.arg):
            return one.annotation is inner
        inner = one
    return False
