"""The file beside the quarantine from which an interrupted scan goes on.

It is a snapshot and not a journal: what is known of ten million samples fits in some kilobytes, and a line for each
would not. Written to the side and put in place at once, so it is whole whenever the process is killed.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

from holdfast.targets.mistake import Mistake

from .plan import Plan
from .survey import Survey
from .writing import writing

PAUSE = 0.3  # seconds between two writes, at least,
SHARE = 20  # ... and so many times as long as a write takes
VERSION = 1


class Progress:
    """Owned by a scan. ``save`` is cheap to call often."""

    def __init__(self, output: Path, plan: Plan) -> None:
        self.path = output.with_name(f"{output.name}.progress")
        self._plan = plan
        self._next = 0.0

    def load(self) -> Survey | None:
        """What is known already; None: nothing."""
        try:
            saved = json.loads(self.path.read_text(encoding="utf-8"))
            identity = saved["identity"]
        except FileNotFoundError:
            return None
        except (ValueError, KeyError, TypeError):
            raise Mistake(f"{self.path} is not the progress of a scan", "begin anew with --restart") from None
        if saved.get("version") != VERSION:
            raise Mistake(f"{self.path} is of another version of holdfast", "begin anew with --restart")
        self._compare(identity)
        return Survey.restored(saved["survey"], len(self._plan))

    def _compare(self, then: dict[str, object]) -> None:
        for name, now in self._plan.identity.items():
            if then.get(name) != now:
                raise Mistake(
                    f"{self.path} is of another scan: {name} was {_shown(then.get(name))}, and is now {_shown(now)}",
                    "begin anew with --restart, or keep both with --output FILE",
                )

    def save(self, survey: Survey, *, now: bool = False) -> None:
        begun = time.monotonic()
        if begun < self._next and not now:
            return
        told = {"version": VERSION, "identity": self._plan.identity, "survey": survey.saved()}
        aside = self.path.with_name(f"{self.path.name}.new")
        with writing(aside):
            aside.write_text(json.dumps(told), encoding="utf-8")
            os.replace(aside, self.path)
        ended = time.monotonic()
        self._next = ended + max(PAUSE, SHARE * (ended - begun))

    def remove(self) -> None:
        self.path.unlink(missing_ok=True)


def _shown(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else "not given" if value is None else str(value)
