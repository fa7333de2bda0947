"""What ranks print, shown by the parent."""

from __future__ import annotations

import os
import re
import sys

from holdfast._system.stderr import KEPT, ROOM, Stderr

LONGEST = 1 << 16  # characters that are kept until their line ends
# A progress bar ends its lines by \r. One at the very end may be the first half of \r\n.
_LINE = re.compile(r"[^\r\n]*(?:\r?\n|\r(?!\n|\Z))")


class Lines(Stderr):
    """The parent's end of a pipe that is a rank's stdout or stderr: shown in whole lines, each behind a prefix."""

    stream = "stderr"
    prefix = ""
    _begun = ""  # of a line whose end has not come

    @classmethod
    def of(cls, rank: int, stream: str) -> tuple[Lines, int]:
        """Ours, and the descriptor of the rank's end."""
        lines, theirs = cls.pipe()
        assert isinstance(lines, Lines)
        lines.stream, lines.prefix = stream, f"[{rank}] "
        return lines, theirs

    def forward(self) -> bool:
        if self._fd < 0:
            return False
        try:
            data = os.read(self._fd, ROOM)
        except BlockingIOError:
            return True
        self._last = (self._last + data)[-KEPT:]
        self._begun += self._decoder.decode(data, final=not data)
        self._show_whole()
        return bool(data)

    def close(self) -> None:
        """A last line without an end is shown as well."""
        if self._fd >= 0:
            self.forward()
            self._begun += "\n" if self._begun else ""
            self._show_whole()
        super().close()

    def _show_whole(self) -> None:
        if len(self._begun) > LONGEST and not _LINE.match(self._begun):
            self._begun += "\n"
        lines = _LINE.findall(self._begun)
        self._begun = self._begun[sum(map(len, lines)) :]
        show("".join(self.prefix + line for line in lines), self.stream)


def show(text: str, name: str) -> None:
    """In Python's words, as notebooks and tests put their own streams there."""
    for stream in (getattr(sys, name), getattr(sys, f"__{name}__")):
        try:
            if stream is not None and text:
                stream.write(text)
                stream.flush()
                return
        except Exception:  # closed, or broken: it is not ours to complain about
            continue


def goes_to_terminal(name: str) -> bool:
    try:
        return bool(getattr(sys, name).isatty())
    except Exception:
        return False
