"""What stands for a sample where samples are compared: equal for equal ones, in any process and on any machine."""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Iterator
from typing import Any

import numpy
import torch

_ELEMENTS = 512  # of a tensor or array, spread over it
_MEMBERS = 64  # of a list
_DEPTH = 16
_PLAIN = (int, float, complex, str, bytes, bool, type(None))


def fingerprint(sample: object) -> int | None:
    """None when that cannot be told. Of large memory a few elements only: it is not to be carried, only compared."""
    digest = hashlib.blake2b(digest_size=8)
    try:
        for part in _parts(sample, _DEPTH):
            digest.update(part)
    except Exception:
        return None
    return int.from_bytes(digest.digest(), "little")


def _parts(value: Any, depth: int) -> Iterator[bytes]:
    """Not pickled as a whole: a pickle depends on what is shared within it, and a set on the process that made it."""
    kind = type(value)
    if not depth:
        return
    if kind in _PLAIN:
        yield f"{kind.__name__}:{value!r};".encode(errors="surrogatepass")
    elif isinstance(value, torch.Tensor):
        yield f"{value.dtype}{tuple(value.shape)}".encode()
        yield repr(_some(value.detach()).tolist()).encode()
    elif isinstance(value, numpy.ndarray) and value.dtype != object:
        yield f"{value.dtype}{value.shape}".encode()
        yield _some(value).tobytes()
    elif isinstance(value, tuple | list):
        yield f"{kind.__name__}{len(value)}".encode()
        for member in value[:_MEMBERS]:
            yield from _parts(member, depth - 1)
    elif isinstance(value, dict):
        yield f"{kind.__name__}{len(value)}".encode()
        for key, member in value.items():
            yield from _parts(key, depth - 1)
            yield from _parts(member, depth - 1)
    elif isinstance(value, set | frozenset):
        yield from sorted(b"".join(_parts(member, depth - 1)) for member in value)
    else:
        yield pickle.dumps(value, protocol=5)


def _some(values: Any) -> Any:
    flat = values.reshape(-1)
    return flat[:: max(1, len(flat) // _ELEMENTS)]
