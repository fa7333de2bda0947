"""Which transform failed, and on what: read off the traceback of a sample's error.

Many transforms fail in a line that says nothing of them ("list index out of range"), called from a loop that says
nothing either (``img = t(img)``). But the calls are there, with their variables: one of an object that holds a list of
callables, and further in one of a callable in that list.
"""

from __future__ import annotations

import dis
import os
from collections.abc import Iterator
from functools import partial
from inspect import CO_VARARGS, CO_VARKEYWORDS
from types import FunctionType, MethodType, TracebackType
from typing import Any

from torch.nn import Module, ModuleList, Sequential

from .describe import NOT_THE_USERS, causes, ended_calls, module_of, one_line

_CALLS = 64  # of a traceback, that are searched; a recursion has a thousand
_LONGEST_ROW = 1000  # transforms; a longer list of callables is something else
_SHOWN = 3  # members of an input that is a tuple or a dict
_ITEM = ("__getitem__", "__getitems__", "__iter__", "__next__")  # where the code of a data set begins
_CALLED = ("__call__", "forward", "_wrapped_call_impl")  # the last is how torch calls a module
_WORDS = ("transform", "augment", "preprocess", "tfm")  # in the name of an attribute or function that is one


def failing_transform(error: BaseException) -> str:
    """Such as ``transform 2 of 4 in Compose: RandomCrop, given a Tensor (3, 20, 20) float32``; empty if none failed.

    Never raises, and keeps nothing of the traceback.
    """
    try:
        for search in (_in_a_row, _alone):
            for cause in causes(error):
                if found := search([Call(call) for call in ended_calls(cause)[:_CALLS]]):
                    return one_line(found)
    except Exception:  # a strange object in the traceback must not hide the error that is being told
        pass
    return ""


class Call:
    """One call of a traceback: its code, how far that came, and its variables."""

    def __init__(self, call: TracebackType) -> None:
        self.code = call.tb_frame.f_code
        self.name = self.code.co_name
        self.is_users = module_of(call) not in NOT_THE_USERS
        self.variables = dict(call.tb_frame.f_locals)
        self._reached, self._line = call.tb_lasti, call.tb_lineno

    @property
    def owner(self) -> Any:
        """The first argument, which is ``self`` in a method."""
        return self.variables.get(self.code.co_varnames[0]) if self.code.co_argcount else None

    def runs(self, transform: Any) -> bool:
        """Whether this is a call of that object or function."""
        if isinstance(transform, partial):
            return self.runs(transform.func)
        if isinstance(transform, MethodType):
            return self.owner is transform.__self__ and self.runs(transform.__func__)
        if isinstance(transform, FunctionType):
            return self.code is transform.__code__ or self.runs(transform.__dict__.get("__wrapped__"))
        return transform is not None and self.owner is transform

    def argument(self, after: int) -> tuple[str, Any]:
        """The name of an argument, and its value now; ("", None) when there are not as many."""
        names, count = self.code.co_varnames, self.code.co_argcount
        for name in names[after:count]:
            return name, self.variables.get(name)
        count += self.code.co_kwonlyargcount
        if self.code.co_flags & CO_VARARGS:
            if values := self.variables.get(names[count]):
                return names[count], values[0]
            count += 1
        if self.code.co_flags & CO_VARKEYWORDS and (values := self.variables.get(names[count])):
            return names[count], next(iter(values.values()))
        return "", None

    def sets(self, name: str) -> bool:
        """Whether its code gives that variable a new value, anywhere."""
        return any(name in names for _, names in self._steps("STORE"))

    def has_set(self, name: str) -> bool:
        """Whether it may have given that variable a new value before it failed."""
        return any(name in names for offset, names in self._steps("STORE") if offset < self._reached)

    def used(self) -> list[Any]:
        """The values of the variables in the line that failed."""
        spans = [(start, end) for start, end, line in self.code.co_lines() if line == self._line]
        steps = [names for offset, names in self._steps("LOAD") if any(start <= offset < end for start, end in spans)]
        return [self.variables.get(name) for names in steps for name in names]

    def _steps(self, verb: str) -> Iterator[tuple[int, tuple[str, ...]]]:
        """The instructions that load or store variables, with their names; from Python 3.13 on it can be two."""
        for step in dis.get_instructions(self.code):
            if step.opname.startswith((f"{verb}_FAST", f"{verb}_DEREF")):
                yield step.offset, step.argval if isinstance(step.argval, tuple) else (step.argval,)


# --- a list of transforms, of which one was running ---


def _in_a_row(calls: list[Call]) -> str:
    steps: list[str] = []
    running, given = None, ""
    for number, call in enumerate(calls):
        # Of what is inside a transform, only a further list is told; the rest is the transform's own affair.
        if steps and call.owner is not running:
            continue
        for row in _rows(call.owner):
            callers, callee = _split(row, calls[number:])
            if positions := _running(row, callers, callee):
                steps.append(f"{' or '.join(str(p + 1) for p in positions)} of {len(row)} in {_name(call.owner)}")
                running = row[positions[0]]
                given = _given(running, callee, [caller for caller in callers if caller.owner is call.owner])
                break
    return f"transform {', '.join(steps)}: {_name(running)}{given}" if steps else ""


def _rows(owner: Any) -> Iterator[list[Any]]:
    """Lists of callables that an object holds, or is."""
    if isinstance(owner, Sequential):
        yield list(owner._modules.values())  # children() would leave out the second place of a module
    modules = owner._modules.values() if isinstance(owner, Module) else ()
    for value in (owner, *getattr(owner, "__dict__", {}).values(), *modules):
        row = list(value._modules.values()) if isinstance(value, ModuleList) else value
        if isinstance(row, list | tuple) and 0 < len(row) <= _LONGEST_ROW and all(map(callable, row)):
            yield list(row)


def _split(row: list[Any], calls: list[Call]) -> tuple[list[Call], Call | None]:
    """The calls up to that of a member of the row, and this one; None when it left no call, as those in C do."""
    for number, call in enumerate(calls[1:], 1):
        if any(call.runs(transform) for transform in row):
            return calls[:number], call
    return calls, None


def _running(row: list[Any], callers: list[Call], callee: Call | None) -> list[int]:
    """Where in the row the running member is; several places if it has several and nothing tells which."""
    called = [n for n, transform in enumerate(row) if callee and callee.runs(transform)]
    used = [value for caller in callers for value in caller.used()]
    named = [n for n, transform in enumerate(row) if any(value is transform for value in used)]
    found = [n for n in called if n in named] or called or named
    counters = {value for caller in callers for value in caller.variables.values() if type(value) is int}
    counted = counters.intersection(found)
    return list(counted) if len(counted) == 1 else found


# --- a transform by itself ---


def _alone(calls: list[Call]) -> str:
    begun = next((number for number, call in enumerate(calls) if call.name in _ITEM), len(calls))
    running, callee = None, None
    candidates: list[Any] = []
    for call in calls[begun:]:
        transform = next((candidate for candidate in candidates if call.runs(candidate)), None)
        if transform is None and callee is None and call is not calls[begun]:
            transform = _by_its_looks(call)
        if transform is not None and transform is not running:
            running, callee, candidates = transform, call, []
        if callee is None or call.owner is running:
            candidates += _attributes(call.owner)
    return f"transform {_name(running)}{_given(running, callee, [])}" if callee else ""


def _attributes(owner: Any) -> list[Any]:
    modules = owner._modules if isinstance(owner, Module) else {}
    members = {**getattr(owner, "__dict__", {}), **modules}.items()
    return [value for name, value in members if callable(value) and any(word in name.lower() for word in _WORDS)]


def _by_its_looks(call: Call) -> Any:
    """The object that is called, or the code of a function named like a transform."""
    if call.name in _CALLED and (call.is_users or isinstance(call.owner, Module)):
        return call.owner if not isinstance(call.owner, type) else None
    return call.code if call.is_users and any(word in call.name.lower() for word in _WORDS) else None


# --- words ---


def _name(transform: Any) -> str:
    if isinstance(transform, partial):
        return _name(transform.func)
    code = transform if hasattr(transform, "co_name") else getattr(transform, "__code__", None)
    if code is not None and code.co_name == "<lambda>":
        return f"the lambda at {os.path.basename(code.co_filename)}:{code.co_firstlineno}"
    name = code.co_name if code is not None else getattr(transform, "__name__", None)
    return name if isinstance(name, str) else type(transform).__name__


def _given(transform: Any, callee: Call | None, rows: list[Call]) -> str:
    """The input, if it is still there: a call may have put something else in its place."""
    name, value = callee.argument(_own_arguments(transform, callee)) if callee else ("", None)
    if callee and name and not callee.has_set(name):
        return f", given {_kind(value)}"
    for row in rows[-1:]:  # which goes round with its first argument: img = t(img)
        passed, current = row.argument(1)
        if passed and row.sets(passed):
            return f", given {_kind(current)}"
    return f", by then with {_kind(value)}" if name else ""


def _own_arguments(transform: Any, callee: Call) -> int:
    """How many arguments come before the input."""
    if isinstance(transform, partial):
        return len(transform.args) + _own_arguments(transform.func, callee)
    if isinstance(transform, FunctionType):
        return 0
    return int(
        callee.owner is transform or isinstance(transform, MethodType) or callee.code.co_varnames[:1] == ("self",)
    )


def _kind(value: Any, *, article: bool = True) -> str:
    name = "None" if value is None else type(value).__name__
    one = "" if not article or value is None else "an " if name[0] in "aeiouAEIO" or name == "ndarray" else "a "
    return f"{one}{name}{_details(value, whole=article)}"


def _details(value: Any, *, whole: bool) -> str:
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        return f" {tuple(value.shape)} {str(value.dtype).removeprefix('torch.')}"
    if hasattr(value, "mode") and hasattr(value, "size"):  # an image of Pillow
        return f" {value.mode} {'x'.join(map(str, value.size))}"
    if isinstance(value, str | bytes):
        return f" of length {len(value)}"
    if whole and isinstance(value, dict):
        members = [f"{name}: {_kind(member, article=False)}" for name, member in list(value.items())[:_SHOWN]]
    elif whole and isinstance(value, list | tuple):
        members = [_kind(member, article=False) for member in value[:_SHOWN]]
    else:
        return ""
    return f" of {len(value)} ({', '.join(members)}{', ...' if len(value) > _SHOWN else ''})"
