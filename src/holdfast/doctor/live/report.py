"""What ``look_at`` found: one section for each trainer, and a sentence for the whole job."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .conclusion import Conclusion, Standing
from .job import Role
from .member import Member


@dataclass(frozen=True, slots=True)
class Section:
    """A trainer and those that work for it. ``servants``: the zygote, fork server and the like, with their pids."""

    rank: str
    conclusion: Conclusion
    trainer: Member
    hands: tuple[Member, ...]
    servants: tuple[tuple[int, Role], ...]

    @property
    def members(self) -> tuple[Member, ...]:
        return (self.trainer, *self.hands)

    @property
    def name(self) -> str:
        return f"rank {self.rank}" if self.rank else f"trainer {self.trainer.pid}"

    def to_dict(self) -> dict[str, Any]:
        return {
            "rank": self.rank or None,
            **self.conclusion.to_dict(),
            "trainer": self.trainer.to_dict(),
            "workers": [one.to_dict() for one in self.hands],
            "servants": [{"pid": pid, "role": role.value} for pid, role in self.servants],
        }


@dataclass(frozen=True, slots=True)
class LiveReport:
    """``conclusion`` is of the whole job; ``unseen`` what could not be seen, and why."""

    pid: int  # as it was asked for
    conclusion: Conclusion
    launcher: int | None
    sections: tuple[Section, ...]
    unseen: tuple[str, ...]
    seconds: float

    @property
    def is_stalled(self) -> bool:
        return self.conclusion.standing is Standing.STALLED

    def to_dict(self) -> dict[str, Any]:
        return {
            "pid": self.pid,
            **self.conclusion.to_dict(),
            "launcher": self.launcher,
            "sections": [section.to_dict() for section in self.sections],
            "unseen": list(self.unseen),
            "seconds": self.seconds,
        }
