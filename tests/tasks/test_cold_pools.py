"""The first pool of a program, whose zygote has no torch yet: it starts without, and nothing else is different."""

from __future__ import annotations

import pytest
from callers import run

HEAD = """
import io, os, signal, sys, warnings
import numpy, torch
import holdfast
from holdfast import Executor, Pool
from holdfast._system import starts

TORCH = "torch"

def is_there(name):  # an argument: a function that names torch would be given it
    return name in sys.modules

"""

# Each in a program of its own: what it says, or how it fails.
PROGRAMS = {
    "plain functions are called without it": """
with Pool(2) as pool:
    assert pool.map(is_there, [TORCH] * 4) == [False] * 4
with Executor(2) as executor:
    assert list(executor.map(is_there, [TORCH] * 4)) == [False] * 4
assert not starts.is_warm()
""",
    "a function that names it finds it there": """
def draws(_):
    return "torch" in sys.modules, torch.rand(1).item()

assert not starts.is_warm()
with Pool(2, seed=3) as pool:
    assert all(there for there, _ in pool.map(draws, range(4)))
assert starts.is_warm()
""",
    "a function of a module that uses it finds it there": """
from pathlib import Path
Path("uses_it.py").write_text("from torch.nn import functional\\ndef apply(x): return float(functional.relu(x))")
sys.path.insert(0, ".")
import uses_it
with Pool(1) as pool:
    assert pool.map(uses_it.apply, [torch.tensor(-1.0)]) == [0.0]
assert starts.is_warm()
""",
    "so does a function that is given a tensor, wherever it is": """
def length(mapping):
    return len(mapping["a"])

with Executor(1) as executor:
    assert executor.submit(length, {"a": [torch.ones(3)]}).result() == 1
assert starts.is_warm()
""",
    "so does one that is given what is shared": """
shared = holdfast.share(numpy.arange(3))
with Pool(1) as pool:
    assert pool.apply(numpy.sum, (shared,)) == 3
assert starts.is_warm()
""",
    "loaders that a pool serves find it there": """
with Pool(2) as pool:
    loader = holdfast.DataLoader(list(range(6)), batch_size=2, num_workers=2, pool=pool)
    assert [batch.tolist() for batch in loader] == [[0, 1], [2, 3], [4, 5]]
assert starts.is_warm()
""",
    "an initializer counts as a function does": """
def begin():
    torch.set_num_threads(1)

with Pool(1, begin) as pool:
    assert pool.map(is_there, [TORCH]) == [True]
""",
    "an initializer is called before there is a call": """
import multiprocessing
begun = multiprocessing.get_context("spawn").Queue()
with Pool(2, begun.put, ("here",)) as pool:
    assert [begun.get(timeout=60), begun.get(timeout=60)] == ["here", "here"]
    assert pool.map(is_there, [TORCH]) == [False]
""",
    "who asks for the processes has them before the first call": """
with Pool(2) as pool:
    assert len(pool.processes) == 2 and all(process.is_alive() for process in pool.processes)
    assert pool.map(is_there, [TORCH]) == [False]
""",
    "arrays travel without it, and numpy comes with them": """
def twice(array, name):
    return name in sys.modules, array * 2

def threads(_):
    import os, numpy
    return len(os.listdir("/proc/self/task"))

os.environ["OPENBLAS_NUM_THREADS"] = "2"
with Pool(1) as pool:
    assert pool.map(is_there, ["numpy"]) == [False]
    assert pool.map(threads, [0]) == [1] and pool.map(is_there, ["numpy"]) == [True]

large = numpy.arange(1_000_000)
with Pool(2) as pool:
    for small_or_large in (large[:10], large, large.astype(">i4").reshape(1000, 1000).T):
        there, array = pool.apply(twice, (small_or_large, TORCH))
        assert not there and (array == small_or_large * 2).all()
""",
    "a pool that is closed before its first call has nothing to end": """
pool = Pool(2)
pool.close()
pool.join()
""",
    "a loader finds a zygote with torch behind a pool that has none": """
with Pool(2) as pool:
    assert pool.map(is_there, [TORCH] * 2) == [False, False]
    assert [int(x) for x in holdfast.DataLoader(torch.arange(6), batch_size=None, num_workers=2)] == list(range(6))
    assert starts.is_warm() and pool.map(is_there, [TORCH] * 2) == [False, False]
with Pool(1) as pool:
    assert pool.map(is_there, [TORCH]) == [True]
""",
    "a worker that imports it late has one thread of it and the settings of the program": """
def settings(name):
    numpy, late = __import__("numpy"), __import__(name)
    kinds = [one[2].__name__ for one in warnings.filters]
    assert numpy.geterr()["over"] == "raise"
    return str(late.get_default_dtype()), late.is_grad_enabled(), late.get_num_threads(), kinds.count("TracerWarning")

torch.set_default_dtype(torch.float64)
numpy.seterr(over="raise")
warnings.simplefilter("error", torch.jit.TracerWarning)
kinds = [one[2].__name__ for one in warnings.filters].count("TracerWarning")
with torch.no_grad(), Pool(2) as pool:
    assert pool.map(settings, [TORCH] * 3) == [("torch.float64", False, 1, kinds)] * 3
assert not starts.is_warm()
""",
    "random numbers are those of the call, though torch comes in the middle of it": """
def draw(name):
    late = __import__(name)
    return late.rand(2).tolist(), late.initial_seed(), float(numpy.random.rand())

with Pool(2, seed=7) as pool:
    cold = pool.map(draw, [TORCH] * 6, chunksize=1)
assert not starts.is_warm()
holdfast.warm()
with Pool(2, seed=7) as pool:
    assert pool.map(draw, [TORCH] * 6, chunksize=1) == cold
""",
    "a worker that takes a dead one's place may have torch, and draws the same": """
def draw(name):
    late = __import__(name)
    return late.rand(2).tolist()

with Pool(1, seed=7) as pool:
    before = pool.map(draw, [TORCH] * 3, chunksize=1)
with Pool(1, seed=7) as pool:
    assert pool.map(draw, [TORCH], chunksize=1) == before[:1]
    holdfast.warm()
    sys.stderr = io.StringIO()  # it is said there
    os.kill(pool.processes[0].pid, signal.SIGKILL)
    assert pool.map(draw, [TORCH] * 2, chunksize=1) == before[1:]
""",
    "workers that are spawned have none either": """
with Pool(1, start="spawn") as pool:
    assert pool.map(is_there, [TORCH]) == [False]
assert next(iter(holdfast.DataLoader([1], num_workers=1, start="spawn"))) == 1
""",
}


@pytest.mark.parametrize("promise", PROGRAMS)
def test_of_a_cold_pool(promise, tmp_path):
    assert run(tmp_path, HEAD + PROGRAMS[promise] + '\nprint("well")\n').strip() == "well"
