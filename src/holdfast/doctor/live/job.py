"""Which processes belong to a job, and what each of them is: from any one of them, up and down the family."""

from __future__ import annotations

import enum
import os
from collections.abc import Mapping
from dataclasses import dataclass

from holdfast._system import kinship
from holdfast._system.kinship import Kin
from holdfast.targets.mistake import Mistake

MOST = 512  # processes that are looked at
_LAUNCHERS = ("torchrun", "accelerate", "deepspeed", "torch.distributed.run", "torch.distributed.launch")
_OUR_WORKERS = ("holdfast._system.spawn", "holdfast._worker.standby")


class Role(enum.Enum):
    LAUNCHER = "launcher"
    TRAINER = "trainer"
    RANK = "rank"  # of holdfast.spawn: a trainer that another process has started
    WORKER = "worker"  # of holdfast
    TORCH_WORKER = "torch worker"
    PROCESS = "process"  # of multiprocessing, a fork, or an interpreter that somebody started
    ZYGOTE = "zygote"
    FORK_SERVER = "fork server"
    TRACKER = "resource tracker"
    PROGRAM = "program"  # not Python


_LOADS = (Role.WORKER, Role.TORCH_WORKER)
_HANDS = (*_LOADS, Role.PROCESS, Role.TRAINER)  # those that do work for a trainer, if one has started them
_ON_THEIR_OWN = (Role.TRAINER, Role.LAUNCHER, Role.PROGRAM)
_BETWEEN = (Role.ZYGOTE, Role.FORK_SERVER)  # workers are their children, but not theirs


@dataclass(frozen=True, slots=True)
class Part:
    """A trainer and those that work for it. ``rank`` is empty where nothing tells it."""

    trainer: Kin
    hands: tuple[tuple[Kin, Role], ...]
    servants: tuple[tuple[Kin, Role], ...]  # those that only start others, or clear away behind them
    rank: str

    @property
    def pids(self) -> list[int]:
        return [self.trainer.pid, *(kin.pid for kin, _ in self.hands)]


@dataclass(frozen=True, slots=True)
class Job:
    launcher: Kin | None
    parts: tuple[Part, ...]
    hidden: tuple[Kin, ...] = ()  # trainers that belong to it and that may not be looked into


def find(pid: int) -> Job:
    """The job that a process belongs to; `Mistake` when there is none, or nothing of it may be seen."""
    if not kinship.is_known():
        raise Mistake("a running job is looked at through /proc, which this system does not have")
    table = kinship.everyone()
    _check(table, pid)
    family = Family(table)
    job = family.job(family.top(pid))
    if not job.parts:
        raise _no_job(table[pid], family.role(table[pid]))
    seen = tuple(part for part in job.parts if kinship.may_look_into(part.trainer.pid))
    if not seen:
        raise _not_permitted(job.parts[0].trainer)
    return Job(job.launcher, seen, tuple(part.trainer for part in job.parts if part not in seen))


def _check(table: Mapping[int, Kin], pid: int) -> None:
    if pid not in table:
        if kinship.is_hidden(pid):
            raise Mistake(f"process {pid} is another user's, and hidden", f"sudo holdfast doctor --pid {pid}")
        raise Mistake(f"there is no process {pid}", "pgrep -af python lists those that run")
    parent = table.get(table[pid].parent)
    if table[pid].state == "Z" and not (parent and kinship.runs_python(parent)):
        told = f": its parent is {parent.pid} ({parent.name})" if parent else ""
        raise Mistake(f"process {pid} ({table[pid].name}) has ended, and only its entry is left{told}")


def _no_job(kin: Kin, role: Role) -> Mistake:
    if role is not Role.PROGRAM:
        return Mistake(f"process {kin.pid} ({kin.name}) is left over: who started it has ended", f"kill {kin.pid}")
    return Mistake(f"process {kin.pid} ({kin.name}) is not a Python program, and has started none")


def _not_permitted(kin: Kin) -> Mistake:
    owner, state = kinship.owner(kin.pid), kin.state
    return Mistake(
        f"process {kin.pid} ({kin.name}) belongs to {owner}: nothing but its state ({state}) may be seen",
        f"sudo holdfast doctor --pid {kin.pid}",
    )


class Family:
    """The processes of this machine, by what they are to each other."""

    def __init__(self, table: Mapping[int, Kin]) -> None:
        self._table, self._roles = table, dict[int, Role]()

    def role(self, kin: Kin) -> Role:
        if kin.pid not in self._roles:
            self._roles[kin.pid] = self._work_out(kin)
        return self._roles[kin.pid]

    def _work_out(self, kin: Kin) -> Role:
        line, parent = " ".join(kin.command), self._table.get(kin.parent)
        is_fork = parent is not None and kin.command == parent.command and bool(kin.command)
        if kin.name == "pt_data_worker":
            return Role.TORCH_WORKER
        if kin.name.startswith("rank "):
            return Role.RANK
        if kin.name.startswith("holdfast ") or any(module in line for module in _OUR_WORKERS):
            return Role.WORKER
        if "holdfast._system.zygote_server" in line:
            return Role.PROCESS if is_fork else Role.ZYGOTE
        if "multiprocessing.forkserver" in line:
            return Role.PROCESS if is_fork else Role.FORK_SERVER
        if "multiprocessing.resource_tracker" in line:
            return Role.TRACKER
        if not kinship.runs_python(kin):
            return Role.PROGRAM
        if is_fork or "--multiprocessing-fork" in kin.command or not kin.command:
            return Role.PROCESS
        is_launcher = any(os.path.basename(word) in _LAUNCHERS for word in kin.command[:4])
        return Role.LAUNCHER if is_launcher else Role.TRAINER

    def top(self, pid: int) -> int:
        """Up to the process that started it all: past workers and servants to a trainer, and to what launched it."""
        kin = self._table[pid]
        while above := self._table.get(kin.parent):
            is_led = self.role(kin) not in _ON_THEIR_OWN and self.role(above) is not Role.PROGRAM
            if not is_led and not (self.role(kin) is Role.TRAINER and self.role(above) is Role.LAUNCHER):
                break
            kin = above
        return kin.pid

    def job(self, top: int) -> Job:
        members = [self._table[top], *(self._table[pid] for pid in kinship.descendants(self._table, top))][:MOST]
        masters = {self._master(kin) for kin in members if self.role(kin) in _LOADS} - self._programs(members)
        trainers = [kin for kin in members if kin.pid in masters or self._leads(kin, top)]
        head = trainers[0] if trainers and trainers[0].pid == top and self._only_launches(trainers, masters) else None
        if head:
            trainers = trainers[1:]
        launcher = head or (members[0] if self.role(members[0]) is Role.LAUNCHER else None)
        return Job(launcher, tuple(self._part(kin, members, trainers) for kin in trainers))

    def _programs(self, members: list[Kin]) -> set[int]:
        """Not Python: workers that one of these has adopted have lost their trainer."""
        return {kin.pid for kin in members if self.role(kin) is Role.PROGRAM}

    def _leads(self, kin: Kin, top: int) -> bool:
        """A Python program on its own: it is the top, or no other one has started it, and it is not who looks."""
        if kin.pid == os.getpid():
            return kin.pid == top
        if self.role(kin) is not Role.TRAINER:
            return self.role(kin) is Role.RANK
        above = self._table.get(kin.parent)
        return kin.pid == top or above is None or self.role(above) in (Role.LAUNCHER, Role.PROGRAM)

    def _only_launches(self, trainers: list[Kin], masters: set[int]) -> bool:
        """The first has no workers of its own, but others below it have: it is one of ``mp.spawn``, or ours."""
        return len(trainers) > 1 and trainers[0].pid not in masters

    def _master(self, kin: Kin) -> int:
        """For whom it works: its parent, or who started the zygote or the fork server that is its parent."""
        parent = self._table.get(kin.parent)
        return parent.parent if parent and self.role(parent) in _BETWEEN else kin.parent

    def _part(self, trainer: Kin, members: list[Kin], trainers: list[Kin]) -> Part:
        leaders = {kin.pid for kin in trainers}
        own = [kin for kin in members if kin.pid not in leaders and self._works_for(kin, trainer.pid, leaders)]
        with_roles = [(kin, self.role(kin)) for kin in own]
        hands = tuple((kin, role if role in _LOADS else Role.PROCESS) for kin, role in with_roles if role in _HANDS)
        servants = tuple((kin, role) for kin, role in with_roles if role not in _HANDS)
        return Part(trainer, hands, servants, self._rank(trainer))

    def _works_for(self, kin: Kin, trainer: int, leaders: set[int]) -> bool:
        above = self._table.get(kin.parent)
        while above and above.pid not in leaders:
            above = self._table.get(above.parent)
        return above is not None and above.pid == trainer

    def _rank(self, trainer: Kin) -> str:
        if trainer.name.startswith("rank "):
            return trainer.name.removeprefix("rank ")
        return kinship.variable(trainer.pid, "RANK")
