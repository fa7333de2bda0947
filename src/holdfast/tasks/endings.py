"""Why a pool can do nothing any more."""

from __future__ import annotations

from holdfast._transport.faults import unpack_error
from holdfast.errors import PoolBroken, Verdict
from holdfast.errors.base import indented

_DID = "all of its tasks failed"


def terminated() -> PoolBroken:
    return PoolBroken("the pool was ended before this task was done", "", "", "close() and join() wait for all tasks")


def initializer_failed(packed: bytes | BaseException) -> PoolBroken:
    error, text = unpack_error(packed)
    what = f"the initializer of this pool failed: {type(error).__name__}: {error}"
    failure = PoolBroken(what, indented(text), _DID, "call it in this process to see it fail")
    failure.__cause__ = error
    return failure


def never_ready(deaths: int, last: Verdict | None) -> PoolBroken:
    what = f"workers of this pool end before they are ready, {deaths} of them in a row"
    return PoolBroken(what, last.cause() if last is not None else "", _DID, "look at what they do when they start")
