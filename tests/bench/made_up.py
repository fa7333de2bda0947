"""Results that nobody measured."""

from __future__ import annotations

from bench.contest import Contest, FaultResult, FaultTable, Outcome, Result, Target
from bench.report.files import Results

RATE = Outcome(
    Contest(
        "tiny", "1×16 float32 <from memory>", "batches/s", "nowhere:start", (), settings={"work": "memory:tiny"},
        targets={"torch fork": Target(8), "SPDL": Target(1), "Ray Data": Target(2)}, limits=("memcpy",),
    ),
    [
        Result("holdfast", [5000.0, 5200.0, 4700.0]),
        Result("holdfast threads", [5900.0, 5800.0]),
        Result("torch fork", [850.0, 800.0]),
        Result("torch spawn", [730.0, 700.0], note="not in order"),
        Result("SPDL", [6100.0, 6000.0]),
        Result("LitData", cannot="reads only files of its own making & no <arrays>"),
        Result("Ray Data", failed="the program ended: killed by SIGKILL"),
        Result("memcpy", [90000.0, 91000.0]),
    ],
)  # fmt: skip
TIME = Outcome(
    Contest(
        "first batch", "from a new loader to its first batch", "ms", "nowhere:start", (), better="less",
        targets={"torch spawn": Target(0.02, at_most=True), "torch fork": Target(0.8, at_most=True)},
    ),
    [
        Result("holdfast", [22.0, 20.0]),
        Result("torch fork", [24.0, 18.0]),
        Result("torch spawn", [2500.0, 2600.0]),
    ],
)  # fmt: skip
CURVE = [
    Outcome(
        Contest(f"batch {size}", f"batches of {size}", "samples/s", "nowhere:start", (), curve="batch size", at=size),
        [
            Result("holdfast", [5000.0 * size**0.9]),
            Result("torch fork", [800.0 * size**0.95]),
            Result("SPDL", [4800.0 * size**0.8]),
            Result("Ray Data", [50.0 * size] if size > 1 else [], failed="" if size > 1 else "hangs"),
        ],
    )
    for size in (1, 4, 16, 64, 256, 1024)
]
BROKEN = Outcome(
    Contest("kept", "batches that are kept", "MB", "nowhere:start", (), better="less"),
    [Result("holdfast", failed="MemoryError: no <more>"), Result("torch fork", [7.0])],
)
LOADERS = FaultTable(
    "loaders",
    {"killed": "a worker is killed at one sample", "hangs": "one sample takes an hour"},
    {"finishes": "each sample came once", "hangs": "no batch came any more"},
    [
        FaultResult("holdfast", "killed", "finishes", 0.12),
        FaultResult("torch fork", "killed", "error", 0.3, "RuntimeError: DataLoader worker (pid 7) is killed"),
        FaultResult("holdfast", "hangs", "error", 3.1, "WorkerStalled: worker 0 | made no progress"),
        FaultResult("torch fork", "hangs", "hangs", None, ""),
        FaultResult("LitData", "hangs", "cannot", None, "reads only files"),
    ],
)
MACHINE = {
    "date": "2031-01-02 03:04 UTC", "cpu": "Made-up CPU", "cores": 2, "memory_gib": 7.7, "kernel": "Linux 9.9",
    "python": "3.11.7", "load_start": [0.1, 0.2, 0.3], "load_end": [2.0, 1.0, 0.5], "quick": False, "seconds": 7000,
    "versions": {"holdfast": "0.1.0", "torch": "2.13.0", "spdl": ""},
}  # fmt: skip


def results() -> Results:
    made = Results(dict(MACHINE), fates={"loader-faults": LOADERS})
    for group, outcomes in {"rates": [RATE, BROKEN], "moments": [TIME], "growth": CURVE}.items():
        for outcome in outcomes:
            made.put(group, outcome, {"date": "2031-01-02 03:04 UTC", "seconds": 12.5})
    return made
