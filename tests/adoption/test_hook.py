"""A call comes once, when the module has been imported."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable, Iterator
from importlib.machinery import SourceFileLoader
from pathlib import Path

import pytest

from holdfast.adoption.hook import when_imported

NAME = "imported_under_a_hook"


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    finders = list(sys.meta_path)

    def write(text: str) -> None:
        (tmp_path / f"{NAME}.py").write_text(text)
        importlib.invalidate_caches()

    yield write
    sys.modules.pop(NAME, None)
    sys.meta_path[:] = finders


def calls() -> list[bool]:
    """One for each call: whether the module was there, complete."""
    made: list[bool] = []
    when_imported(NAME, lambda: made.append(hasattr(sys.modules[NAME], "last")))
    return made


def test_the_call_comes_once_and_when_the_module_is_complete(write):
    write("first = 1\nlast = 2")
    made = calls()
    module = importlib.import_module(NAME)
    importlib.reload(module)
    assert made == [True]


def test_the_module_looks_as_if_nobody_had_called(write):
    write("last = 1")
    calls()
    module = importlib.import_module(NAME)
    assert type(module.__loader__) is type(module.__spec__.loader) is SourceFileLoader
    assert module.__spec__.origin == module.__file__
    assert not any(type(finder).__module__.startswith("holdfast") for finder in sys.meta_path)


def test_to_ask_for_a_module_is_not_to_import_it(write):
    made = calls()
    assert importlib.util.find_spec(NAME) is None
    write("last = 1")
    assert importlib.util.find_spec(NAME) is not None
    assert made == []
    importlib.import_module(NAME)
    assert made == [True]


def test_an_import_that_fails_is_none(write):
    write("raise ImportError('a library is missing')")
    made = calls()
    with pytest.raises(ImportError, match="a library is missing"):
        importlib.import_module(NAME)
    write("last = 1")
    importlib.import_module(NAME)
    assert made == [True]


def test_a_module_that_is_there_calls_at_once(write):
    write("last = 1")
    importlib.import_module(NAME)
    assert calls() == [True]
