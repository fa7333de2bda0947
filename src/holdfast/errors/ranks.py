"""Ranks of `spawn` that fail.

What is raised derives from torch's exceptions as well (`holdfast.ranks.failures`); here nothing imports torch.
"""

from __future__ import annotations

from .base import HoldfastError, HoldfastWarning
from .starting import CannotShip
from .verdict import Verdict

_INDENT = "\n         "


class RankRaised(HoldfastError):
    """A rank's function raised. The exception itself is the cause of this one."""

    code = "HF801"
    facts = ("error_index", "error_pid", "raised", "traceback", "others")
    error_index: int  # the rank, by torch's name for it
    error_pid: int
    raised: str  # such as: "ValueError: negative dimension"
    traceback: str
    others: list[str]  # what became of other ranks that failed too

    def _what(self) -> str:
        return f"rank {self.error_index} (pid {self.error_pid}) raised {self.raised}"

    def _lines(self) -> dict[str, str]:
        told = f"-- Process {self.error_index} terminated with the following error:"
        return {
            "then": _INDENT.join(self.others),
            "torch": _INDENT.join([told, *self.traceback.rstrip().splitlines()]),
        }


class RankExited(HoldfastError):
    """A rank's process ended, and its function had not returned; or it did not end well after that."""

    code = "HF802"
    facts = ("error_index", "error_pid", "exit_code", "signal_name", "verdict", "when", "others")
    error_index: int
    error_pid: int
    exit_code: int  # -1 when nobody could tell
    signal_name: str | None
    verdict: Verdict
    when: str  # such as: "before train had returned"
    others: list[str]

    def _what(self) -> str:
        return f"rank {self.error_index} (pid {self.error_pid}) {self.verdict} {self.when}"

    def _lines(self) -> dict[str, str]:
        return {
            "why": self.verdict.cause(),
            "then": _INDENT.join(self.others),
            "try": "return from the function: leaving by sys.exit is no success" if self.exit_code == 0 else "",
            "torch": self._as_torch_says(),
        }

    def _as_torch_says(self) -> str:
        how = f"signal {self.signal_name}" if self.signal_name else f"exit code {self.exit_code}"
        return f"process {self.error_index} terminated with {how}"


class CannotShipToRanks(CannotShip):
    """The function or its arguments cannot be pickled."""

    code = "HF803"

    def _what(self) -> str:
        return f"{self.what} cannot be handed to the ranks: {self.path} ({self.kind}) cannot be pickled"

    def _lines(self) -> dict[str, str]:
        return {
            "why": self.reason,
            "try": f'make {self.path} in each rank, in the function; or start_method="fork" if no thread of this '
            "process holds a lock when the ranks start",
        }


class ResultLost(HoldfastWarning):
    """What a rank's function returned cannot be passed between processes; None stands in its place."""

    code = "HF804"
