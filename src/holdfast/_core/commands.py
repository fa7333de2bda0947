"""What the machine can decide: every output, as a plain value for the engine to carry out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from .events import Worker

Cause = Literal["restarts", "crash loop"]


@dataclass(slots=True)
class Draw:
    """Take up to ``count`` batches from the sampler: answered by ``Drawn`` (one at least), ``SamplerEnded`` or both."""

    count: int


@dataclass(slots=True)
class Start:
    """Start a process.

    ``skip`` (bound mode) is how many leading batches of its stream the seat has done in this epoch, those of an earlier
    run included: the new process passes over them. When a later ``Send`` leaves a number out, that batch was condemned
    and is passed over as well.
    """

    who: Worker
    skip: int


@dataclass(slots=True)
class Send:
    """Give this worker a batch to load."""

    who: Worker
    batch: int


@dataclass(slots=True)
class Deliver:
    """Hand the result to the waiting user."""

    batch: int


@dataclass(slots=True)
class Discard:
    """Give back a result that nobody will read: in answer to ``BatchReady`` the one it brought, else the one kept."""

    batch: int


@dataclass(slots=True)
class Condemn:
    """Poison: this batch killed its worker ``attempts`` times. What to do about it is not for the machine to say.

    Answered, before anything else happens, by ``Pardoned`` or ``Sentenced``. ``sample`` is the position in
    the batch; None when it is not known, or when several samples of the batch did it together.
    """

    batch: int
    sample: int | None
    attempts: int


@dataclass(slots=True)
class Retire:
    """Let this worker end: it has done its part and nothing is on its hands. Its end is no death."""

    who: Worker


@dataclass(slots=True)
class Fail:
    """The run cannot go on. The waiting user gets an error, or else the next one to want; ``restarts`` were made."""

    cause: Cause
    restarts: int


@dataclass(slots=True)
class End:
    """Raise ``StopIteration`` to the waiting user."""


Command = Deliver | Draw | Send | Start | Discard | Condemn | Retire | Fail | End
