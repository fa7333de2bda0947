"""One thing that the doctor found."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from holdfast.audit.finding import Severity

_HARM = {severity: rank for rank, severity in enumerate(Severity)}


@dataclass(frozen=True)
class Symptom:
    """``check`` is the code of the check that found it, ``HD03``, whose page ``holdfast explain`` shows.

    ``what`` is a sentence without its full stop, that stands alone. ``where`` is a path in the data set
    (``dataset.store.file``), a file or a setting; ``evidence`` what was seen or measured; ``fix`` a line of code or a
    command.
    """

    check: str
    severity: Severity
    what: str
    where: str = ""
    evidence: str = ""
    fix: str = ""

    def to_dict(self) -> dict[str, Any]:
        return asdict(self) | {"severity": self.severity.value}


def in_order_of_harm(symptoms: Iterable[Symptom]) -> list[Symptom]:
    """Worst first; what is as bad as each other as it was found."""
    return sorted(symptoms, key=lambda symptom: _HARM[symptom.severity])
