"""The control groups of this process, of either version of the kernel's interface."""

from __future__ import annotations

from pathlib import Path

MOUNTS = Path("/sys/fs/cgroup")
OURS = Path("/proc/self/cgroup")


def groups(controller: str, ours: Path = OURS, mounts: Path = MOUNTS) -> list[tuple[Path, int]]:
    """(folder, version) of each group in which ``controller`` counts us, each followed by those that it lies in."""
    found = []
    for line in lines(ours):
        number, controllers, path = line.split(":", 2)
        if number == "0":
            found += [(at, 2) for at in _up_from(mounts, path)]
        elif controller in controllers.split(","):
            found += [(at, 1) for at in _up_from(mounts / controller, path)]
    return found


def lines(path: Path) -> list[str]:
    """Of a file; none when it is not to be read."""
    try:
        return path.read_text().splitlines()
    except OSError:
        return []


def number(path: Path) -> int | None:
    """The only one in a file; None also for "max"."""
    text = "".join(lines(path)[:1])
    return int(text) if text.isdigit() else None


def entry(path: Path, name: str) -> int | None:
    """The number behind a name, in a file of such lines."""
    values = (line.split()[1] for line in lines(path) if line.startswith(name + " "))
    return next((int(value) for value in values), None)


def _up_from(root: Path, path: str) -> list[Path]:
    """A group and all that it lies in, whose limits hold as well. A container may see its own group as the root, under
    another path than it is told: then only the root is there."""
    inside = Path(path.lstrip("/"))
    return [root / inside, *(root / outer for outer in inside.parents)]
