"""What to do about a sample that fails: raise, try again, leave out, replace, wait. Policies compose with ``|``.

    on_error = Retry(3, on=OSError) | Skip(limit=0.01)

The first policy that has an answer is followed; when none has, the error is raised. They are asked in the trainer about
one sample at a time, for exceptions, deaths and stalls alike: the ``error`` of the fault is then `WorkerDied` or
`WorkerStalled`, so ``on=`` tells them apart. Programming errors never reach a policy (`is_programming_error`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bdb import BdbQuit
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from types import ModuleType
from typing import TYPE_CHECKING, Any

from .errors import SharedMemoryFull, TooManyFaults

if TYPE_CHECKING:
    from .fault import Fault
    from .ledger import Ledger

PROGRAMMING_ERRORS: tuple[type[BaseException], ...] = (
    NameError,
    ImportError,
    SyntaxError,
    NotImplementedError,
    BdbQuit,  # the user's own word, at a debugger's prompt
)
"""Never bad data, whatever the policy: raised at once. ``never=`` of a policy adds to them."""
LONGEST_PAUSE = 30.0
Kinds = type[BaseException] | tuple[type[BaseException], ...]


def is_programming_error(error: BaseException, dataset: Any = None) -> bool:
    """Whether the program is wrong and not the sample: every sample would fail, and every one be skipped.

    Those of ``PROGRAMMING_ERRORS``; an attribute that a module, or the data set itself, does not have; and shared
    memory that is full, which is no sample's fault either.
    """
    if isinstance(error, AttributeError):
        owner = getattr(error, "obj", None)
        return isinstance(owner, ModuleType) or any(owner is each for each in _layers(dataset))
    return isinstance(error, (*PROGRAMMING_ERRORS, SharedMemoryFull))


def _layers(dataset: Any) -> Iterator[Any]:
    """The data set, and those that it wraps, as torch's ``Subset`` does."""
    for _ in range(8):
        if dataset is None:
            return
        yield dataset
        dataset = getattr(dataset, "__dict__", {}).get("dataset")


# -- answers -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Stand:
    """The error is raised."""


@dataclass(frozen=True, slots=True)
class Again:
    """The sample is tried again, ``after`` seconds."""

    after: float = 0.0


@dataclass(frozen=True, slots=True)
class Leave:
    """The batch is made without it; ``refill``: with another sample of the data set in its place."""

    refill: bool = True


@dataclass(frozen=True, slots=True)
class Put:
    """This value takes its place."""

    value: Any


@dataclass(frozen=True, slots=True)
class Repeat:
    """Another sample of the same batch takes its place, a second time."""


@dataclass(frozen=True, slots=True)
class Hold:
    """A stall: the worker is left alone."""


Answer = Stand | Again | Leave | Put | Repeat | Hold


# -- policies ----------------------------------------------------------------------------------


class Policy(ABC):
    """Answers for faults whose error is one of ``on`` (None: any) and none of ``never``."""

    on: Kinds | None = None
    never: Kinds = ()

    @abstractmethod
    def _answer(self, fault: Fault, ledger: Ledger) -> Answer | None:
        """What to do; None when this policy has nothing to say."""

    def answer(self, fault: Fault, ledger: Ledger) -> Answer | None:
        return self._answer(fault, ledger) if self.concerns(fault.error) else None

    def concerns(self, error: BaseException) -> bool:
        return not isinstance(error, self.never) and (self.on is None or isinstance(error, self.on))

    def __or__(self, other: Policy | str | Callable[[Fault], Any]) -> Policy:
        return Chain((*self.parts(), *policy(other).parts()))

    def parts(self) -> tuple[Policy, ...]:
        return (self,)

    @property
    def tolerant(self) -> bool:
        """Whether it may ever do anything about a sample that raises, but raise."""
        return True

    def usual(self) -> Leave:
        """What is done about a sample of which nothing is known but that it is bad."""
        return next((Leave(part.refill) for part in self.parts() if isinstance(part, Skip)), Leave())


@dataclass(frozen=True)
class Chain(Policy):
    """The first of them that has an answer."""

    policies: tuple[Policy, ...]

    def _answer(self, fault: Fault, ledger: Ledger) -> Answer | None:
        answers = (each.answer(fault, ledger) for each in self.policies)
        return next((answer for answer in answers if answer is not None), None)

    def parts(self) -> tuple[Policy, ...]:
        return self.policies

    @property
    def tolerant(self) -> bool:
        return any(each.tolerant for each in self.policies)


@dataclass(frozen=True)
class Raise(Policy):
    """The error reaches the loop; the default. ``Raise(on=PermissionError) | Skip()`` skips all but those."""

    on: Kinds | None = None
    never: Kinds = ()

    def _answer(self, fault: Fault, ledger: Ledger) -> Answer | None:
        return Stand()

    @property
    def tolerant(self) -> bool:
        return False


@dataclass(frozen=True)
class Retry(Policy):
    """Tries a sample up to ``times`` times more, while other batches go on; then the next policy is asked.

    ``backoff``: seconds before the first of them, doubled each time up to 30; or a function of the attempt, from 1.
    A sample that ended its worker is tried in a new one, and there always twice. Of a stream, its iterator is asked
    for the same item again, which helps when it stays where it is as long as it raises.
    """

    times: int = 3
    on: Kinds | None = None
    backoff: float | Callable[[int], float] = 0.1
    never: Kinds = ()

    def __post_init__(self) -> None:
        _check("times", self.times, self.times >= 0, "not negative")
        if not callable(self.backoff):
            _check("backoff", self.backoff, self.backoff >= 0, "not negative, or a function of the attempt")

    def _answer(self, fault: Fault, ledger: Ledger) -> Answer | None:
        attempt = fault.attempts
        if attempt > self.times:
            return None
        pause = self.backoff(attempt) if callable(self.backoff) else self.backoff * 2.0 ** min(attempt - 1, 30)
        return Again(min(LONGEST_PAUSE, max(0.0, pause)))


@dataclass(frozen=True)
class Skip(Policy):
    """Leaves a sample out; the ledger says why, and later epochs do not try it again.

    Args:
        limit: how many may be skipped before the run is stopped with the list of them: a number of different samples,
            or (a float below 1) a share of those seen.
        refill: fill the batch up with another sample, so that every batch is full and there are as many as ever.
        probation: samples for which a share is not yet taken seriously: an early fault does not end the run.
        on, never: errors that it acts on, or not.
    """

    limit: int | float | None = None
    refill: bool = True
    probation: int = 100
    on: Kinds | None = None
    never: Kinds = ()

    def __post_init__(self) -> None:
        _check("limit", self.limit, self.limit is None or self.limit >= 0, "None, a number of samples, or a share")
        if isinstance(self.limit, float):
            _check("limit", self.limit, self.limit < 1, "a share below 1.0, or a whole number of samples")

    def _answer(self, fault: Fault, ledger: Ledger) -> Answer | None:
        self._check_limit(fault, ledger)
        return Leave(self.refill)

    def _check_limit(self, fault: Fault, ledger: Ledger) -> None:
        if self.limit is None:
            return
        failed, allowed = ledger.skipped + 1, float(self.limit)
        if isinstance(self.limit, float):
            allowed = self.limit and max(1.0, self.limit * max(ledger.seen, self.probation))
        elif fault.index is not None:  # else an item of a stream, which is never met again
            failed = ledger.distinct_bad + (not ledger.is_bad(fault.index))
        if failed > allowed:
            listed = [each for each in ledger if each.action in ("skipped", "known bad", "replaced")]
            last = replace(fault, action="one too many")  # a copy: the error of the fault itself will be this one
            raise TooManyFaults(failed, max(ledger.seen, failed), self.limit, [*listed, last])


class _Nothing:
    """In place of a value that was not given; a class, as that stays the same when it is pickled."""


@dataclass(frozen=True)
class Replace(Policy):
    """Puts ``value`` in the place of a sample that fails; a function is given the fault and returns the value.

    Without a value: another sample of the same batch, a second time.
    """

    value: Any = _Nothing
    on: Kinds | None = None
    never: Kinds = ()

    def _answer(self, fault: Fault, ledger: Ledger) -> Answer | None:
        if self.value is _Nothing:
            return Repeat()
        return Put(self.value(fault) if callable(self.value) else self.value)


@dataclass(frozen=True)
class Wait(Policy):
    """A stalled worker is reported and left alone."""

    on: Kinds | None = None
    never: Kinds = ()

    def _answer(self, fault: Fault, ledger: Ledger) -> Answer | None:
        return Hold() if fault.kind == "stall" else None

    @property
    def tolerant(self) -> bool:
        return False


@dataclass(frozen=True)
class Debug(Policy):
    """Gives a debugger's prompt where a sample raised, in the worker that raised it; then the error is raised.

    ``Retry(3) | Debug()`` does so when it fails for the last time. Programming errors are shown, too.
    """

    on: Kinds | None = None
    never: Kinds = ()

    def _answer(self, fault: Fault, ledger: Ledger) -> Answer | None:
        return Stand() if fault.kind in ("exception", "batch") else None

    @property
    def tolerant(self) -> bool:
        return False


@dataclass(frozen=True)
class Ask(Policy):
    """A function of the user's: is given the fault and answers with a policy, the name of one, or None to raise."""

    function: Callable[[Fault], Any]

    def _answer(self, fault: Fault, ledger: Ledger) -> Answer | None:
        said = self.function(fault)
        if said is None:
            return Stand()
        return said if isinstance(said, Answer) else policy(said).answer(fault, ledger)


NAMED: dict[str, Callable[[], Policy]] = {
    "raise": Raise,
    "skip": Skip,
    "replace": Replace,
    "retry": Retry,
    "wait": Wait,
    "debug": Debug,
}


def policy(on_error: Policy | str | Callable[[Fault], Any]) -> Policy:
    """What ``on_error=`` stands for."""
    if isinstance(on_error, Policy):
        return on_error
    if isinstance(on_error, str) and on_error in NAMED:
        return NAMED[on_error]()
    if callable(on_error) and not isinstance(on_error, type):
        return Ask(on_error)
    valid = ", ".join(map(repr, NAMED))
    raise ValueError(
        f"on_error should be one of {valid}, a policy such as Skip(limit=10), or a function of the fault, "
        f"but got on_error={on_error!r}"
    )


def _check(name: str, value: object, valid: bool, expected: str) -> None:
    if not valid:
        raise ValueError(f"{name} should be {expected}, but got {name}={value!r}")


__all__: Sequence[str] = (
    *("Debug", "Policy", "Raise", "Replace", "Retry", "Skip", "Wait"),
    *("is_programming_error", "policy"),
)
