"""Somebody who types at prompts, as a notebook lets one type: ``input`` is replaced, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Answer = str | type[BaseException] | Callable[[], str]


class Typist:
    """Gives these answers, one for each prompt; afterwards ``c``. An answer may be raised, or be made first."""

    def __init__(self, *answers: Answer) -> None:
        self._answers = list(answers)
        self.prompts: list[str] = []

    def __call__(self, prompt: str = "") -> str:
        self.prompts.append(prompt)
        answer: Any = self._answers.pop(0) if self._answers else "c"
        if isinstance(answer, type):
            raise answer
        typed = answer() if callable(answer) else answer
        print(f"{prompt}{typed}")  # as a terminal echoes it
        return typed
