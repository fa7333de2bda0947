"""All that is known so far of the samples that were read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from .ranges import Ranges
from .reader import Failed, Stretch
from .times import Times
from .votes import Votes

CORRUPT, DEADLY, PROGRAM = "corrupt", "deadly", "program"
EXAMPLES = 20  # of a group
GROUPS = 200


@dataclass(slots=True)
class Group:
    """Samples that failed for one reason: an exception, the end of the worker, or a program that is wrong."""

    kind: str
    reason: str
    count: int = 0
    examples: list[dict[str, Any]] = field(default_factory=list)


class Survey:
    """``total``: samples that are to be read; None: not known."""

    def __init__(self, total: int | None) -> None:
        self.total = total
        self.done = Ranges()
        self.count = 0
        self.seconds = 0.0  # of reading, in all runs
        self.times, self.votes = Times(), Votes(total)
        self.groups: dict[tuple[str, str], Group] = {}
        self.notes: list[str] = []  # what could not be read

    def add(self, stretch: Stretch) -> None:
        self.done.add(stretch.first, stretch.stop)
        self.count += stretch.size
        self.times.add(stretch.bins, stretch.slowest)
        for look in stretch.looks:
            self.votes.hear(look, stretch.positions(look))
        for failed in stretch.failed:
            self._group(failed, PROGRAM if failed.is_program else CORRUPT)

    def bury(self, failed: Failed) -> None:
        """A sample that ended its worker, or did not end. The stretch that it belongs to does not count it."""
        self.done.add(failed.position, failed.position + 1)
        self.count += 1
        self._group(failed, DEADLY)

    def _group(self, failed: Failed, kind: str) -> None:
        group = self.groups.get((kind, failed.group))
        if group is None:
            if len(self.groups) == GROUPS:
                failed = failed._replace(group="other reasons", reason="other reasons")
            group = self.groups.setdefault((kind, failed.group), Group(kind, failed.reason))
        group.count += 1
        if len(group.examples) < EXAMPLES:
            group.examples.append({"position": failed.position, "where": failed.where, "reason": failed.reason})

    def failed(self, kind: str) -> int:
        return sum(group.count for group in self.groups.values() if group.kind == kind)

    # -- from one run to the next --------------------------------------------------------------

    def saved(self) -> dict[str, Any]:
        return {
            "done": list(self.done),
            "count": self.count,
            "seconds": self.seconds,
            "times": self.times.saved(),
            "votes": self.votes.saved(),
            "groups": [[name, asdict(group)] for (_, name), group in self.groups.items()],
        }

    @classmethod
    def restored(cls, saved: Mapping[str, Any], total: int) -> Survey:
        made = cls(total)
        made.done = Ranges((start, stop) for start, stop in saved["done"])
        made.count, made.seconds = saved["count"], saved["seconds"]
        made.times, made.votes = Times.restored(saved["times"]), Votes.restored(saved["votes"], total)
        made.groups = {(group["kind"], name): Group(**group) for name, group in saved["groups"]}
        return made
