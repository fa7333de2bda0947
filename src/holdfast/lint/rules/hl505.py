"""# HL505 a request without a time limit, in a worker

## Bad

```python
import requests
from torch.utils.data import Dataset

class Images(Dataset):
    def __getitem__(self, index):
        return decode(requests.get(self.urls[index]).content)
```

## Good

```python
import requests
from torch.utils.data import Dataset

class Images(Dataset):
    def __getitem__(self, index):
        return decode(requests.get(self.urls[index], timeout=10).content)
```

## Why

A server that takes the connection and says no more keeps the worker for ever, and the loader waits for it. With a time
limit it is an `OSError`, which `holdfast.DataLoader(on_error=holdfast.Retry(3, on=OSError))` tries again while other
batches go on. `urlretrieve` has no such argument: `urlopen(url, timeout=10)`.

`httpx` has a limit by default.

## See

`holdfast explain F31`, `holdfast explain F48`; ruff S113.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..bindings import dotted, keywords
from ..finding import Level, Remark
from ..script import Script

LEVEL = Level.WARNING

_VERBS = ("get", "post", "put", "delete", "head", "patch", "options", "request")
# At which place the limit may be given without its name; None: only by name.
_REQUESTS: dict[str, int | None] = {f"requests.{verb}": None for verb in _VERBS}
_SOCKETS: dict[str, int | None] = {
    "urllib.request.urlopen": 2,
    "urllib.request.urlretrieve": None,
    "socket.create_connection": 1,
    "http.client.HTTPConnection": 2,
    "http.client.HTTPSConnection": 4,
    "ftplib.FTP": 4,
}
_SESSIONS = {"requests.Session", "requests.session"}


def check(script: Script) -> Iterator[Remark]:
    if not script.items:
        return
    limited = bool(script.calls_to("socket.setdefaulttimeout"))  # which requests does not go by
    places = _REQUESTS if limited else _REQUESTS | _SOCKETS
    for call in script.calls_to(*places):
        yield from _remark(script, call, places[script.resolve(call.func)])
    if any(name in script.text for name in ("requests.Session", "requests.session", "import Session")):
        for call in script.calls_of_method(*_VERBS):
            if _is_of_session(script, call):
                yield from _remark(script, call, None)


def _remark(script: Script, call: ast.Call, place: int | None) -> Iterator[Remark]:
    item = script.item_of(call)
    named = keywords(call)
    opened = any(keyword.arg is None for keyword in call.keywords)
    given = place is not None and len(call.args) > place
    limit = named.get("timeout")
    if item is None or opened or given or (limit is not None and not _is_none(limit)):
        return
    written = ast.unparse(call.func)
    bare = script.resolve(call.func).endswith("urlretrieve")
    yield Remark(
        call,
        f"{written} in {item.via} has no time limit: a server that says nothing keeps the worker for ever",
        "urllib.request.urlopen(url, timeout=10)" if bare else f"{written}(..., timeout=10)",
    )


def _is_of_session(script: Script, call: ast.Call) -> bool:
    """``session.get(url)`` of a ``session``, or ``self.session``, that this file makes."""
    assert isinstance(call.func, ast.Attribute)
    held = call.func.value
    values = [script.value_of(held)]
    if isinstance(held, ast.Attribute):
        values = [one.value for one in script.nodes(ast.Assign) if dotted(held) in map(dotted, one.targets)]
    return any(isinstance(value, ast.Call) and script.resolve(value.func) in _SESSIONS for value in values)


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None
