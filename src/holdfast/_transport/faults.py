"""Exceptions across processes: the user's own exception arrives as itself, with a note that says where it happened.

An exception that cannot be taken apart, or cannot be put together again, travels as a `RemoteError` that keeps its
type's name, its text, its traceback and those of its attributes that do travel.
"""

from __future__ import annotations

import copy
import io
import pickle
import traceback
from types import TracebackType
from typing import Any

import cloudpickle

from holdfast.errors import RemoteError

_OURS = ("holdfast._worker.", "holdfast._transport.")


def pack_error(error: BaseException) -> bytes:
    """Exception and formatted traceback, in a form that is known to come back."""
    text = "".join(traceback.format_exception(type(error), error, _from_the_users_code(error)))
    for pickler in (cloudpickle.Pickler, _BarePickler):
        try:
            body = _dumped(error, pickler)
            _rebuild(body)  # some exceptions pickle well and fail only on the way back (two required arguments)
        except Exception:
            continue
        return bytes(pickle.dumps((body, None, text), protocol=5))
    return bytes(pickle.dumps((None, _as_remote(error), text), protocol=5))


def _from_the_users_code(error: BaseException) -> TracebackType | None:
    """The calls that led here, without ours in front, which tell a user nothing."""
    call = error.__traceback__
    while call is not None and call.tb_frame.f_globals.get("__name__", "").startswith(_OURS):
        call = call.tb_next
    return call or error.__traceback__


def unpack_error(data: bytes | BaseException) -> tuple[BaseException, str]:
    """The exception and its traceback's text; one that never left the process still has its traceback."""
    if isinstance(data, BaseException):
        return data, ""
    body, remote, text = pickle.loads(data)
    if body is not None:
        try:
            return _rebuild(body), text
        except Exception as failure:
            remote = (type(failure).__name__, f"the exception could not be rebuilt here: {failure}", {})
    return RemoteError(*remote, text), text


def twin(error: BaseException) -> BaseException:
    """The same exception once more, without traceback and causes; itself when it cannot be copied."""
    for copied in (copy.copy, _bared):
        try:
            found = copied(error)
            if type(found) is type(error) and str(found) == str(error):  # its __init__ may take something else
                return found
        except Exception:
            continue
    return error


def add_note(error: BaseException, note: str) -> None:
    if hasattr(error, "add_note"):
        error.add_note(note)
    else:  # Python 3.10
        vars(error).setdefault("__notes__", []).append(note)


class _BarePickler(cloudpickle.Pickler):  # type: ignore[misc]  # cloudpickle has no types
    """Exceptions, also those inside of an exception group, by what they hold and not by how they were made."""

    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, BaseException):
            return _bare, (type(obj), obj.args, obj.__dict__)
        return super().reducer_override(obj)


def _bare(kind: type[BaseException], args: tuple[Any, ...], attributes: dict[str, Any]) -> BaseException:
    error: BaseException = kind.__new__(kind, *args)  # without __init__, whose arguments nobody kept
    error.args = args
    error.__dict__.update(attributes)
    return error


def _bared(error: BaseException) -> BaseException:
    return _bare(type(error), error.args, error.__dict__)


def _dumped(error: BaseException, pickler: Any) -> bytes:
    with io.BytesIO() as file:
        pickler(file, protocol=5).dump(error)
        return file.getvalue()


def _rebuild(body: bytes) -> BaseException:
    error = pickle.loads(body)
    if not isinstance(error, BaseException):
        raise TypeError(f"an exception became {error!r}")
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
