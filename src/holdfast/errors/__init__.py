"""Everything holdfast raises, as a tree.

* HoldfastError (a RuntimeError, as torch's loader raises)
  - CannotShip          HF101  the data set or a function could not be handed to the workers
  - WorkerDied          HF201  a sample (or batch) ended its worker, each time it was tried
  - RestartsSpent       HF202  workers died more often than is allowed
  - LoaderTimeout       HF203  no batch within ``timeout``
  - RemoteError         HF204  an exception of a worker that cannot exist in the trainer
  - WorkerStalled       HF205  no progress within ``stall_timeout``
  - TooManyFaults       HF206  more samples failed than the policy allows
  - AllSamplesBad       HF207  a batch of which nothing is left
  - StreamLost          HF208  an iterable data set that cannot be passed beyond an item
  - Unaccounted         HF209  an epoch that does not add up
  - SharedMemoryFull    HF301  no room to pass a batch on
  - CannotSend          HF302  a batch that cannot be pickled
  - NoneSample          HF303  a sample that is None (a TypeError too, as torch's)
  - UnequalSamples      HF304  samples that cannot be stacked
  - StopInItem          HF305  StopIteration out of a map-style data set
  - EmptyDataset        HF401  nothing to load (a ValueError too, as torch's)
  - NotThere            HF402  storage that did not come (a FileNotFoundError too)
  - UnsavableState      HF601  a data set's state that is not data (a TypeError too)
  - StateMismatch       HF602  a state of another run
  - LoadedTooLate       HF603  a state that was loaded when the iterator was there already
  - StreamDiffers       HF604  an iterable data set that did not give the same again
  - StateTooNew         HF605  a state of a later version
  - SharedGone          HF701  a shared object whose memory is not there any more
  - CannotShare         HF702  nothing in it could lie in shared memory (a TypeError too)
  - ReadOnlyShared      HF703  a write to a tensor that was shared for reading only
  - RankRaised          HF801  a rank's function raised (torch's ProcessRaisedException too)
  - RankExited          HF802  a rank ended without returning (torch's ProcessExitedException too)
  - CannotShipToRanks   HF803  a function or its arguments could not be handed to ranks (a CannotShip too)
  - TaskDied            HF901  a task's worker died (a BrokenProcessPool too)
  - TaskTimeout         HF902  a call took longer than task_timeout (a TimeoutError too)
  - PoolBroken          HF903  a pool that cannot work (a BrokenProcessPool too)
  - TaskExited          HF904  a task called sys.exit
* HoldfastWarning (a UserWarning)
  - NoPrompt            HF210  breakpoint(), or on_error="debug", where nobody can type
  - UnshardedStream     HF403  every worker yields the same items
  - RepeatedRandom      HF404  a random generator object that repeats itself in every worker
  - SharedHandle        HF405  an open handle in the data set
  - IteratorPerStep     HF406  a new iterator for every step
  - NotAdopted          HF501  a loader that ``holdfast run`` leaves to torch
  - ResultLost          HF804  what a rank returned cannot be passed on

A raise site passes facts; the class writes the sentence. Facts are attributes, so a program can read them too. Codes
never change their meaning; ``holdfast explain HF201`` prints the page of one.
"""

from __future__ import annotations

from .adoption import NotAdopted
from .base import HoldfastError, HoldfastWarning
from .data import (
    EmptyDataset,
    IteratorPerStep,
    NotThere,
    RepeatedRandom,
    SharedHandle,
    UnshardedStream,
)
from .memory import CannotSend, SharedMemoryFull
from .policy import AllSamplesBad, StreamLost, TooManyFaults, Unaccounted
from .ranks import CannotShipToRanks, RankExited, RankRaised, ResultLost
from .samples import NoneSample, StopInItem, UnequalSamples
from .sharing import CannotShare, ReadOnlyShared, SharedGone
from .starting import CannotShip
from .state import LoadedTooLate, StateMismatch, StateTooNew, StreamDiffers, UnsavableState
from .tasks import PoolBroken, TaskDied, TaskExited, TaskTimeout
from .verdict import Verdict
from .workers import LoaderTimeout, NoPrompt, RemoteError, RestartsSpent, WorkerDied, WorkerStalled

__all__ = [
    "AllSamplesBad",
    "CannotSend",
    "CannotShare",
    "CannotShip",
    "CannotShipToRanks",
    "EmptyDataset",
    "HoldfastError",
    "HoldfastWarning",
    "IteratorPerStep",
    "LoadedTooLate",
    "LoaderTimeout",
    "NoPrompt",
    "NoneSample",
    "NotAdopted",
    "NotThere",
    "PoolBroken",
    "RankExited",
    "RankRaised",
    "ReadOnlyShared",
    "RemoteError",
    "RepeatedRandom",
    "RestartsSpent",
    "ResultLost",
    "SharedGone",
    "SharedHandle",
    "SharedMemoryFull",
    "StateMismatch",
    "StateTooNew",
    "StopInItem",
    "StreamDiffers",
    "StreamLost",
    "TaskDied",
    "TaskExited",
    "TaskTimeout",
    "TooManyFaults",
    "Unaccounted",
    "UnequalSamples",
    "UnsavableState",
    "UnshardedStream",
    "Verdict",
    "WorkerDied",
    "WorkerStalled",
]
