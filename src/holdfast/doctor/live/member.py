"""One process of a job, as the report tells of it."""

from __future__ import annotations

import enum
import time
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from holdfast._engine.causes import Kind
from holdfast._system import descriptors, pipes
from holdfast._system.frames import Calls
from holdfast._system.kinship import Kin
from holdfast._system.pipes import End
from holdfast._transport.logbook import Entry, Phase

from . import places
from .job import Role
from .places import Position
from .witness import Sight, has_stirred

_STILL = 0.02  # share of the CPU up to which a process that waits all the time gets


class Doing(enum.Enum):
    COMPUTES = "computes"
    IDLE = "idle"  # a worker that has nothing to do
    AWAITS = "awaits"  # what its workers make
    WAITS = "waits"  # for anything else
    STOPPED = "stopped"
    ENDED = "ended"


_TASKS = (Phase.RUNNING, Phase.PREPARING, Phase.RETURNING)
_AT_ONCE = {Kind.GONE: Doing.ENDED, Kind.STOPPED: Doing.STOPPED, Kind.LOOP: Doing.COMPUTES}


@dataclass(frozen=True, slots=True)
class Member:
    """``why`` continues a sentence that begins with the process. Empty and None: not known.

    ``awaits`` is what a trainer waits for from its workers, ``together`` the operation of all ranks that it is in.
    ``has_moved``: whether it got on while it was looked at. ``sample`` is an index of the data set; ``at`` is which
    piece of work it is at, in words, for ``since`` seconds, which only the logbook of a worker of holdfast tells.
    ``stack``: innermost call first; ``own``: those of its calls that are the user's. ``waits_for``: processes that hold
    the other ends of the pipes that it waits for.
    """

    pid: int
    role: Role
    seat: int | None
    doing: Doing
    kind: Kind
    why: str
    awaits: str
    together: str
    cpu: float
    has_moved: bool | None
    batch: int | None
    sample: str | None
    at: str
    since: float | None
    own: tuple[str, ...]
    stack: tuple[str, ...]
    waits_for: tuple[int, ...]
    is_pools: bool
    owed_by: int | None
    seats: int | None
    seen_by: str
    unseen: tuple[str, ...]

    @property
    def label(self) -> str:
        """``worker 3``"""
        is_worker = self.role is Role.TORCH_WORKER or self.is_pools
        return f"{'worker' if is_worker else self.role.value}{'' if self.seat is None else f' {self.seat}'}"

    @property
    def name(self) -> str:
        """``worker 3 (pid 41233)``"""
        return f"{self.label} (pid {self.pid})"

    @property
    def place(self) -> str:
        """Its innermost line that is the user's: ``fetch at data.py:31``."""
        return self.own[0] if self.own else ""

    def to_dict(self) -> dict[str, Any]:
        told = asdict(self) | {"role": self.role.value, "doing": self.doing.value, "kind": self.kind.value}
        return {name: value for name, value in told.items() if name not in ("owed_by", "seats")}


def ends_of(pids: Collection[int]) -> dict[int, dict[int, End]]:
    """The pipe ends of each process, by descriptor."""
    return {pid: pipes.ends(pid) for pid in pids}


def member(kin: Kin, role: Role, sight: Sight, ends: Mapping[int, Mapping[int, End]], trainer: int) -> Member:
    """``ends``: those of all who belong to the trainer, and its own."""
    waits_for = _other_ends(sight, ends)
    is_trainer = kin.pid == trainer
    awaits, thread = _awaited(sight, waits_for) if is_trainer else ("", ())
    calls = thread or places.since_work_began(sight.threads.main)
    where, entry = places.position(sight.threads), sight.entry
    number, seats = places.seat(sight.threads)
    is_at_work = entry is not None and (entry.loading or entry.phase in _TASKS)
    return Member(
        pid=kin.pid,
        role=role,
        seat=_own_seat(kin) if number is None else number,
        doing=_trainer_does(sight, awaits) if is_trainer else _hand_does(sight, waits_for, trainer),
        kind=sight.cause.kind,
        why=_why(sight, places.together(calls)),
        awaits=awaits,
        together=places.together(calls),
        cpu=round(sight.cpu, 3),
        has_moved=_has_moved(sight),
        batch=entry.batch if entry and is_at_work else where.batch,
        sample=where.sample,
        at=_words(entry, where),
        since=round(time.monotonic() - entry.since, 1) if entry else None,
        own=tuple(places.place(frame, sight.folder) for frame in places.of_user(calls)),
        stack=tuple(places.place(frame, sight.folder) for frame in calls),
        waits_for=tuple(pid for pid in waits_for if pid != kin.pid),
        is_pools=places.is_pools(sight.threads.main) or (entry is not None and entry.phase in _TASKS),
        owed_by=places.owed_by(sight.threads) if is_trainer else None,
        seats=seats,
        seen_by=sight.threads.seen_by,
        unseen=(*sight.first.denied, *([f"Python stack: {sight.threads.unseen}"] if sight.threads.unseen else [])),
    )


def _words(entry: Entry | None, where: Position) -> str:
    if entry:  # which does not have the sample's index in the data set
        return entry.words({entry.sample: where.sample or f"at position {entry.sample}"})
    known = {"sample": where.sample, "batch": where.batch}
    return " of ".join(f"{name} {value}" for name, value in known.items() if value is not None)


def _own_seat(kin: Kin) -> int | None:
    seat = kin.name.removeprefix("holdfast ")
    return int(seat) if kin.name.startswith("holdfast ") and seat.isdigit() else None


def _why(sight: Sight, operation: str) -> str:
    if operation and sight.cause.kind is not Kind.STOPPED:
        return f"waits for the other ranks in {operation}"
    return sight.cause.why


def _awaited(sight: Sight, waits_for: Collection[int]) -> tuple[str, Calls]:
    if sight.threads.calls or not waits_for:
        return places.awaited(sight.threads)
    return "what its workers make", ()


def _trainer_does(sight: Sight, awaits: str) -> Doing:
    without_stack = _AT_ONCE.get(sight.cause.kind)
    return without_stack or (Doing.AWAITS if awaits else Doing.WAITS)


def _hand_does(sight: Sight, waits_for: Collection[int], trainer: int) -> Doing:
    without_stack = _AT_ONCE.get(sight.cause.kind)
    if without_stack in (None, Doing.COMPUTES) and _is_idle(sight, waits_for, trainer):
        return Doing.IDLE
    return without_stack or Doing.WAITS


def _is_idle(sight: Sight, waits_for: Collection[int], trainer: int) -> bool:
    if sight.entry is not None:
        return sight.entry.phase is Phase.IDLE
    if sight.threads.calls:
        return places.waits_for_work(sight.threads.main)
    return trainer in waits_for  # torch's queues: the trainer holds the end that work comes from


def _has_moved(sight: Sight) -> bool | None:
    """None: it runs, and nothing tells whether it gets anywhere."""
    if sight.entry is not None:
        return sight.entry != sight.later_entry
    if not has_stirred(sight.first, sight.last):
        return False
    before, after = places.position(sight.threads), places.position(sight.later_threads)
    if before.batch is not None and sight.later_threads.calls:
        return before != after
    if sight.cause.kind is Kind.LOOP:
        return None
    return sight.cpu > _STILL or sight.last.sleeps - sight.first.sleeps > 1


def _other_ends(sight: Sight, ends: Mapping[int, Mapping[int, End]]) -> tuple[int, ...]:
    """Who holds the other end of a pipe that its main thread reads, or polls."""
    pid, call = sight.last.pid, sight.last.call
    own = ends.get(pid, {})
    if call is None or not own:
        return ()
    wanted = {own[fd].other for fd in descriptors.waited_for(pid, call) if fd in own and not own[fd].writes}
    return tuple(other for other, held in ends.items() if wanted & set(held.values()))
