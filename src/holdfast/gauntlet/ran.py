"""How a program ended, and the questions that the checks of a failure ask about it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field


class NotSo(Exception):
    """What should have been seen was not; the text says what was expected and what came."""


@dataclass(frozen=True)
class Ran:
    """How a program ended. ``status`` is None when it had not by its time limit and was killed."""

    status: int | None
    out: str
    err: str
    seconds: float
    outlived: list[str] = field(default_factory=list)  # processes it started that were there a second after its end

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()

    @property
    def last_words(self) -> str:
        """The line that tells most: the last error, without what is indented below it."""
        said = [line for line in self.err.splitlines() if line.strip() and not line[0].isspace()]
        errors = [line for line in said if _names_an_error(line)]
        return (errors or said or self.lines or ["nothing"])[-1]

    def __str__(self) -> str:
        if self.status is None:
            return f"it hung and was killed after {self.seconds:.0f} s, having printed {self.lines}"
        return f"it ended with status {self.status}: {self.last_words}"

    def must(self, held: bool, expected: str) -> None:
        if not held:
            raise NotSo(f"expected {expected}, but {self}")

    def ends_well(self) -> None:
        self.must(self.status == 0, "a good end")

    def is_silent(self) -> None:
        """Nothing was said on stderr."""
        self.must(not self.err, "a silent stderr")

    def prints(self, *expected: str) -> None:
        """Exactly these lines on stdout, and a good end."""
        self.ends_well()
        if self.lines != list(expected):
            raise NotSo(f"expected {list(expected)}, but it printed {self.lines}")

    def hangs(self) -> str:
        """It had said something, so it had started, and then nothing more came."""
        self.must(self.status is None and bool(self.out), "a hang")
        return f"hangs: killed after {self.seconds:.0f} s"

    def fails(self, *any_of: str) -> str:
        """Ended badly, and said one of these on stderr; the line that says it."""
        self.must(bool(self.status), "a bad end")
        return self._said(any_of)

    def fails_or_hangs(self, *any_of: str) -> str:
        """The same, where the one who fails may be a thread that the program then waits for in vain."""
        self.must(self.status != 0, "a bad end, or none")
        return self._said(any_of) + (", and it hangs" if self.status is None else "")

    def _said(self, any_of: tuple[str, ...]) -> str:
        said = [line for line in self.err.splitlines() if any(words in line for words in any_of)]
        self.must(bool(said), f"one of {any_of} on stderr")
        return _told(([line for line in said if _names_an_error(line)] or said)[-1])

    def says(self, *words: str) -> str:
        """All of these are on stderr; the line that has the first."""
        for missing in (part for part in words if part not in self.err):
            raise NotSo(f"expected {missing!r} on stderr, but {self}")
        return next(_told(line) for line in self.err.splitlines() if words[0] in line)


def _told(line: str) -> str:
    """Without the place of a warning, the module of an error, or the words of an interpreter that cannot print it."""
    return re.sub(r"^(object repr +: )?(/\S+\.py:\d+: )?(\w+\.)*(?=[A-Z]\w*[:(])", "", line.strip())


def _names_an_error(line: str) -> bool:
    return re.match(r"([a-z_]\w*\.)*[A-Z]\w*(: |$)", line) is not None
