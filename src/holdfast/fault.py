"""One fault: what went wrong with which sample, and what was done about it; and how several of them read."""

from __future__ import annotations

import json
import operator
import traceback as tracebacks
from collections import Counter
from dataclasses import dataclass, fields
from typing import Any

from holdfast._transport.faults import pack_error, twin, unpack_error
from holdfast.errors import HoldfastError, RemoteError, WorkerDied, WorkerStalled

_WHERE = 60  # characters of a path in a line; its end tells more than its middle
_TEXT = 160  # of an error's text
LEFT_OUT = ("skipped", "known bad")  # actions: the sample is not in its batch,
BAD = (*LEFT_OUT, "replaced")  # ... or only its place is,
_FAILED = (*BAD, "lost")  # ... or nobody knows where it is
_ATTRIBUTE = 2000  # characters of JSON that one attribute of an error may take


@dataclass(slots=True, eq=False, repr=False)
class Fault:
    """A line of the ledger, which owns it. Everything that is known is an attribute; ``str`` is one line of it."""

    when: float  # time.time()
    kind: str  # "exception", "death", "stall", "batch" (collating or sending it), "stream"
    epoch: int
    batch: int | None  # number within the epoch; None: before the first one
    index: Any  # of the sample in the data set; None: not known, or the whole batch
    item: int | None  # iterable data set: which item of that worker's stream
    where: str  # path or other description of the sample; "" when nothing is known
    error: BaseException  # the real one; WorkerDied and WorkerStalled for deaths and stalls
    traceback: str
    seat: int | None
    life: int | None
    pid: int | None
    attempts: int  # at this sample so far, this one included
    action: (
        str  # "raised", "tried again", "skipped", "replaced", "restarted", "waited", "reported", "known bad", "lost"
    )
    instead: Any = None  # index of the sample that stands in its place
    lost: tuple[Any, ...] = ()  # indices that were not delivered because of it (a raised batch: all of it)
    at: str = ""  # for ``holdfast replay``: the batch and all that was random in it; "" where that cannot be had again
    before: tuple[Any, ...] = ()  # indices that were fetched before it in its batch: they drew random numbers, too

    def __str__(self) -> str:
        return f"{self.subject}: {self.reason}; {self.outcome}"

    def __repr__(self) -> str:
        return f"<Fault: {self}>"

    @property
    def subject(self) -> str:
        """Whom it befell: ``sample 7552 (/data/img_0812.jpg) of batch 118``."""
        of_batch = "" if self.batch is None else f" of batch {self.batch}"
        where = f" ({shortened(self.where, _WHERE)})" if self.where else ""
        if self.index is not None:
            return f"sample {self.index}{where}{of_batch}"
        if self.item is not None:
            whose = "" if self.seat is None else f" of worker {self.seat}"
            return f"item {self.item}{whose}{where}{of_batch}"
        if self.batch is not None:
            return f"batch {self.batch}{where}"
        return f"outside of a batch{where}"

    @property
    def reason(self) -> str:
        """The error in one line; its own first line when it is one of ours."""
        text = next(iter(str(self.error).splitlines()), "")
        if isinstance(self.error, WorkerDied | WorkerStalled):
            text = text.partition(" while ")[0]  # the subject says that already
        if not isinstance(self.error, HoldfastError):
            text = f"{type(self.error).__name__}: {text}" if text else type(self.error).__name__
        return shortened(text, _TEXT)

    @property
    def outcome(self) -> str:
        """What was done: ``skipped after 3 attempts, 3391 instead``."""
        attempts = f" after {self.attempts} attempts" if self.attempts > 1 else ""
        instead = "" if self.instead is None else f", {self.instead} instead"
        lost = f", {len(self.lost)} samples not delivered" if len(self.lost) > 1 else ""
        return f"{self.action}{attempts}{instead}{lost}"

    @property
    def error_type(self) -> str:
        """Name of the error's type, also of one that could not leave its worker."""
        if isinstance(self.error, RemoteError):
            return str(self.error.kind)
        kind = type(self.error)
        return f"{kind.__module__}.{kind.__qualname__}".removeprefix("builtins.")

    def to_dict(self) -> dict[str, Any]:
        """All of it in plain types, for JSON."""
        found = {field.name: getattr(self, field.name) for field in fields(self)}
        found["error"] = {"type": self.error_type, "text": str(self.error), "attributes": _attributes(self.error)}
        return found | {
            "index": plain(self.index),
            "instead": plain(self.instead),
            "lost": [plain(index) for index in self.lost],
            "before": [plain(index) for index in self.before],
        }

    def let_go(self) -> None:
        """Keep traceback and causes as text only: their frames would keep samples and all else in them in memory.

        An error on its way to the user is left alone, and a copy kept: it collects the frames that it passes, and
        with them the iterator, whose death ends the workers.
        """
        if not self.traceback and (self.error.__traceback__ or self.error.__cause__) is not None:
            self.traceback = "".join(tracebacks.format_exception(self.error))
        if self.action == "raised":
            self.error = twin(self.error)
        else:
            _let_go(self.error)

    def __reduce__(self) -> Any:
        values = [getattr(self, field.name) for field in fields(self)]
        return _rebuilt, tuple(pack_error(value) if value is self.error else value for value in values)


def _rebuilt(*values: Any) -> Fault:
    fault = Fault(*values)
    fault.error = unpack_error(fault.error)[0]  # an error that does not pickle comes back as a RemoteError
    return fault


def plain(value: Any) -> Any:
    """The value if JSON can hold it, a number as a number, else its repr."""
    try:
        return operator.index(value) if not isinstance(value, bool) else value  # numpy's and torch's integers too
    except (TypeError, ValueError, RuntimeError):
        return value if _json(value) is not None else repr(value)


def shortened(text: str, length: int) -> str:
    """At most so many characters in one line, without the middle."""
    text = " ".join(text.split())
    if len(text) <= length:
        return text
    head = length // 3
    return f"{text[:head]}…{text[len(text) - (length - head - 1) :]}"


def in_words(counts: Counter[tuple[str, str]], seen: int) -> str:
    """``12 of 50000 samples failed: 10 skipped, 2 replaced; 1 worker restarted``."""
    actions: Counter[str] = Counter()
    for (_, action), count in counts.items():
        actions[action] += count
    failed = {action: actions.pop(action) for action in _FAILED if action in actions}
    parts = []
    if failed:
        details = ", ".join(f"{count} {action}" for action, count in failed.items())
        parts.append(f"{sum(failed.values())} of {seen} samples failed: {details}")
    return "; ".join([*parts, *(_other(action, count) for action, count in actions.items())])


def _other(action: str, count: int) -> str:
    s = "" if count == 1 else "s"
    return {
        "restarted": f"{count} worker{s} restarted",
        "raised": f"{count} error{s} raised",
        "waited": f"{count} stall{s} waited for",
        "reported": f"{count} stall{s} reported",
    }.get(action, f"{count} {action}")


HEAD = ("epoch", "batch", "sample", "where", "error", "action")


def table(faults: list[Fault]) -> list[str]:
    rows = [HEAD, *map(row, faults)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEAD))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows]


def row(fault: Fault) -> tuple[str, ...]:
    """What a table shows of it, as ``HEAD`` says."""
    batch = "" if fault.batch is None else str(fault.batch)
    sample = "" if fault.item is None else f"item {fault.item}"
    if fault.index is not None:
        sample = shortened(str(fault.index), 20)
    return str(fault.epoch), batch, sample, shortened(fault.where, 40), shortened(fault.reason, 60), fault.outcome


def _json(value: Any) -> str | None:
    try:
        return json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        return None


def _attributes(error: BaseException) -> dict[str, Any]:
    names = [name for name in vars(error) if not name.startswith("_")]
    if isinstance(error, OSError):
        names += ["errno", "strerror", "filename"]  # these are not in its __dict__
    found = {name: getattr(error, name, None) for name in names}
    return {name: value for name, value in found.items() if 0 < len(_json(value) or "") <= _ATTRIBUTE}


def _let_go(error: BaseException) -> None:
    # The links are cut and not followed: a context may be an exception that the user is handling just now.
    error.__traceback__ = error.__cause__ = error.__context__ = None
    for member in getattr(error, "exceptions", ()):  # of a group
        if isinstance(member, BaseException):
            _let_go(member)
