"""Whether there is enough: shared memory, descriptors, maps, processes, CPUs, memory. Values in, symptoms out."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from holdfast.audit.finding import Severity
from holdfast.errors.base import size

from .figures import number
from .needs import Needs
from .symptom import Symptom

if TYPE_CHECKING:
    from .environment import Environment

ERROR, WARNING, NOTE = Severity

_MIB = 1 << 20
_SMALL_SHARED_MEMORY = 64 * _MIB  # what a container has where nobody asked for more
_DESCRIPTORS_OF_A_WORKER = 8  # pipes, semaphores, its sentinel
_INTERPRETER = 150 * _MIB  # of its own, when it has imported torch
_FORK = 15 * _MIB  # what a fork comes to have of its own at once
_NEW_INTERPRETERS = ("spawn", "forkserver", "standby")
_ADDRESS_SPACE_OF_A_CREW = 1 << 30
_OFTEN_THROTTLED = 0.05  # of the periods


def symptoms_of_capacity(environment: Environment, needs: Needs) -> Iterator[Symptom]:
    checks = (_shared_memory, _descriptors, _maps, _processes, _cpus, _throttling, _threads, _memory)
    for check in (*checks, _address_space, _oom_kills):
        yield from check(environment, needs)


# HD12


def _shared_memory(environment: Environment, needs: Needs) -> Iterator[Symptom]:
    room = environment.shared_memory
    if room is None or not needs.stock or needs.workers == 0:
        return
    if needs.workers is not None and needs.batch_bytes is not None:
        need = needs.batch_bytes * needs.batches_in_flight
        if need > room.free:
            what = f"{size(room.free)} are free in /dev/shm, and the loader needs {size(need)}"
            evidence = f"{needs.batches_in_flight} batches of {size(needs.batch_bytes)} are in flight"
            yield _too_small(ERROR, what, evidence, need)
    elif room.size <= _SMALL_SHARED_MEMORY:
        what = f"/dev/shm has {size(room.size)}: a few batches of images fill it, and workers die of a bus error"
        yield _too_small(NOTE, what, f"{size(room.free)} of {size(room.size)} are free", 0)


def _too_small(severity: Severity, what: str, evidence: str, need: int) -> Symptom:
    gigabytes = max(1, math.ceil(need / (1 << 30)))
    fix = f"docker run --shm-size={gigabytes}g …  # or holdfast.DataLoader, which does not use /dev/shm"
    return Symptom("HD12", severity, what, "/dev/shm", evidence, fix)


# HD13


def _descriptors(environment: Environment, needs: Needs) -> Iterator[Symptom]:
    has, workers = environment.allowances, needs.workers or 0
    if has.descriptors is None:
        return
    by_tensor = needs.stock and (environment.torch is None or environment.torch.sharing == "file_descriptor")
    need = has.descriptors_open + workers * _DESCRIPTORS_OF_A_WORKER
    if by_tensor:
        need += needs.batch_tensors * needs.batches_in_flight
    if workers and need > has.descriptors:
        evidence = f"{has.descriptors_open} are open, and {workers} workers need {need - has.descriptors_open} more"
        wanted = 1 << max(12, math.ceil(math.log2(need * 2)))
        within = has.descriptors_at_most is None or wanted <= has.descriptors_at_most
        fix = f"ulimit -n {wanted}" if within else f"ulimit -Hn {wanted} && ulimit -n {wanted}  # as root"
        what = f"{has.descriptors} descriptors are allowed, and the loader needs {need}"
        yield Symptom("HD13", ERROR, what, "ulimit -n", evidence, fix)


def _maps(environment: Environment, needs: Needs) -> Iterator[Symptom]:
    has = environment.allowances
    if has.maps is None or not needs.workers:
        return
    need = has.maps_used + (needs.batch_tensors * needs.batches_in_flight if needs.stock else 8 * needs.workers)
    if need > has.maps:
        what = f"{has.maps:,} maps of memory are allowed, and the loader needs {need:,}"
        evidence = f"{has.maps_used:,} are in use"
        yield Symptom("HD13", ERROR, what, "vm.max_map_count", evidence, "sysctl -w vm.max_map_count=262144")


def _processes(environment: Environment, needs: Needs) -> Iterator[Symptom]:
    left = environment.allowances.processes_left
    need = 2 * (needs.workers or 0)  # each has a thread or two of its own now and then
    if left is not None and need > left:
        what = f"the container may start {left} more processes and threads, and {needs.workers} workers need {need}"
        yield Symptom("HD13", ERROR, what, "pids.max", f"{left} left", "docker run --pids-limit=4096 …")


# HD14


def _cpus(environment: Environment, needs: Needs) -> Iterator[Symptom]:
    budget, workers = environment.cpu_budget, needs.workers or 0
    if workers <= max(1.0, budget):
        return
    severity = WARNING if workers > 2 * max(1.0, budget) else NOTE
    what = f"this process has {_cpus_named(budget)}, and {workers} workers are asked for"
    fix = f"DataLoader(dataset, num_workers={max(1, int(budget))})  # more only where they mostly wait for storage"
    yield Symptom("HD14", severity, what, "num_workers", _where_cpus_go(environment), fix)


def _cpus_named(count: float) -> str:
    return f"{number(count)} {'CPU' if count == 1 else 'CPUs'}"


def _where_cpus_go(environment: Environment) -> str:
    cpus = environment.cpus
    parts = [f"{cpus.machine} in the machine"]
    if cpus.affinity < cpus.machine:
        parts.append(f"this process may run on {cpus.affinity} of them")
    if cpus.quota is not None:
        parts.append(f"the container may use {number(cpus.quota)}")
    if environment.local_ranks > 1:
        parts.append(f"{environment.local_ranks} ranks share them")
    return ", ".join(parts)


def _throttling(environment: Environment, needs: Needs) -> Iterator[Symptom]:
    cpus = environment.cpus
    if cpus.quota is None or cpus.throttled <= _OFTEN_THROTTLED * cpus.periods:
        return
    what = f"the container was held back in {cpus.throttled / cpus.periods:.0%} of its time: its CPU quota was used up"
    evidence = f"nr_throttled {cpus.throttled:,} of nr_periods {cpus.periods:,}, quota {_cpus_named(cpus.quota)}"
    yield Symptom("HD14", WARNING, what, "cpu.stat", evidence, f"docker run --cpus={math.ceil(cpus.quota) * 2} …")


def _threads(environment: Environment, needs: Needs) -> Iterator[Symptom]:
    """Cores are what torch counts, and a quota or ranks beside it is what it does not know of."""
    allowed = max(1, math.ceil(environment.cpu_budget))
    if environment.torch is not None and environment.torch.threads > 2 * allowed:
        what = f"this process has {_cpus_named(allowed)}, and torch computes with {environment.torch.threads} threads"
        fix = f"export OMP_NUM_THREADS={allowed}  # before Python starts"
        yield Symptom("HD14", WARNING, what, "torch.get_num_threads()", _where_cpus_go(environment), fix)


# HD15


def _memory(environment: Environment, needs: Needs) -> Iterator[Symptom]:
    memory, workers = environment.memory, needs.workers or 0
    if not workers:
        return
    of_workers = workers * (_INTERPRETER if needs.start in _NEW_INTERPRETERS else _FORK)
    in_flight = (needs.batch_bytes or 0) * needs.batches_in_flight
    need = of_workers + in_flight
    if need <= memory.available:
        return
    what = f"{size(memory.available)} of memory are left, and {workers} workers need about {size(need)}"
    evidence = f"processes {size(of_workers)}, batches in flight {size(in_flight)}"
    if memory.limit is not None:
        evidence += f"; the container's limit is {size(memory.limit)}"
    fewer = max(1, int(workers * memory.available / need))
    yield Symptom("HD15", ERROR, what, "memory", evidence, f"DataLoader(dataset, num_workers={fewer})")


def _address_space(environment: Environment, needs: Needs) -> Iterator[Symptom]:
    has = environment.allowances
    if has.address_space is None or has.address_space - has.address_space_used >= _ADDRESS_SPACE_OF_A_CREW:
        return
    what = f"the address space is limited to {size(has.address_space)}: maps of shared memory will be refused"
    evidence = f"{size(has.address_space_used)} are in use"
    yield Symptom("HD15", WARNING, what, "ulimit -v", evidence, "ulimit -v unlimited")


def _oom_kills(environment: Environment, needs: Needs) -> Iterator[Symptom]:
    if environment.memory.oom_kills and environment.memory.limit is not None:
        what = f"the kernel has ended {environment.memory.oom_kills} processes of this container for want of memory"
        evidence = f"oom_kill {environment.memory.oom_kills}, limit {size(environment.memory.limit)}"
        yield Symptom("HD15", NOTE, what, "memory", evidence, "holdfast explain F28")
