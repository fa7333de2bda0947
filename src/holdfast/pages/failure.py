"""One failure of the field guide."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Failure:
    """What users of torch's loader, and of process pools, meet; and what they get here instead."""

    id: str
    title: str
    today: str  # what a user sees
    cause: str
    promise: str  # with holdfast
    remedy: str  # without holdfast
    patterns: tuple[str, ...]
    """Regular expressions, found in a message or a description of it, whatever the case. The longer the part that is
    matched, the surer: where much is common to many failures, it is looked at (``(?=``) and not matched."""
    codes: tuple[str, ...] = ()  # of holdfast's errors and warnings that have to do with it
    available: bool = True  # False: the promise is not kept in this version

    @property
    def body(self) -> str:
        """The page about it, in Markdown."""
        promise = self.promise if self.available else f"Not in this version. Intended: {self.promise}"
        parts = [
            f"# {self.id} {self.title}",
            f"## What you see\n\n{self.today}",
            f"## What it means\n\n{self.cause}",
            f"## With holdfast\n\n{promise}",
            f"## With stock torch\n\n{self.remedy}",
        ]
        if self.codes:
            parts.append(f"## More\n\n{', '.join(f'`holdfast explain {code}`' for code in self.codes)}")
        return "\n\n".join(parts) + "\n"
