"""A container's limits: 1 MB of /dev/shm and 256 descriptors. Each loader runs in a process of its own under them.

That process is this module again: `python -m bench.container big holdfast 12` prints one line of JSON.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.harness import Options, Row, Target

TIME_LIMIT = 120
UNDER_LIMITS = 'mount -t tmpfs -o size=1m tmpfs /dev/shm && ulimit -n 256 && exec "$@"'


def container(options: Options) -> Iterator[Row]:
    namespace = _namespace()
    if namespace is None:
        yield Row("/dev/shm of 1 MB", "torch", note="not measured: unshare -m is not allowed here")
        return
    batches, kept = options.scaled(12, 4), options.scaled(10_000, 1_000)
    stock, ours = _both(namespace, "big", batches)
    note = _ending(stock)
    yield Row("154 MB batches, /dev/shm of 1 MB", "torch", "batches/s", stock.get("rate"), ours["rate"], note=note)
    stock, ours = _both(namespace, "kept", kept)
    note = "; ".join(filter(None, ["ratio: how many more", _ending(stock)]))
    for fact in ("descriptors", "maps"):
        work, bound = f"{fact} for {kept} kept batches", Target(100, at_most=True)
        yield Row(work, "torch", "", stock.get(fact), ours[fact], ratio=ours[fact], target=bound, note=note)


def _both(namespace: list[str], work: str, count: int) -> tuple[dict[str, Any], dict[str, Any]]:
    stock, ours = (_under_limits(namespace, work, loader, count) for loader in ("torch", "holdfast"))
    if "error" in ours:
        raise RuntimeError(f"holdfast failed under the limits of a container: {ours['error']}")
    return stock, ours


def _ending(facts: dict[str, Any]) -> str:
    """How torch ended, where it did not get through."""
    return f"torch: {facts['error'][:60]}" if "error" in facts else ""


def _namespace() -> list[str] | None:
    """How a process may have a /dev/shm of its own here: as root, else as root of a user namespace."""
    for command in (["unshare", "-m"], ["unshare", "-rm"]):
        try:
            probe = [*command, "sh", "-c", UNDER_LIMITS, "sh", "true"]
            if subprocess.run(probe, capture_output=True, timeout=10).returncode == 0:
                return command
        except (OSError, subprocess.TimeoutExpired):
            pass
    return None


def _under_limits(namespace: list[str], work: str, loader: str, count: int) -> dict[str, Any]:
    child = subprocess.Popen(
        [*namespace, "sh", "-c", UNDER_LIMITS, "sh", sys.executable, "-m", "bench.container", work, loader, str(count)],
        cwd=Path(__file__).resolve().parents[1],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        output, errors = child.communicate(timeout=TIME_LIMIT)
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        child.communicate()
        return {"error": f"no end within {TIME_LIMIT} s"}
    if child.returncode == 0:
        return dict(json.loads(output))
    told = [line for line in errors.splitlines() if "Error" in line] or errors.splitlines() or ["no output"]
    return {"error": told[-1].strip()}


def _measure(work: str, loader: str, count: int) -> dict[str, float]:
    import torch

    from bench.harness import holdfast_loader, torch_loader

    torch.set_num_threads(1)
    make = {"torch": torch_loader, "holdfast": holdfast_loader}[loader]
    return {"big": _big, "kept": _kept}[work](make, count)


def _big(make: Any, batches: int) -> dict[str, float]:
    from bench.datasets import FromMemory
    from bench.harness import consume, warm_up

    loader = make(FromMemory(256 * batches, (3, 224, 224)), 256, persistent_workers=True)
    warm_up(loader)
    return {"rate": batches / min(consume(loader) for _ in range(2))}


def _kept(make: Any, batches: int) -> dict[str, float]:
    from bench.datasets import Sized

    # Counted when the first batch is here: workers and arenas are there by then, for any number of batches.
    iterator = iter(make(Sized(batches), 1))
    kept = [next(iterator)]
    descriptors, maps = _descriptors(), _maps()
    kept.extend(iterator)
    grown = {"descriptors": _descriptors() - descriptors, "maps": _maps() - maps}
    wrong = [number for number, batch in enumerate(kept) if not bool((batch == number).all())]
    if wrong or len(kept) != batches:
        raise AssertionError(f"{len(kept)} of {batches} batches kept, {len(wrong)} changed since they were delivered")
    return grown


def _descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def _maps() -> int:
    return len(Path("/proc/self/maps").read_text().splitlines())


if __name__ == "__main__":
    print(json.dumps(_measure(sys.argv[1], sys.argv[2], int(sys.argv[3]))))
