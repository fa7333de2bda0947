"""Which samples are to blame when a whole batch fails.

What default_collate refuses is known by its rules (``columns``). Of any other function that makes a batch the rules are
not known: it is tried on parts of the batch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from holdfast.errors import NoneSample, UnequalSamples
from holdfast.policies import is_programming_error

from .columns import none_in, odd_ones, unequal
from .describe import ended_calls

__all__ = ["Item", "explain_collate", "guilty", "none_in", "odd_ones", "unequal"]

_COLLATE = ("torch.utils.data._utils.collate", "holdfast._worker.collate")

Passes = Callable[[list[int]], bool]  # whether the samples at these positions can be a batch


class Item(str):
    """Stands for the index of a sample in a stream, which has none."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def explain_collate(
    error: Exception, samples: Sequence[Any], indices: Sequence[Any] | None, where: Callable[[int], str]
) -> Exception:
    """What to raise in place of an error of default_collate; the same error when it is not one, or nothing explains it.

    ``samples`` are those of the batch, or some of them. ``where`` describes the one at a position among them;
    ``indices`` is None for a stream. Never raises.
    """
    try:
        if not _is_about(samples, error):
            return error
        about_none = isinstance(error, TypeError) or "NoneType" in str(error)
        if about_none and (nones := none_in(samples)):
            position, member = nones[0]
            return NoneSample(_index(indices, position), member, where(position))
        if difference := unequal(samples):
            member, a, shape, b, other = difference
            first, second = (_index(indices, a), shape, where(a)), (_index(indices, b), other, where(b))
            return UnequalSamples(member, first, second, str(error))
    except Exception:  # a strange sample must not hide the error that is being told
        pass
    return error


def _is_about(samples: Sequence[Any], error: Exception) -> bool:
    """Whether default_collate had these very samples, and maybe more; a collate_fn may have given it others."""
    calls = [call.tb_frame for call in ended_calls(error) if call.tb_frame.f_globals.get("__name__") in _COLLATE]
    batches = [value for call in calls for value in call.f_locals.values() if isinstance(value, list | tuple)]
    return any({id(sample) for sample in samples} <= {id(sample) for sample in batch} for batch in batches)


def _index(indices: Sequence[Any] | None, position: int) -> Any:
    return Item(f"item {position}") if indices is None else indices[position]


def guilty(samples: Sequence[Any], attempt: Callable[[list[Any]], object]) -> list[int]:
    """The positions without which ``attempt`` takes the batch; empty when it is not the samples that are to blame.

    ``attempt`` raises for a list of samples that cannot be a batch; it is called about four times per sample at most.
    """
    passes = _counted(samples, attempt)
    try:
        alone = [n for n in range(len(samples)) if passes([n])]
        kept = alone if not alone or passes(alone) else _agreeing(alone, passes)
    except _NobodyToBlame:
        return []
    return sorted(set(range(len(samples))) - set(kept)) if kept else []


class _NobodyToBlame(Exception):
    """The program is at fault, or there were attempts enough."""


def _counted(samples: Sequence[Any], attempt: Callable[[list[Any]], object]) -> Passes:
    left = 4 * len(samples) + 8

    def passes(positions: list[int]) -> bool:
        nonlocal left
        left -= 1
        if left < 0:
            raise _NobodyToBlame
        try:
            attempt([samples[n] for n in positions])
        except Exception as error:
            if is_programming_error(error):
                raise _NobodyToBlame from None
            return False
        return True

    return passes


def _agreeing(positions: list[int], passes: Passes) -> list[int]:
    """The most that agree with one of them, certainly so if that is over half; else what a greedy search leaves."""
    groups = [_with(positions[0], positions, passes)]
    others = [n for n in positions if n not in set(groups[0])]
    if len(others) > len(groups[0]):
        groups.append(_with(_favourite(others, passes), others, passes))
    largest = max(groups, key=len)  # the first of equals
    return largest if len(largest) > 1 and passes(largest) else _greedy(positions, passes)


def _with(reference: int, positions: list[int], passes: Passes) -> list[int]:
    return [n for n in positions if n == reference or passes(sorted((n, reference)))]


def _favourite(positions: list[int], passes: Passes) -> int:
    """One of the majority, if there is a majority, after a single round of pairs (the vote of Boyer and Moore)."""
    candidate, votes = positions[0], 0
    for n in positions:
        if votes == 0:
            candidate, votes = n, 1
        else:
            votes += 1 if passes([candidate, n]) else -1
    return candidate


def _greedy(positions: list[int], passes: Passes) -> list[int]:
    """Leaves out each one with which those before it no longer pass, found by halving."""
    kept: list[int] = []
    left = positions
    while left and not passes(kept + left):
        good, bad = 0, len(left)  # so many of those left still pass, so many do not
        while bad - good > 1:
            middle = (good + bad) // 2
            good, bad = (middle, bad) if passes(kept + left[:middle]) else (good, middle)
        kept, left = kept + left[:good], left[bad:]
    return kept + left
