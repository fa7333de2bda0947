"""# HL110 a thread setting in the environment comes after the import that reads it

## Bad

```python
import os
import numpy as np

os.environ["OMP_NUM_THREADS"] = "1"
```

## Good

```python
import os

os.environ["OMP_NUM_THREADS"] = "1"

import numpy as np
```

## Why

OpenMP, MKL and OpenBLAS read these variables once, when their library is loaded. Set later, they have no effect in this
process. After the import, `torch.set_num_threads` or `threadpoolctl.threadpool_limits` do.

## See

albumentations#1825.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..finding import Level, Remark
from ..script import Script

LEVEL = Level.WARNING

Setting = ast.Assign | ast.Call

_VARIABLES = {
    *("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS", "NUMEXPR_MAX_THREADS"),
    *("VECLIB_MAXIMUM_THREADS", "BLIS_NUM_THREADS", "KMP_AFFINITY", "KMP_BLOCKTIME", "OMP_PROC_BIND"),
}
_READERS = {
    *("numpy", "torch", "scipy", "pandas", "sklearn", "cv2", "torchvision", "torchaudio", "transformers", "accelerate"),
    *("lightning", "pytorch_lightning", "timm", "numexpr", "skimage", "matplotlib"),
}


def check(script: Script) -> Iterator[Remark]:
    if not any(variable in script.text for variable in _VARIABLES):
        return
    for node, variable in _settings(script):
        if script.function_of(node) is not None:
            continue  # when it runs is not known; and processes started later do see it
        readers = [one for one in script.imports.nodes if one.lineno < node.lineno and _reads(one)]
        first = next((one for one in readers if script.function_of(one) is None), None)
        if first is not None:
            yield Remark(
                node,
                f"{variable} is set after {ast.unparse(first)} (line {first.lineno}), and has no effect here",
                f"set it above line {first.lineno}",
            )


def _settings(script: Script) -> Iterator[tuple[Setting, str]]:
    for assign in script.nodes(ast.Assign):
        for target in assign.targets:
            if isinstance(target, ast.Subscript) and script.resolve(target.value) == "os.environ":
                yield from _named(assign, target.slice)
    for call in script.calls_to("os.environ.setdefault", "os.putenv"):
        if call.args:
            yield from _named(call, call.args[0])


def _named(node: Setting, key: ast.expr) -> Iterator[tuple[Setting, str]]:
    if isinstance(key, ast.Constant) and key.value in _VARIABLES:
        yield node, str(key.value)


def _reads(node: ast.Import | ast.ImportFrom) -> bool:
    names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or ""]
    own = isinstance(node, ast.ImportFrom) and node.level > 0
    return not own and any(name.partition(".")[0] in _READERS for name in names)
