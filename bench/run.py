"""The command: which measurements there are, in which order, and how the table is printed."""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path

import torch

from bench.container import container
from bench.first_batch import first_batch
from bench.harness import Options, Row
from bench.jpeg import jpeg
from bench.kills import kills
from bench.memory import memory
from bench.pools import pools
from bench.rates import big, middling, tiny
from bench.skew import skew_busy, skew_sleep
from bench.supervision import supervision

MEASUREMENTS: dict[str, Callable[[Options], Iterator[Row]]] = {
    "big": big,
    "middling": middling,
    "tiny": tiny,
    "first-batch": first_batch,
    "skew-busy": skew_busy,
    "skew-sleep": skew_sleep,
    "jpeg": jpeg,
    "kills": kills,
    "memory": memory,
    "container": container,
    "pools": pools,
    "supervision": supervision,
}

LINE = "{:36} {:22} {:>10} {:>10} {:10} {:>7} {:>7} {:8}{}"


def main() -> int:
    arguments = _parse()
    # The trainer's share of two cores should not vary with what torch does in parallel by itself.
    torch.set_num_threads(1)
    options = Options(
        rounds=arguments.rounds or (1 if arguments.quick else 5),
        quick=arguments.quick,
        full=arguments.full,
        memory_gb=arguments.memory_gb or (0.2 if arguments.quick else 2.0),
    )
    machine = {
        "torch": torch.__version__,
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        "load_average": round(os.getloadavg()[0], 2),
        "rounds": options.rounds,
        "quick": options.quick,
    }
    print(", ".join(f"{name} {value}" for name, value in machine.items()), flush=True)
    print(LINE.format("work", "compared with", "it", "holdfast", "", "ratio", "target", "reached", ""), flush=True)
    rows: list[Row] = []
    failed = []
    for name in arguments.only or MEASUREMENTS:
        try:
            for row in MEASUREMENTS[name](options):
                rows.append(row)
                print(_line(row), flush=True)
        except Exception:
            # One broken measurement must not cost the others, which took minutes.
            traceback.print_exc()
            failed.append(name)
    if arguments.json is not None:
        report = {"machine": machine, "rows": [row.as_dict() for row in rows], "failed": failed}
        arguments.json.write_text(json.dumps(report, indent=1, ensure_ascii=False) + "\n")
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one short round of each: does it run?")
    parser.add_argument("--only", action="append", choices=MEASUREMENTS, metavar="NAME", help=", ".join(MEASUREMENTS))
    parser.add_argument("--rounds", type=int, help="the best of so many counts (5; with --quick 1)")
    parser.add_argument("--memory-gb", type=float, help="size of the array in the memory measurement (2)")
    parser.add_argument("--full", action="store_true", help="also measure torch spawn's memory: four copies")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the rows there too")
    return parser.parse_args()


def _line(row: Row) -> str:
    ratio = row.measured_ratio
    reached = {None: "", True: "yes", False: "no"}[row.reached]
    cells = (row.work, row.baseline, _figure(row.baseline_figure), _figure(row.holdfast_figure), row.unit)
    return LINE.format(
        *cells, "–" if ratio is None else f"{ratio:.2f}", str(row.target or ""), reached, row.note and f" ({row.note})"
    ).rstrip()


def _figure(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"
