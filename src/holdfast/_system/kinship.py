"""Who started whom, of all processes of this machine, and what they were started as. Linux only.

Reading costs one small file for each process. Nothing here fails because a process ends meanwhile.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass

from . import proc


@dataclass(frozen=True, slots=True)
class Kin:
    """One process. ``name`` is what ps shows, ``state`` its letter there; ``command`` is empty when it has ended."""

    pid: int
    parent: int
    name: str
    state: str
    command: tuple[str, ...]


def is_known() -> bool:
    """Whether this system tells at all."""
    return os.path.isdir("/proc/self/task")


def everyone() -> dict[int, Kin]:
    found = {}
    for name in os.listdir("/proc"):
        if name.isdigit() and (kin := _kin(int(name))):
            found[kin.pid] = kin
    return found


def _kin(pid: int) -> Kin | None:
    head, _, rest = proc.text(f"/proc/{pid}/stat").rpartition(")")
    fields = rest.split()
    if len(fields) < 2:
        return None
    command = tuple(proc.text(f"/proc/{pid}/cmdline").split("\0"))
    return Kin(pid, int(fields[1]), head.partition("(")[2], fields[0], command if command != ("",) else ())


def descendants(table: Mapping[int, Kin], top: int) -> Iterator[int]:
    """Those that a process started and those that these started, parents first, elder before younger."""
    children: dict[int, list[int]] = {}
    for kin in sorted(table.values(), key=lambda kin: kin.pid):
        children.setdefault(kin.parent, []).append(kin.pid)
    todo = children.get(top, [])
    while todo:
        yield from todo
        todo = [child for pid in todo for child in children.get(pid, [])]


def runs_python(kin: Kin) -> bool:
    """An interpreter, or a program with one inside."""
    with suppress(OSError):
        if os.path.basename(os.readlink(f"/proc/{kin.pid}/exe")).startswith(("python", "pypy")):
            return True
    named = os.path.basename(kin.command[0]) if kin.command else kin.name
    return named.startswith(("python", "pypy")) or "/libpython3" in proc.text(f"/proc/{kin.pid}/maps")


def may_look_into(pid: int) -> bool:
    """Whether its descriptors, and so its memory, are open to us: of the same user, or we are root."""
    try:
        os.listdir(f"/proc/{pid}/fd")
    except PermissionError:
        return False
    except OSError:
        pass  # it has ended
    return True


def is_hidden(pid: int) -> bool:
    """Whether there is such a process although ``/proc`` does not show it, as with ``hidepid``."""
    try:
        os.kill(pid, 0)  # asks only
    except PermissionError:
        return not os.path.isdir(f"/proc/{pid}")
    except (OSError, OverflowError):
        pass
    return False


def owner(pid: int) -> str:
    """The name of the user that it belongs to; their number where there is no name; empty when it has ended."""
    import pwd

    try:
        number = os.stat(f"/proc/{pid}").st_uid
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return str(number)
    except OSError:
        return ""


def variable(pid: int, name: str) -> str:
    """A variable of the environment that it was started with; empty when it has none, or may not be looked into."""
    begin = f"{name}="
    told = proc.text(f"/proc/{pid}/environ").split("\0")
    return next((line.removeprefix(begin) for line in told if line.startswith(begin)), "")
