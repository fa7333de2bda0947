"""``# holdfast: noqa``: findings that the user has seen and keeps."""

from __future__ import annotations

import re

from .finding import Finding

_COMMENT = re.compile(r"#\s*holdfast:\s*noqa\b[:\s]*((?:H[LF]\d{3}\b[,\s]*)*)", re.IGNORECASE)
_CODE = re.compile(r"H[LF](\d{3})", re.IGNORECASE)


class Noqa:
    """Which codes are silenced on which line; an empty set stands for all of them."""

    def __init__(self, text: str) -> None:
        self._lines: dict[int, set[str]] = {}
        if "noqa" in text.lower():
            for number, line in enumerate(text.split("\n"), start=1):
                if comment := _COMMENT.search(line):
                    self._lines[number] = {f"HL{code}" for code in _CODE.findall(comment[1])}

    def silences(self, finding: Finding) -> bool:
        codes = self._lines.get(finding.line)
        return codes is not None and (not codes or finding.code in codes)
