"""A job that runs, or hangs, seen from outside: which process waits for what, and who owes whom.

The job need not be ours, nor prepared. Read only: no process is stopped, and none is signalled but a worker of holdfast
that expects it.
"""

from __future__ import annotations

import signal
import time

from holdfast._engine.causes import Kind
from holdfast._system import pipes, proc
from holdfast._system.frames import Threads

from . import places
from .conclusion import Standing, Traces, conclude
from .job import Job, Part, Role, find
from .member import Doing, Member, ends_of, member
from .report import LiveReport, Section
from .straggler import headline
from .witness import Sight, watch

__all__ = ["Doing", "LiveReport", "Member", "Role", "Section", "Standing", "look_at"]


def look_at(pid: int) -> LiveReport:
    """The job that a process belongs to. About 1 s, and at most 2.5; `Mistake` when there is nothing to look at."""
    began = time.monotonic()
    job = find(pid)
    workers = [kin.pid for part in job.parts for kin, _ in part.hands]
    sights = watch((pid for part in job.parts for pid in part.pids), workers, _is_in_data)
    sections = tuple(_section(part, sights) for part in job.parts)
    launcher, took = job.launcher.pid if job.launcher else None, round(time.monotonic() - began, 2)
    return LiveReport(pid, headline(sections), launcher, sections, _unseen(job, sections), took)


def _is_in_data(threads: Threads) -> bool:
    return places.position(threads).batch is not None


def _section(part: Part, sights: dict[int, Sight]) -> Section:
    ends = ends_of(part.pids)
    own = part.trainer.pid
    trainer = member(part.trainer, Role.TRAINER, sights[own], ends, own)
    hands = tuple(member(kin, role, sights[kin.pid], ends, own) for kin, role in part.hands)
    conclusion = conclude(trainer, hands, _traces(part, trainer))
    servants = tuple((kin.pid, role) for kin, role in part.servants)
    return Section(part.rank, conclusion, trainer, hands, servants)


def _traces(part: Part, trainer: Member) -> Traces:
    """Asked for only where it matters: it takes a look at all descriptors of the machine."""
    if trainer.doing is not Doing.AWAITS or trainer.has_moved:
        return Traces()
    deaf = proc.ignores(trainer.pid, signal.SIGCHLD)
    return Traces(pipes.dead_ends(trainer.pid, part.pids), deaf)


def _unseen(job: Job, sections: tuple[Section, ...]) -> tuple[str, ...]:
    """Each reason once, however many processes have it."""
    found: dict[str, list[int]] = {}
    for one in (one for section in sections for one in section.members):
        if one.kind is not Kind.GONE:
            for reason in one.unseen:
                found.setdefault(reason.replace(str(one.pid), "PID"), []).append(one.pid)
    told = [f"{reason} (pid {', '.join(map(str, pids))})" for reason, pids in found.items()]
    return (*told, *(f"another user's trainer: pid {kin.pid}" for kin in job.hidden))
