"""The ledger: all faults of a run. ``loader.faults`` is one."""

from __future__ import annotations

import json
import logging
import operator
import os
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from typing import Any, NamedTuple, overload

from holdfast._transport.faults import pack_error, unpack_error

from .fault import BAD, LEFT_OUT, Fault, in_words, table

__all__ = ["Fault", "Ledger", "hashable"]

QUIET = 30.0  # seconds between two lines about faults of a kind that is known already
_ROWS = 20  # that a table shows
_SAVED = 256  # bytes of samples known to be bad, in a state; others are found out again
_logger = logging.getLogger("holdfast")


class Bad(NamedTuple):
    """A sample that failed for good. ``answer``: what a policy said about it, which holds from then on."""

    error: BaseException | None
    where: str
    answer: Any


_NOTHING_KNOWN = Bad(None, "", None)


class Ledger(Sequence[Fault]):
    """Faults in the order in which they happened; owned by the loader, in the trainer only.

    It keeps the newest ``limit`` (None: all) and counts all of them. ``file`` gets one line of JSON for each, written
    before anything else happens, so that it outlives the process. ``warn=False`` says nothing by itself. ``clock``
    tells seconds for the pauses between warnings.
    """

    def __init__(
        self,
        limit: int | None = 1000,
        file: str | os.PathLike[str] | None = None,
        warn: bool = True,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.seen = 0
        """Samples drawn for the batches that were delivered, so far in this run. The loader adds to it."""
        self.carried = 0
        """Of these, samples that were seen before a state was loaded."""
        self.file = os.path.abspath(file) if file is not None else None
        self.warn = warn
        self._faults: deque[Fault] = deque(maxlen=limit)
        self._bad: dict[Any, Bad] = {}
        self._counts: Counter[tuple[str, str]] = Counter()
        self._epoch: tuple[int, Counter[tuple[str, str]]] = (0, Counter())  # the latest one that had a fault
        self._file_failed = False
        self._skipped_before = 0  # by the runs of which this is the next
        self._clock = clock
        self._told: set[tuple[str, str, str]] = set()  # classes of faults that were warned of
        self._untold = 0
        self._last_told = -QUIET

    # Keeping

    def note(self, fault: Fault) -> None:
        """Enter a fault."""
        fault.let_go()
        self._faults.append(fault)
        key = (fault.kind, fault.action)
        self._counts[key] += 1
        if fault.epoch != self._epoch[0]:
            self._epoch = (fault.epoch, Counter())
        self._epoch[1][key] += 1
        if fault.index is not None and fault.action in BAD:
            self.remember(fault.index, fault.error, fault.where)
        if self.file is not None:
            self._write(fault, self.file)
        if self.warn and fault.action != "raised":
            self._tell(fault)

    def end_epoch(self, epoch: int, seen: int) -> None:
        """Log the epoch's faults in one line, if it had any; ``seen`` counts its samples.

        Logged, as it is news of every epoch and not a call to change something: it goes to stderr where nobody set up
        logging, into the log of those who did, and does not end a run in which warnings are errors.
        """
        latest, counts = self._epoch
        if epoch != latest or not counts:
            return
        self._epoch, self._untold = (epoch, Counter()), 0
        if self.warn:
            _logger.warning("holdfast: epoch %s: %s (loader.faults has them)", epoch, in_words(counts, seen))

    def remember(self, index: Any, error: BaseException | None = None, where: str = "", answer: Any = None) -> None:
        """This index is bad, and why, where and what is done about it if that is known.

        What is skipped or replaced is remembered by itself. What was known before is kept where nothing new is said.
        """
        old = self._bad.get(hashable(index), _NOTHING_KNOWN)
        self._bad[hashable(index)] = Bad(error or old.error, where or old.where, answer or old.answer)

    def is_bad(self, index: Any) -> bool:
        """Whether this index has failed for good before."""
        return hashable(index) in self._bad

    def why(self, index: Any) -> BaseException | None:
        """The error that made it known to be bad; None when only that is known."""
        return self.known(index).error

    def known(self, index: Any) -> Bad:
        """What is remembered of it."""
        return self._bad.get(hashable(index), _NOTHING_KNOWN)

    # From one run to the next

    def saved(self, unseen: int = 0, ahead: int = 0, answer: Any = None) -> dict[str, Any]:
        """What limits hang on, and what need not be tried again, for a loader's state: plain and small.

        ``unseen``: of what was seen, does not count. ``ahead``: left out of batches that are not delivered. ``answer``:
        what is known to be bad and has another one is not told of, as nobody would know what to do about it.
        """
        bad: list[Any] = []
        for index, known in self._bad.items():
            if answer is None or known.answer != answer or type(index) not in (int, str):
                continue
            if len(json.dumps([*bad, index])) <= _SAVED:
                bad.append(index)
        return {"seen": self.seen - unseen, "skipped": self.skipped - ahead, "bad": bad}

    def resume(self, saved: Mapping[str, Any]) -> None:
        """Go on from what an earlier run, or we ourselves earlier, had seen and left out."""
        self.carried += saved["seen"] - self.seen
        self.seen = saved["seen"]
        self._skipped_before += saved["skipped"] - self.skipped
        told_of = {index: bad for index, bad in self._bad.items() if bad.error is None and bad.answer is None}
        self._bad = told_of | {index: self.known(index) for index in saved["bad"]}

    # Reading

    def __len__(self) -> int:
        return len(self._faults)

    def __iter__(self) -> Iterator[Fault]:
        return iter(list(self._faults))  # a copy: a fault may be noted meanwhile

    @overload
    def __getitem__(self, place: int) -> Fault: ...
    @overload
    def __getitem__(self, place: slice) -> list[Fault]: ...
    def __getitem__(self, place: int | slice) -> Fault | list[Fault]:
        return list(self._faults)[place] if isinstance(place, slice) else self._faults[place]

    @property
    def dropped(self) -> int:
        """Faults that were noted and are no longer kept."""
        return self._counts.total() - len(self._faults)

    @property
    def skipped(self) -> int:
        """How many times a sample was left out of a batch: skipped, or not tried as it is known to be bad."""
        now = sum(count for (_, action), count in self._counts.items() if action in LEFT_OUT)
        return self._skipped_before + now

    @property
    def bad(self) -> Set[Any]:
        """Indices known to be bad; those that have no hash by their repr. Ask with ``is_bad``."""
        return self._bad.keys()

    @property
    def distinct_bad(self) -> int:
        """How many different samples are known to be bad."""
        return len(self._bad)

    def counts(self) -> dict[tuple[str, str], int]:
        """How many faults by (kind, action); exact, also for those that are no longer kept."""
        return dict(self._counts)

    def filter(
        self,
        *,
        kind: str | None = None,
        action: str | None = None,
        index: Any = None,
        epoch: int | None = None,
        seat: int | None = None,
        error: type[BaseException] | tuple[type[BaseException], ...] | None = None,
        where: str | Callable[[str], bool] | None = None,
    ) -> list[Fault]:
        """Those that have all of this; ``where`` is a part of the text, or a function that is given it."""
        equal = {"kind": kind, "action": action, "epoch": epoch, "seat": seat}
        equal = {name: value for name, value in equal.items() if value is not None}

        def fits(fault: Fault) -> bool:
            return (
                all(getattr(fault, name) == value for name, value in equal.items())
                and (index is None or (fault.index is not None and hashable(fault.index) == hashable(index)))
                and (error is None or isinstance(fault.error, error))
                and (where is None or (where(fault.where) if callable(where) else where in fault.where))
            )

        return [fault for fault in self if fits(fault)]

    def to_json(self, indent: int | None = None) -> str:
        """A JSON array of the faults that are kept."""
        return json.dumps([fault.to_dict() for fault in self], indent=indent)

    def summary(self) -> str:
        """The whole run in one line."""
        return in_words(self._counts, self.seen) if self._counts else "no faults"

    def __str__(self) -> str:
        if not self._counts:
            return "no faults"
        lines = [self.summary(), *table(self[:_ROWS])]
        if len(self) > _ROWS:
            lines.append(f"... and {len(self) - _ROWS} more")
        if self.dropped:
            lines.append(f"({self.dropped} earlier ones are counted and no longer kept)")
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"<Ledger: {self.summary()}>"

    def __getstate__(self) -> dict[str, Any]:
        packed = {key: (bad.error and pack_error(bad.error), bad.where) for key, bad in self._bad.items()}
        return vars(self) | {"_bad": packed}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._bad = {
            key: Bad(error and unpack_error(error)[0], where, None) for key, (error, where) in state["_bad"].items()
        }

    # Telling

    def _tell(self, fault: Fault) -> None:
        """The first of its class at once; after that, one line in a while that counts the rest.

        Logged, not given as a Python warning: where those are errors, a fault that was survived would end the run.
        """
        key, now = (fault.kind, fault.error_type, fault.action), self._clock()
        if key in self._told and now - self._last_told < QUIET:
            self._untold += 1
            return
        more = f" (and {self._untold} more since)" if self._untold else ""
        self._told.add(key)
        self._untold, self._last_told = 0, now
        _logger.warning("holdfast: %s%s%s", fault, more, _report(fault))

    def _write(self, fault: Fault, file: str) -> None:
        # Opened for each line: faults are rare, so nothing has to be kept open, closed, or left out of a pickle; and
        # one write to a file in append mode stays whole, whoever else writes there and whoever is killed after it.
        line = json.dumps(fault.to_dict()) + "\n"
        try:
            descriptor = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
            try:
                os.write(descriptor, line.encode())
            finally:
                os.close(descriptor)
        except OSError as error:
            if not self._file_failed:
                _logger.warning("faults cannot be written to %s: %s; they are in loader.faults", file, error)
            self._file_failed = True


def hashable(index: Any) -> Any:
    """What stands for an index in a set: numpy's and torch's integers are integers, what has no hash is its repr."""
    try:
        return operator.index(index)
    except (TypeError, ValueError, RuntimeError):
        pass
    try:
        hash(index)
    except TypeError:
        return repr(index)
    return index


def _report(fault: Fault) -> str:
    """Of a stall, all that was found out: while it lasts, nothing else says so."""
    return "".join(f"\n{line}" for line in str(fault.error).splitlines()[1:]) if fault.kind == "stall" else ""
