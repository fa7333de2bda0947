"""``python -m bench``: holds the contests, prints each as soon as it is over, and writes the results and the page.

Only a whole run replaces what is published, in bench/results and docs/benchmarks.md. Anything less goes to
bench/results/quick, which is not under version control, or where --results says.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from bench import machine
from bench.catalogue import FAULTS, GROUPS, Faults
from bench.contest import Contest, FaultResult, FaultTable
from bench.peers import QUICK as QUICK_PEERS
from bench.pools import POOLS
from bench.progress import Progress
from bench.report import files, page, table
from bench.report.behind import behind
from bench.report.words import duration, slug
from bench.turns import ROOT, Seats

PUBLISHED = ROOT / "bench" / "results"
QUICK = PUBLISHED / "quick"
QUICK_ROUNDS = 2
BUSY = 0.5  # load for each core above which a warning is due
FAULTS_WEIGHT, QUICK_FAULTS_WEIGHT = 270.0, 30.0  # a table of faults takes as long as so many turns, more or less


@dataclass(frozen=True)
class Plan:
    """What this run holds. `only`: contenders; None: all."""

    steps: list[tuple[str, Contest] | Faults]
    only: frozenset[str] | None
    rounds: int | None
    quick: bool
    whole: bool

    def rounds_of(self, contest: Contest) -> int:
        return self.rounds or (min(QUICK_ROUNDS, contest.rounds) if self.quick else contest.rounds)

    def of(self, contest: Contest) -> frozenset[str] | None:
        return None if self.only is None else self.only | {contest.champion}

    def weight(self, step: tuple[str, Contest] | Faults) -> float:
        if isinstance(step, Faults):
            return QUICK_FAULTS_WEIGHT if self.quick else FAULTS_WEIGHT
        contest, only = step[1], self.of(step[1])
        count = sum(only is None or name in only for name in contest.contenders)
        return count * (self.rounds_of(contest) + 2.0)  # two more for getting ready


def main(arguments: list[str] | None = None) -> int:
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.list:
        print("\n".join(_listed()))
        return 0
    try:
        plan = _plan(options)
        directory, results = _results(options, plan)
    except ValueError as error:
        parser.error(str(error))
    if not options.report_only:
        if not plan.steps:
            parser.error("none of these contenders is in any of these contests")
        failures = _held(plan, results, directory)
    else:
        failures = [one for outcome in results.outcomes for one in outcome.failures]
        print("\n\n".join(table.block(outcome) for outcome in results.outcomes))
    trailing = behind(results).lines()
    summary = "behind, or short of a target:" if trailing else "holdfast is ahead everywhere, and every target reached"
    print("\n".join(["", summary, *(f"  {line}" for line in trailing)]))
    print(f"\nresults: {_shown(directory)}\nreport: {_shown(page.write(results, *_places(directory)))}")
    for failure in failures:
        print(f"holdfast failed: {failure}", file=sys.stderr)
    return 1 if failures else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bench", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="small data and few rounds")
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", help="these contests or groups, see --list")
    parser.add_argument(
        "--peer", nargs="+", default=[], metavar="NAME", help="holdfast and these: names, or how they begin"
    )
    parser.add_argument("--rounds", type=int, metavar="N", help="turns of each contender, of which the best counts")
    parser.add_argument("--list", action="store_true", help="say which contests and contenders there are")
    parser.add_argument("--results", type=Path, metavar="DIR", help="where results are; those of other contests stay")
    parser.add_argument("--report-only", action="store_true", help="measure nothing: tables and page from the files")
    return parser


def _listed() -> Iterator[str]:
    for group, contests in GROUPS.items():
        yield f"{group}:"
        for contest in contests:
            yield f"  {slug(contest.name):36} {contest.title}"
    yield "faults met:"
    for faults in FAULTS:
        yield f"  {faults.name:36} {faults.title}"
    yield "contenders:"
    yield from (f"  {name}" for name in _contenders())


def _contenders() -> list[str]:
    return list(dict.fromkeys(name for group in GROUPS.values() for one in group for name in one.contenders))


def _plan(options: argparse.Namespace) -> Plan:
    only = None
    if options.peer:
        only = frozenset(name for asked in options.peer for name in _begin_with(asked, _contenders()))
    steps = [step for step in _steps() if not options.only or _asked_for(step, options.only)]
    _must_be_known(options.only)
    if options.quick and not options.only:
        steps = [step for step in steps if (step.before if isinstance(step, Faults) else step[1].quick)]
    if options.quick and not options.only and not options.peer:
        only = frozenset({*QUICK_PEERS, *POOLS})
    if only is not None:
        steps = [step for step in steps if isinstance(step, Faults) or only & {*step[1].contenders}]
    if options.rounds is not None and options.rounds < 1:
        raise ValueError("--rounds must be at least 1")
    less = options.quick or options.only or options.peer or options.rounds
    return Plan(steps, only, options.rounds, options.quick, whole=not less)


def _steps() -> Iterator[tuple[str, Contest] | Faults]:
    """Contests in their order, each table of faults where it is wanted, else at the end."""
    for group, contests in GROUPS.items():
        yield from (faults for faults in FAULTS if faults.before == group)
        yield from ((group, contest) for contest in contests)
    yield from (faults for faults in FAULTS if faults.before not in GROUPS)


def _asked_for(step: tuple[str, Contest] | Faults, names: Iterable[str]) -> bool:
    known = {step.name} if isinstance(step, Faults) else {step[0], slug(step[1].name)}
    return any(slug(name) in known for name in names)


def _must_be_known(names: Iterable[str]) -> None:
    for name in names:
        if not any(_asked_for(step, [name]) for step in _steps()):
            raise ValueError(f"no contest or group is called {name!r}; --list shows them")


def _begin_with(asked: str, names: list[str]) -> list[str]:
    exact = [name for name in names if name.lower() == asked.lower()]
    found = exact or [name for name in names if name.lower().startswith(asked.lower())]
    if not found:
        raise ValueError(f"no contender is called {asked!r}; --list shows them")
    return found


def _results(options: argparse.Namespace, plan: Plan) -> tuple[Path, files.Results]:
    """Where they go, and what is there that stays."""
    directory: Path = options.results or (PUBLISHED if plan.whole else QUICK)
    facts = machine.facts(quick=plan.quick)
    if options.report_only:
        directory = options.results or (QUICK if plan.quick else PUBLISHED)
        if not (directory / files.MACHINE).is_file():
            raise ValueError(f"there are no results in {_shown(directory)}")
        return directory, files.read(directory, GROUPS)
    if options.results is None or plan.whole or not (directory / files.MACHINE).is_file():
        return directory, files.Results(facts)
    there = files.read(directory, GROUPS)
    if not machine.same(there.machine, facts):
        raise ValueError(f"{_shown(directory)} has results of another machine, other versions or another --quick")
    there.machine = facts
    return directory, there


def _held(plan: Plan, results: files.Results, directory: Path) -> list[str]:
    """What failed of holdfast. Standard error of the seats is kept where somebody failed."""
    work = Path(tempfile.mkdtemp(prefix="holdfast-bench-"))
    log, data = work / "seats.log", work / "data"
    data.mkdir()
    try:
        with log.open("wb") as errors:
            failures, of_anyone = _hold_all(plan, results, directory, data, errors)
    finally:
        shutil.rmtree(data, ignore_errors=True)
    if of_anyone:
        print(f"what the contenders said on standard error: {log}", file=sys.stderr)
    else:
        shutil.rmtree(work, ignore_errors=True)
    return failures


def _hold_all(
    plan: Plan, results: files.Results, directory: Path, data: Path, errors: IO[bytes]
) -> tuple[list[str], bool]:
    failures, of_anyone = [], False
    progress = Progress(sum(plan.weight(step) for step in plan.steps))
    print(page.machine_line(results.machine), flush=True)
    if results.machine["load_start"][0] > BUSY * results.machine["cores"]:
        print("the machine is busy with something else: ratios will be off", file=sys.stderr)
    seats = Seats(data, errors, quick=plan.quick, tell=progress.tell)
    try:
        for step in plan.steps:
            if isinstance(step, Faults):
                progress.begin(f"faults met by {step.title}")
                results.fates[step.name] = _met(step, plan, data, progress)
                failures += results.fates[step.name].failures
            else:
                group, contest = step
                progress.begin(contest.name)
                began = time.monotonic()
                outcome = seats.hold(contest, rounds=plan.rounds_of(contest), only=plan.of(contest))
                held = {"date": machine.now(), "seconds": round(time.monotonic() - began, 1)}
                results.put(group, outcome, held)
                failures += outcome.failures
                of_anyone = of_anyone or any(result.failed for result in outcome.results)
                progress.clear()
                print("\n" + table.block(outcome), flush=True)
            progress.done(plan.weight(step))
            results.machine |= {"load_end": machine.load(), "seconds": round(progress.seconds)}
            files.write(directory, results)
            if plan.whole:  # now, and not at the end: an interrupted run must not leave results of another machine
                files.remove_others(directory, results)
    finally:
        seats.end()
    print(f"\n{len(plan.steps)} in {duration(progress.seconds)}", flush=True)
    return failures, of_anyone or bool(failures)


def _met(faults: Faults, plan: Plan, data: Path, progress: Progress) -> FaultTable:
    """The table, printed line by line."""
    found = faults.legend()
    only = None if plan.only is None else plan.only | {"holdfast", "holdfast Pool"}

    def results() -> Iterator[FaultResult]:
        for result in faults.run(plan.quick, only, data):
            found.results.append(result)
            progress.clear()
            yield result
            progress.tell(f"{result.contender}, {result.fault}")

    for number, line in enumerate(table.fates(found.title, results())):
        print(line if number else f"\n{line}", flush=True)
    return found


def _places(directory: Path) -> tuple[Path, Path]:
    """Of the page and its plots: published for published results, beside the others."""
    if directory.resolve() == PUBLISHED:
        return ROOT / "docs" / "benchmarks.md", ROOT / "docs" / "benchmarks"
    return directory / "benchmarks.md", directory / "plots"


def _shown(path: Path) -> str:
    path = path.resolve()
    return str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else str(path)
