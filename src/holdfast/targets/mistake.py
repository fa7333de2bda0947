"""What a user got wrong, for the command line: said in one sentence and without a traceback."""

from __future__ import annotations

import traceback
from types import TracebackType

_OURS = f"{__name__.partition('.')[0]}/"


class Mistake(Exception):
    """The text is all that is shown, and the exit code is 2. ``hint``: a second line, that says what is valid."""

    def __init__(self, text: str, hint: str = "") -> None:
        super().__init__(text)
        self.hint = hint


def raised(what: str, error: BaseException) -> Mistake:
    """That code of the user's raised: ``train.py raised ValueError: no such split``, and where."""
    text = "".join(traceback.format_exception_only(error)).strip()
    if isinstance(error, SyntaxError):  # of which that would be four lines, with its name in the last
        text = f"{type(error).__name__}: {error}"
    return Mistake(f"{what} raised {text}", place(error.__traceback__))


def place(trace: TracebackType | None) -> str:
    """The innermost line that is neither ours nor Python's own import machinery: ``at train.py:12 in make_loader``."""
    frames = traceback.extract_tb(trace)
    theirs = [frame for frame in frames if _OURS not in frame.filename and not frame.filename.startswith("<frozen")]
    if not theirs:
        return ""
    last = theirs[-1]
    return f"at {last.filename}:{last.lineno} in {last.name}: {last.line}".removesuffix(": ")
