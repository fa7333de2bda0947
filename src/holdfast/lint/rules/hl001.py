"""# HL001 the file cannot be read as Python

## Bad

```python
def collate(batch:
    return batch
```

## Good

```python
def collate(batch):
    return batch
```

## Why

No rule can see into a file that does not parse, and nobody should take it for a clean one. It is parsed by the Python
that runs `holdfast`: newer syntax needs a newer one. Files that are not text, or not in the encoding that they declare,
and cells of a notebook that are no Python count too. Magics of IPython (`%time`, `!ls`) do not.

## See

`holdfast lint --ignore HL001`, or `exclude` in `[tool.holdfast.lint]`.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..finding import Level, Remark
from ..script import Script

LEVEL = Level.ERROR


def check(script: Script) -> Iterator[Remark]:
    """A script has been parsed already; ``lint.checking`` says when that failed."""
    yield from ()
