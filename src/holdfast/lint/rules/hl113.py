"""# HL113 the signal SIGCHLD is ignored or taken over

## Bad

```python
import signal
import torch

signal.signal(signal.SIGCHLD, signal.SIG_IGN)
```

## Good

```python
import signal

previous = signal.getsignal(signal.SIGCHLD)

def note(number, frame):
    print("a child ended")
    if callable(previous):
        previous(number, frame)

signal.signal(signal.SIGCHLD, note)
```

## Why

torch's loader learns of a dead worker from SIGCHLD. Ignored or replaced, a killed worker is never noticed, and the loop
waits for ever. `holdfast.DataLoader` waits on the processes themselves and does not need the signal.

## See

`holdfast explain F50`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..bindings import dotted
from ..finding import Level, Remark
from ..script import Script

LEVEL = Level.ERROR

_SIGNALS = {"SIGCHLD", "SIGCLD"}


def check(script: Script) -> Iterator[Remark]:
    if "torch" not in script.text and "multiprocessing" not in script.text:
        return  # a daemon that minds its own children
    for call in script.calls_to("signal.signal"):
        if len(call.args) != 2 or _last(call.args[0]) not in _SIGNALS or _last(call.args[1]) == "SIG_DFL":
            continue
        if _keeps_the_previous(script, call):
            continue
        ignored = _last(call.args[1]) == "SIG_IGN"
        what = "is ignored" if ignored else f"goes to {ast.unparse(call.args[1])} alone"
        yield Remark(
            call,
            f"SIGCHLD {what}: torch's loader does not notice when a worker dies, and waits for ever",
            "leave SIGCHLD alone; to reap children of your own, call waitpid or Popen.wait for each",
        )


def _keeps_the_previous(script: Script, call: ast.Call) -> bool:
    """Whether the handler that was there is kept, to be called or put back."""
    asked = [one for one in script.calls_to("signal.getsignal") if one.args and _last(one.args[0]) in _SIGNALS]
    return bool(asked) or not isinstance(script.parent(call), ast.Expr)


def _last(node: ast.expr) -> str:
    return dotted(node).rpartition(".")[2]
