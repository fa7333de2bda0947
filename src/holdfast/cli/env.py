"""``holdfast env``: what a bug report needs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .style import AsJson, print_json

if TYPE_CHECKING:
    from holdfast.doctor.environment import Environment


def env(as_json: AsJson = False) -> None:
    """Print what a bug report needs: versions, limits of machine and container, settings, leftovers of earlier runs.

    Exit codes: 0 always, 2 wrong usage.
    """
    from holdfast.doctor.environment import environment

    found = environment()
    if as_json:
        print_json(found.to_dict())
        return
    lines = _lines(found)
    width = max(map(len, lines))
    for name, text in lines.items():
        print(f"{name:<{width}}  {text}")


def _lines(found: Environment) -> dict[str, str]:
    lines = dict(found.versions)
    lines["system"] = found.system
    lines["CPUs"] = _cpus(found)
    lines["memory"] = _memory(found)
    lines["/dev/shm"] = _shared_memory(found)
    lines["limits"] = _limits(found)
    lines["signals"] = f"SIGCHLD {found.signals.child_ended}, blocked: {', '.join(found.signals.blocked) or 'none'}"
    lines["threads"] = " ".join(f"{name}={value}" for name, value in found.thread_settings.items()) or "no settings"
    lines["start"] = found.start_method
    lines["tracing"] = _tracing(found)
    lines["leftovers"] = _leftovers(found)
    return lines


def _cpus(found: Environment) -> str:
    from holdfast.doctor.figures import number

    cpus = found.cpus
    parts = [f"{cpus.machine}, usable {cpus.affinity}"]
    parts.append(f"quota {number(cpus.quota)}" if cpus.quota is not None else "no quota")
    if cpus.periods:
        parts.append(f"throttled in {cpus.throttled:,} of {cpus.periods:,} periods")
    if found.local_ranks > 1:
        parts.append(f"shared by {found.local_ranks} ranks")
    return ", ".join(parts)


def _memory(found: Environment) -> str:
    from holdfast.errors.base import size

    memory = found.memory
    limit = f"limit {size(memory.limit)}" if memory.limit is not None else "no limit"
    kills = f", oom_kill {memory.oom_kills}" if memory.oom_kills else ""
    return f"{size(memory.machine)}, {size(memory.available)} available, {limit}{kills}"


def _shared_memory(found: Environment) -> str:
    from holdfast.errors.base import size

    room = found.shared_memory
    return f"{size(room.size)}, {size(room.free)} free" if room is not None else "none"


def _limits(found: Environment) -> str:
    from holdfast.errors.base import size

    has = found.allowances
    parts = [f"descriptors {has.descriptors or 'unlimited'} ({has.descriptors_open} open)"]
    parts.append(f"maps {has.maps or 'unlimited'}")
    parts.append(f"address space {size(has.address_space) if has.address_space is not None else 'unlimited'}")
    if has.processes_left is not None:
        parts.append(f"processes {has.processes_left} more")
    return ", ".join(parts)


def _tracing(found: Environment) -> str:
    seeing = found.visibility
    scope = "none" if seeing.ptrace_scope is None else seeing.ptrace_scope
    return f"ptrace_scope {scope}, CAP_SYS_PTRACE {_yes(seeing.may_trace)}, py-spy {_yes(seeing.py_spy)}"


def _leftovers(found: Environment) -> str:
    from holdfast.doctor.figures import counted
    from holdfast.errors.base import size

    files, orphans = found.leftovers.files, found.leftovers.orphans
    parts = []
    if files:
        parts.append(f"{counted(len(files), 'file')} of {size(sum(file.size for file in files))} ({files[0].path} …)")
    if orphans:
        parts.append(f"workers without a trainer: {', '.join(str(orphan.pid) for orphan in orphans)}")
    return "; ".join(parts) or "none"


def _yes(fact: bool) -> str:
    return "yes" if fact else "no"
