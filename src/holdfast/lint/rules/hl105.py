"""# HL105 a worker uses CUDA

## Bad

```python
from torch.utils.data import Dataset

class Images(Dataset):
    def __getitem__(self, index):
        return self.images[index].cuda()
```

## Good

```python
from torch.utils.data import DataLoader, Dataset

class Images(Dataset):
    def __getitem__(self, index):
        return self.images[index]

def train(images, model):
    for batch in DataLoader(images, num_workers=4, pin_memory=True):
        model(batch.cuda(non_blocking=True))
```

## Why

A forked worker cannot use the trainer's CUDA: *Cannot re-initialize CUDA in forked subprocess*. A spawned one makes a
context of its own, some hundred MiB of the GPU for each worker, and its tensors are gone when it ends.

## See

pytorch#40403, pytorch#77159.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..bindings import keywords
from ..finding import Level, Remark
from ..script import Script

LEVEL = Level.ERROR

# What asks about CUDA without starting it, or does nothing where it has not been started.
_HARMLESS = ("is_available", "is_initialized", "manual_seed", "manual_seed_all", "device_count", "is_bf16_supported")


def check(script: Script) -> Iterator[Remark]:
    if "cuda" not in script.text or not script.items or not script.may_start_workers:
        return
    for call in script.nodes(ast.Call):
        item = script.item_of(call)
        if item is not None and item.role.of_loader and _uses_cuda(script, call):
            yield Remark(
                call,
                f"{ast.unparse(call.func)} in {item.via}, which runs in a worker, uses CUDA",
                "return CPU tensors; in the training loop: batch.cuda(non_blocking=True), with pin_memory=True",
            )


def _uses_cuda(script: Script, call: ast.Call) -> bool:
    if isinstance(call.func, ast.Attribute) and call.func.attr in {"cuda", "to"}:
        given = [*call.args, *(value for name, value in keywords(call).items() if name == "device")]
        return call.func.attr == "cuda" or any(_is_cuda(script, one) for one in given)
    name = script.resolve(call.func)
    if name.startswith("torch.cuda."):
        return not name.endswith(_HARMLESS)
    device = keywords(call).get("device")
    return name.startswith("torch.") and device is not None and _is_cuda(script, device)


def _is_cuda(script: Script, node: ast.expr) -> bool:
    """``"cuda:0"``, ``torch.device("cuda")``, or a choice between that and another; or a name for it."""
    value = script.value_of(node)
    if isinstance(value, ast.IfExp):
        return _is_cuda(script, value.body) or _is_cuda(script, value.orelse)
    if isinstance(value, ast.Call) and script.resolve(value.func) == "torch.device" and value.args:
        return _is_cuda(script, value.args[0])
    return isinstance(value, ast.Constant) and isinstance(value.value, str) and value.value.startswith("cuda")
