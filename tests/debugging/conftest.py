"""Somebody at the prompt."""

from __future__ import annotations

import builtins
import signal
from collections.abc import Callable, Iterator

import pytest
from typist import Answer, Typist


@pytest.fixture(autouse=True)
def _interrupts_as_before() -> Iterator[None]:
    """Python's own debugger, at a ``breakpoint()`` in this process, keeps Ctrl-C to itself from then on."""
    before = signal.getsignal(signal.SIGINT)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def types(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Typist]:
    """``types("p index", "c")`` from here on."""

    def begin(*answers: Answer) -> Typist:
        typist = Typist(*answers)
        monkeypatch.setattr(builtins, "input", typist)
        return typist

    return begin
