"""What stands for a sample where samples are compared: equal for equal ones, in any process and on any machine."""

from __future__ import annotations

import hashlib
import pickle
import sys
from typing import Any

import numpy
import torch

_ELEMENTS = 512  # of a tensor or array, spread over it
_MEMBERS = 64  # of a list
_DEPTH = 16
_PLAIN = frozenset({int, float, complex, str, bytes, bool, type(None)})


def fingerprint(sample: object) -> int | None:
    """None when that cannot be told. Of large memory a few elements only: it is not to be carried, only compared."""
    try:
        content = b"".join(parts(sample))
    except Exception:
        return None
    return int.from_bytes(hashlib.blake2b(content, digest_size=8).digest(), "little")


def parts(sample: Any, *, whole: bool = False) -> list[bytes]:
    """What a digest is made of. ``whole``: of every element, and not of a few."""
    return _of(sample, _DEPTH, *((sys.maxsize, sys.maxsize) if whole else (_ELEMENTS, _MEMBERS)))


def _add(found: list[bytes], value: Any, depth: int, elements: int, members: int) -> None:
    """Not pickled as a whole: a pickle depends on what is shared within it, and a set on the process that made it."""
    kind, fewer = type(value), (depth - 1, elements, members)
    if not depth:
        return
    if kind in _PLAIN:
        found.append(f"{kind.__name__}:{value!r};".encode(errors="surrogatepass"))
    elif isinstance(value, tuple | list):
        found.append(f"{kind.__name__}{len(value)}".encode())
        for member in value[:members]:
            _add(found, member, *fewer)
    elif isinstance(value, dict):
        found.append(f"{kind.__name__}{len(value)}".encode())
        for key, member in value.items():
            _add(found, key, *fewer)
            _add(found, member, *fewer)
    elif isinstance(value, torch.Tensor):
        found += f"{value.dtype}{tuple(value.shape)}".encode(), _bytes(value, elements)
    elif isinstance(value, numpy.ndarray) and value.dtype != object:
        found += f"{value.dtype}{value.shape}".encode(), _some(value, elements).tobytes()
    elif isinstance(value, set | frozenset):
        found += sorted(b"".join(_of(member, *fewer)) for member in value)
    else:
        found.append(pickle.dumps(value, protocol=5))


def _of(value: Any, depth: int, elements: int, members: int) -> list[bytes]:
    found: list[bytes] = []
    _add(found, value, depth, elements, members)
    return found


def _bytes(tensor: torch.Tensor, count: int) -> bytes:
    """As a list they would take forty times as long."""
    try:
        array: numpy.ndarray[Any, Any] = _some(tensor.numpy(), count)
        return array.tobytes()
    except (TypeError, RuntimeError):
        pass  # of a type that numpy does not have, not of this processor, or with something yet to be done to it
    row: torch.Tensor = _some(tensor.detach(), count)
    return row.resolve_conj().resolve_neg().cpu().contiguous().view(torch.uint8).numpy().tobytes()


def _some(values: Any, count: int) -> Any:
    flat = values.reshape(-1)
    step = len(flat) // count
    return flat[::step] if step > 1 else flat
