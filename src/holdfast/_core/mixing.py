"""Well-mixed bits from numbers: what seeds and choices are derived by, the same everywhere."""

from __future__ import annotations

_MASK = (1 << 64) - 1
_GOLDEN = 0x9E3779B97F4A7C15


def mix(seed: int, number: int) -> int:
    """63 well-mixed bits from a seed and a counter (the finaliser of splitmix64); a seed that fits a signed tensor."""
    x = (seed + (number + 1) * _GOLDEN) & _MASK
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & _MASK
    return (x ^ (x >> 31)) >> 1
