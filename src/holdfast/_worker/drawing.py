"""Can this function draw from the global random generators?

To set them takes 10 µs and more, and a call of a pool may take 0.1. A function that cannot draw need not have them set.
Only what is plain to see counts: Python code that uses nothing but its arguments, plain values, built-in functions,
modules of the standard library that have nothing to do with random numbers, and other functions of that kind. Methods
of arguments are called all the same, so it is for arguments of built-in types only.
"""

from __future__ import annotations

import builtins
import dis
import sys
from collections.abc import Iterator
from functools import partial
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any

_WORDS = """math cmath operator _operator os posix posixpath ntpath re string json time datetime itertools functools
collections hashlib zlib binascii base64 struct textwrap unicodedata html csv fractions decimal bisect heapq copy"""
_MODULES = frozenset(_WORDS.split())
_PLAIN = frozenset({int, float, complex, bool, str, bytes, type(None)})
_NOT_BUILT_IN = frozenset({"__import__", "eval", "exec", "compile", "globals", "vars", "locals", "getattr", "input"})
_DEEPEST = 8  # functions that call functions


def cannot_draw(function: Any, depth: int = 0) -> bool:
    if isinstance(function, partial):
        given = (*function.args, *function.keywords.values())
        return cannot_draw(function.func, depth) and all(_is_harmless(each, depth) for each in given)
    if isinstance(function, FunctionType):
        return depth < _DEEPEST and all(_is_harmless(used, depth) for used in _used_by(function))
    if isinstance(function, BuiltinFunctionType | type):
        return _is_built_in(function) or getattr(function, "__module__", None) in _MODULES
    return False


def _is_harmless(used: Any, depth: int) -> bool:
    if isinstance(used, ModuleType):
        return used.__name__.partition(".")[0] in _MODULES
    return type(used) in _PLAIN or cannot_draw(used, depth + 1)


def _is_built_in(function: Any) -> bool:
    name = getattr(function, "__name__", "")
    return name not in _NOT_BUILT_IN and getattr(builtins, name, None) is function


_UNKNOWN = object()  # of which nothing can be said


def _used_by(function: FunctionType) -> Iterator[Any]:
    """What its code, with the functions that are written inside of it, takes from outside; one `_UNKNOWN` for what
    cannot be told."""
    for code in _codes(function.__code__):
        for instruction in dis.get_instructions(code):
            if instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
                name = instruction.argval
                yield function.__globals__.get(name, getattr(builtins, name, _UNKNOWN))
            elif instruction.opname.startswith("IMPORT"):
                yield sys.modules.get(str(instruction.argval), _UNKNOWN)
    yield from function.__defaults__ or ()
    yield from (function.__kwdefaults__ or {}).values()
    for cell in function.__closure__ or ():
        yield _contents(cell)


def _contents(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not filled yet
        return _UNKNOWN


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)
