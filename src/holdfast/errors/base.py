"""What all errors have in common: facts in, a sentence out."""

from __future__ import annotations

from typing import Any, ClassVar


class HoldfastError(RuntimeError):
    """Base of all errors that holdfast raises by itself; errors of your own code come through unchanged."""

    code = "HF000"
    facts: ClassVar[tuple[str, ...]] = ()
    """Names of the constructor's arguments, which are kept as attributes."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)  # they rebuild the error when it is pickled
        # One string instead of the facts is a text that was written before: so torch's ExceptionWrapper, and others,
        # carry an exception to another process.
        self._text = args[0] if len(args) == 1 and len(self.facts) != 1 and isinstance(args[0], str) else None
        values = args if self._text is None else (None,) * len(self.facts)
        for name, value in zip(self.facts, values, strict=True):
            setattr(self, name, value)

    def _what(self) -> str:
        return ""

    def _lines(self) -> dict[str, str]:
        """The labelled lines of the message: where, why, did, try."""
        return {}

    def __str__(self) -> str:
        if self._text is not None:
            return self._text
        lines = [f"{self._what()} [{self.code}]"]
        lines += [f"  {label:<6} {text}" for label, text in self._lines().items() if text]
        lines.append(f"  more   holdfast explain {self.code}")
        return "\n".join(lines)


class HoldfastWarning(UserWarning):
    """Something that is going to hurt, said once. ``code`` is what ``holdfast explain`` takes."""

    code = "HF000"

    def __str__(self) -> str:
        return f"{super().__str__()} [{self.code}]"


def first_of(values: Any, shown: int = 4) -> str:
    try:
        values = list(values)
    except TypeError:
        return repr(values)
    return ", ".join(map(str, values[:shown])) + (", ..." if len(values) > shown else "")


def indented(text: str) -> str:
    """Several lines behind a label."""
    return "\n         ".join(text.rstrip().splitlines())


def size(count: int) -> str:
    for unit, name in ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB")):
        if count >= unit:
            return f"{count / unit:.1f} {name}"
    return f"{count} bytes"


def place(where: str, sample: Any, indices: Any) -> str:
    """Which sample it was: its path and its index, or the indices of its batch."""
    at = f"dataset index {sample!r}" if sample is not None else f"dataset indices {first_of(indices)}"
    return f"{where} ({at})" if where else at
