"""What is in a sample, leaf by leaf, so that two of them can be compared in different processes."""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy
import torch

_DEPTH = 8
_LEAVES = 64  # of one sample
_SHOWN = 40  # characters of a value
_PLAIN = (int, float, complex, str, bytes, bool, type(None))

Leaf = tuple[int, str]  # digest of all of it, and what to call it: "17", "float32[3, 224, 224]"
Leaves = dict[str, Leaf]  # by path: "sample['image']"


@dataclass(frozen=True)
class Difference:
    """``sample`` is the index as Python writes it; ``was`` and ``became`` are what the leaf was, as far as it shows."""

    sample: str
    leaf: str
    was: str
    became: str

    def __str__(self) -> str:
        values = f": {self.was} and {self.became}" if self.was != self.became else f" ({self.was})"
        return f"sample {self.sample}{self.leaf.removeprefix('sample')}{values}"


def leaves(sample: object) -> Leaves:
    """Never raises: what cannot be digested counts as equal to all of its kind."""
    found: Leaves = {}
    for path, value in parts(sample):
        if len(found) == _LEAVES:
            break
        try:
            found[path] = _digest(value), _shown(value)
        except Exception:  # an object of the user's own, that neither pickles nor prints
            found[path] = 0, type(value).__name__
    return found


def compared(sample: str, expected: Leaves, got: Leaves) -> Difference | None:
    """The first leaf that differs."""
    for path in [*expected, *got]:
        one, other = expected.get(path), got.get(path)
        if one is None or other is None or one[0] != other[0]:
            return Difference(sample, path, one[1] if one else "nothing", other[1] if other else "nothing")
    return None


def differing(expected: Mapping[str, Leaves], got: Mapping[str, Leaves]) -> set[str]:
    """The paths of the leaves that are not the same in all samples that both have."""
    return {
        path
        for sample in expected.keys() & got.keys()
        for path in expected[sample].keys() | got[sample].keys()
        if expected[sample].get(path, (None,))[0] != got[sample].get(path, (None,))[0]
    }


def parts(value: Any, path: str = "sample", depth: int = _DEPTH) -> Iterator[tuple[str, Any]]:
    """What is no container of other things, each with its path."""
    if depth and isinstance(value, dict):
        for key, member in value.items():
            yield from parts(member, f"{path}[{key!r}]", depth - 1)
    elif depth and isinstance(value, tuple | list) and not _is_row(value):
        names = getattr(value, "_fields", None)
        for i, member in enumerate(value):
            yield from parts(member, f"{path}.{names[i]}" if names else f"{path}[{i}]", depth - 1)
    else:
        yield path, value


def _is_row(value: Sequence[Any]) -> bool:
    """A long list of plain values, such as token ids, is one leaf."""
    return len(value) > _LEAVES // 4 and all(isinstance(member, _PLAIN) for member in value)


def _digest(value: Any) -> int:
    digest = hashlib.blake2b(type(value).__name__.encode(), digest_size=8)
    if isinstance(value, torch.Tensor):
        digest.update(f"{value.dtype}{tuple(value.shape)}".encode())
        digest.update(_bytes(value))
    elif isinstance(value, numpy.ndarray) and value.dtype != object:
        digest.update(f"{value.dtype}{value.shape}".encode())
        digest.update(numpy.ascontiguousarray(value).view(numpy.uint8).data if value.size else b"")
    elif isinstance(value, set | frozenset):
        digest.update(repr(sorted(map(repr, value))).encode())
    elif isinstance(value, _PLAIN):
        digest.update(repr(value).encode(errors="surrogatepass"))
    else:
        digest.update(pickle.dumps(value, protocol=5))
    return int.from_bytes(digest.digest(), "little")


def _bytes(tensor: torch.Tensor) -> Any:
    flat = tensor.detach().cpu().contiguous().reshape(-1)
    return flat.view(torch.uint8).numpy().data if len(flat) else b""


def _shown(value: Any) -> str:
    if isinstance(value, torch.Tensor | numpy.ndarray):
        if value.ndim:
            return f"{str(value.dtype).removeprefix('torch.')}{list(value.shape)}"
        value = value.item()
    if not isinstance(value, (*_PLAIN, numpy.generic)):
        return type(value).__name__
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
