"""Names that nothing defines. Python's own symbol table knows about scopes: comprehensions, walrus, match, type
parameters, ``__class__``; so no rule has to."""

from __future__ import annotations

import builtins
import symtable
from collections import defaultdict
from collections.abc import Iterator

from .bindings import Function

_GIVEN = frozenset(vars(builtins)) | {
    *("__name__", "__file__", "__doc__", "__package__", "__spec__", "__loader__", "__path__", "__builtins__"),
    *("__annotations__", "__debug__", "__dict__", "__cached__", "__conditional_annotations__", "__class__"),
}
_HIDES = {"exec", "eval", "globals", "vars", "setattr", "locals"}  # after these the module has names nobody can see


class Names:
    """Made from the text, as a symbol table is; costs about as much as parsing it again."""

    def __init__(self, text: str) -> None:
        self._tables: dict[tuple[str, int], list[symtable.SymbolTable]] = defaultdict(list)
        self._defined: set[str] | None = None
        try:
            tables = list(_all(symtable.symtable(text, "<script>", "exec")))
        except (SyntaxError, ValueError):
            return  # what ast can parse and the compiler refuses, such as `return` in a module
        for table in tables:
            self._tables[table.get_name(), table.get_lineno()].append(table)
        symbols = [(table, symbol) for table in tables for symbol in table.get_symbols()]
        if "import *" not in text and not any(_hides(symbol) for _, symbol in symbols):
            self._defined = {symbol.get_name() for table, symbol in symbols if _defines(table, symbol)}

    def undefined(self, function: Function) -> frozenset[str]:
        if self._defined is None:
            return frozenset()
        key = getattr(function, "name", "lambda"), function.lineno
        inside = [one for table in self._tables.get(key, []) for one in _all(table)]
        used = {symbol.get_name() for table in inside for symbol in table.get_symbols() if _is_of_module(symbol)}
        return frozenset(used - self._defined - _GIVEN)


def _all(table: symtable.SymbolTable) -> Iterator[symtable.SymbolTable]:
    yield table
    for child in table.get_children():
        yield from _all(child)


def _hides(symbol: symtable.Symbol) -> bool:
    return symbol.is_global() and symbol.get_name() in _HIDES


def _is_of_module(symbol: symtable.Symbol) -> bool:
    return symbol.is_global() and symbol.is_referenced()


def _defines(table: symtable.SymbolTable, symbol: symtable.Symbol) -> bool:
    """Bound in the module itself, or by a function that says ``global``."""
    bound = symbol.is_assigned() or symbol.is_imported() or symbol.is_namespace()
    return bound and (table.get_type() == "module" or symbol.is_declared_global())
