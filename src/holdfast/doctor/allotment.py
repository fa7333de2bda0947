"""What the workers of one process may use, of the environment that it runs in."""

from __future__ import annotations

from dataclasses import dataclass

from .environment import Environment
from .figures import counted, number


@dataclass(frozen=True)
class Allotment:
    """``cpus`` is at least one; ``told`` says where that comes from. ``memory``: bytes that are left."""

    cpus: int
    told: str
    memory: int


def allotment(environment: Environment) -> Allotment:
    cpus, ranks = environment.cpus, environment.local_ranks
    told = [counted(cpus.affinity, "CPU")]
    if cpus.quota is not None and cpus.quota < cpus.affinity:
        told.append(f"of which the container may use {number(cpus.quota)}")
    if ranks > 1:
        told.append(f"shared by {ranks} ranks")
    return Allotment(max(1, int(environment.cpu_budget)), ", ".join(told), environment.memory.available)
