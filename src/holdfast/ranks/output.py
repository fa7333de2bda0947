"""What ranks print, shown by the parent."""

from __future__ import annotations

import re
import sys

from holdfast._system.stderr import Stderr, show

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

    def _take(self, text: str) -> None:
        self._begun += text
        self._show_whole()

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


def goes_to_terminal(name: str) -> bool:
    try:
        return bool(getattr(sys, name).isatty())
    except Exception:
        return False
