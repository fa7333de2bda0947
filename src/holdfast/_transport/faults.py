"""Exceptions across processes: the user's own exception arrives as itself, with a note that says where it happened.

An exception that cannot be taken apart, or cannot be put together again, travels as a `RemoteError` that keeps its
type's name, its text, its traceback and those of its attributes that do travel.
"""

from __future__ import annotations

import pickle
import traceback
from typing import Any

import cloudpickle

from holdfast.errors import RemoteError


def pack_error(error: BaseException) -> bytes:
    """Exception and formatted traceback, in a form that is known to come back."""
    text = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    for parts in (error, (type(error), error.args, error.__dict__)):
        try:
            body = cloudpickle.dumps(parts, protocol=5)
            _rebuild(body)  # some exceptions pickle well and fail only on the way back (two required arguments)
        except Exception:
            continue
        return bytes(pickle.dumps((body, None, text), protocol=5))
    return bytes(pickle.dumps((None, _as_remote(error), text), protocol=5))


def unpack_error(data: bytes) -> tuple[BaseException, str]:
    """The exception and its traceback's text."""
    body, remote, text = pickle.loads(data)
    if body is not None:
        try:
            return _rebuild(body), text
        except Exception as failure:
            remote = (type(failure).__name__, f"the exception could not be rebuilt here: {failure}", {})
    return RemoteError(*remote, text), text


def _rebuild(body: bytes) -> BaseException:
    parts = pickle.loads(body)
    if isinstance(parts, BaseException):
        return parts
    kind, args, attributes = parts
    error: BaseException = kind.__new__(kind, *args)  # without __init__, whose arguments nobody kept
    error.args = args
    error.__dict__.update(attributes)
    return error


def _as_remote(error: BaseException) -> tuple[str, str, dict[str, Any]]:
    kind = type(error)
    attributes = {name: value for name, value in error.__dict__.items() if _travels(value)}
    return f"{kind.__module__}.{kind.__qualname__}".removeprefix("builtins."), str(error), attributes


def _travels(value: object) -> bool:
    try:
        pickle.loads(pickle.dumps(value))
    except Exception:
        return False
    return True
