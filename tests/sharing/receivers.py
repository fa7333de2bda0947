"""What other processes do with what they are handed. Importable, as a spawned process has to."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
from typing import Any

import torch


def double(x: Any) -> None:
    """Write to all of it."""
    x *= 2


def double_and_count(x: Any, total: Any) -> None:
    with total.lock:
        x *= 2
        total += 1


def double_what_comes(source: Any) -> None:
    x = source.get() if hasattr(source, "get") else source.recv()
    x *= 2


def read_what_comes(source: Any, answers: Any) -> None:
    try:
        answers.put(repr(source.get()[:2]))
    except RuntimeError as error:
        answers.put(type(error).__name__)


def add_under_lock(x: Any, times: int) -> None:
    for _ in range(times):
        with x.lock:
            value = x[0].item()
            x[0] = value + 1


def hold_and_wait(x: Any, ready: Any) -> None:
    x.lock.acquire()
    ready.set()
    signal.pause()


def pass_on(x: Any, connection: Any) -> None:
    """Hand a part of it to somebody else, and stay until it has been taken out of the pipe."""
    connection.send(x[1:])
    connection.recv()


def keep(x: Any) -> None:
    print(os.getpid() if x[0] else "", flush=True)
    signal.pause()


def run_model(model: Any, answers: Any) -> None:
    with torch.no_grad():
        answers.put(model(torch.ones(1, model[0].in_features)).sum().item())
        model[0].bias.add_(1)


def in_new_interpreter(value: Any, code: str, dumps: Any = pickle.dumps) -> str:
    """Hand ``x`` to an interpreter that nobody prepared for it, by a pickle in its input."""
    program = f"import pickle, sys\nx = pickle.load(sys.stdin.buffer)\n{code}"
    done = subprocess.run([sys.executable, "-c", program], input=dumps(value), capture_output=True, check=False)
    return (done.stdout + done.stderr).decode().strip()


def keep_and_read(x: Any, source: Any, answers: Any) -> None:
    answers.put("here")
    source.get()
    answers.put(int(x.sum()))


def proportional_set_size() -> int:
    """Bytes of memory of this process, each page divided by the number of those who have it mapped."""
    with open("/proc/self/smaps_rollup") as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith("Pss:")) << 10


def read_all(x: Any, barrier: Any, answers: Any) -> None:
    for _ in range(1000):
        str(x[0])
    barrier.wait()
    before = proportional_set_size()
    barrier.wait()
    sum(map(len, x))
    barrier.wait()
    answers.put(proportional_set_size() - before)
    barrier.wait()


def sum_all(model: Any, barrier: Any, answers: Any) -> None:
    torch.zeros(1000).sum()
    barrier.wait()
    before = proportional_set_size()
    barrier.wait()
    for parameter in model.parameters():
        parameter.detach().sum()
    barrier.wait()
    answers.put(proportional_set_size() - before)
    barrier.wait()
