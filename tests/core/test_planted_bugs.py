"""Do the walks have teeth? Each bug here is planted in a copy of the core, and a walk must find it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "holdfast"
WALKS = """
import holdfast
assert holdfast.__file__.startswith({folder!r}), holdfast.__file__
from holdfast._core.limits import Limits
from holdfast.testing import walk
for seed in range({walks}):
    walk(seed, limits={limits})
"""

# Bugs in corners that a walk with any limits seldom comes to are looked for where they are.
WHERE = {
    "a stream runs ahead of the others' share": (
        "Limits(seats=8, prefetch=3, bound=True, run_ahead=2, attempts=99, crash_loop=10**6)"
    ),
    "nobody is let go between epochs": "Limits(seats=3, recycle_after=1, run_ahead=0)",
    "a pause outlives the stream": "Limits(seats=2, bound=True, attempts=99, crash_loop=10**6)",
    "a batch that kills everywhere is never found": "Limits(seats=2, attempts=2, crash_loop=10**6)",
    "a void result is kept": "Limits(seats=2, prefetch=3, bound=True, attempts=1, crash_loop=10**6)",
    "a pardon does not end the row": "Limits(seats=1, attempts=1, crash_loop=3)",
}

# what it is: (module, the text, the text with the bug)
BUGS = {
    "a dead worker is not replaced": (
        "machine",
        "if self.schedule.wants(seat):\n            self._replace",
        "if False:\n            self._replace",
    ),
    "what a dead worker held is forgotten": (
        "free",
        "for batch in seat.held:\n            insort(self.pending, batch)",
        "for batch in seat.held:\n            pass",
    ),
    "what is sent again is sent in the wrong order": (
        "free",
        "for batch in seat.held:\n            insort(self.pending, batch)",
        "for batch in seat.held:\n            self.pending += [batch]",
    ),
    "a stream's batches are not sent to its next life": (
        "bound",
        "commands += [Send(seat.who, batch) for batch in seat.held]",
        "pass",
    ),
    "a result from the dead is taken": (
        "machine",
        "event.who.life != seat.life or batch not in seat.held",
        "batch not in seat.held",
    ),
    "a dead worker is taken for the living": ("seats", "        self.life += 1\n", ""),
    "the exit of an old life counts": (
        "machine",
        "        if event.who.life != seat.life:\n            return\n        seat.vacate()",
        "        seat.vacate()",
    ),
    "results leak at the end": ("machine", "for batch in self.shelf.clear()]", "for batch in ()]"),
    "results leak into the next epoch": (
        "machine",
        "commands += [Discard(batch) for batch in self.schedule.begin(event)]",
        "self.schedule.begin(event)",
    ),
    "work of the old epoch is held against the new": (
        "free",
        "        for seat in self.seats:\n            seat.held.clear()\n        self.shelf.open",
        "        self.shelf.open",
    ),
    "an epoch begins with used numbers": ("bound", "self.first = max(", "self.first = min("),
    "one batch too many in flight": ("free", "normal = self.window - shelf", "normal = 1 + self.window - shelf"),
    "more than prefetch for one worker": ("free", "best, least = None, self.prefetch", "best, least = None, 99"),
    "out of order": (
        "shelf",
        "if batch not in self.done:\n                return None",
        "if not self.done:\n                return None\n            batch = min(self.done)",
    ),
    "the end comes before the last batch": (
        "free",
        "return self.sampler_ended and not self.shelf.undelivered",
        "return self.sampler_ended and self.shelf.undelivered < 2",
    ),
    "no end": ("machine", "elif self.schedule.exhausted():", "elif False:"),
    "no draw once the first one is answered": (
        "machine",
        "                self.drawing = False\n                self.schedule.draw",
        "                self.schedule.draw",
    ),
    "two draws at once": (
        "machine",
        "if not self.drawing and not self.schedule.sampler_ended:",
        "if not self.schedule.sampler_ended:",
    ),
    "the crew never runs ahead": (
        "machine",
        "return min(soonest, self.schedule.run_ahead_at())",
        "return soonest",
    ),
    "what failed is forgotten": ("free", "self.paused[batch] = now, again_at", "pass"),
    "what failed is tried again too soon": (
        "free",
        "self.paused.items() if again_at <= now]",
        "self.paused.items()]",
    ),
    "nobody wakes to try again": (
        "machine",
        "soonest = min(self.restart_at, self.schedule.again_at)",
        "soonest = self.restart_at",
    ),
    "nobody runs ahead of what is to be tried again": ("free", "if shelf.turn in self.paused:", "if False:"),
    "a pardon is forgotten": ("machine", "self.schedule.pardon(batch, now, event.again_at)", "pass"),
    "a pardon does not clear the slate": ("machine", "self.suspects.forget(batch)", "pass"),
    "a stream goes on behind poison": (
        "bound",
        "return self.end_stream(self.shelf.seat_of(batch), batch + 1)",
        "return []",
    ),
    "a hung worker gets a second time": ("suspects", "if certain or deaths", "if deaths"),
    "a worker is let go with work on its hands": (
        "machine",
        "if seat.phase is Phase.RETIRING and not seat.held:",
        "if seat.phase is Phase.RETIRING:",
    ),
    "a worker that was let go is not replaced": (
        "machine",
        "commands.append(seat.start(skip=0, fresh=False))",
        "pass",
    ),
    "an outgrown worker stays": ("machine", "seat.phase = Phase.RETIRING\n", "pass\n"),
    "nobody is let go between epochs": ("machine", "if self._is_tired(seat):", "if False:"),
    "a worker is used beyond its time": ("schedule", "if seat.taken >= self.recycle_after:", "if False:"),
    "no grace for a slow worker": (
        "schedule",
        "return max(holder.since, self.wanted_at) + self.pace.grace",
        "return 0.0",
    ),
    "the user's own time counts against a worker": (
        "schedule",
        "max(holder.since, self.wanted_at)",
        "holder.since",
    ),
    "the shelf has no bottom": ("schedule", "shelf.bytes < self.limits.run_ahead_bytes", "True"),
    "the crew runs ahead too far": (
        "free",
        "min(self.window - shelf.unfinished + len(self.paused), normal + self.limits.run_ahead)",
        "self.window - shelf.unfinished + len(self.paused)",
    ),
    "a stream runs ahead of the others' share": (
        "bound",
        "max(self.prefetch, len(seat.held) + seat.waiting)",
        "len(seat.held) + seat.waiting",
    ),
    "poison is found one death too late": (
        "suspects",
        "deaths[sample] >= self.attempts",
        "deaths[sample] > self.attempts",
    ),
    "a batch that kills everywhere is never found": (
        "suspects",
        "if deaths.total() >=",
        "if deaths.total() < 0 and 0 >=",
    ),
    "one restart too many": (
        "budget",
        "self.restarts >= self.limits.max_restarts",
        "self.restarts > self.limits.max_restarts",
    ),
    "no back-off": ("budget", "if deaths <= AT_ONCE:", "if True:"),
    "a pause that never ends": ("machine", "if now >= self.restart_at:", "if False:"),
    "a crash loop goes on": ("budget", "return self.row >= self.limits.deaths_in_a_row", "return False"),
    "a completed batch does not end the row": (
        "machine",
        "seat.since = now\n        seat.deaths = self.budget.row = 0",
        "seat.since = now\n        seat.deaths = 0",
    ),
    "a pardon does not end the row": ("machine", "seat.deaths = self.budget.row = 0  #", "seat.deaths = 0  #"),
    "a failure is told once only": ("machine", "commands.append(self.failure or End())", "commands.append(End())"),
    "a new life replays too little": ("bound", "upto = seat.held[0] if seat.held else seat.slot", "upto = seat.slot"),
    "the turn does not pass over an ended stream": (
        "shelf",
        "                return\n            self.turn += 1",
        "                return\n            return",
    ),
    "a void result is kept": (
        "bound",
        "waste = [done for done in self.shelf.done if",
        "waste = [done for done in () if",
    ),
    "an ended stream is restarted": ("bound", "return bool(seat.held) or seat.end == NEVER", "return True"),
    "a worker takes work before its neighbour is up": (
        "free",
        "return None if home.fresh and",
        "return None if False and",
    ),
    # Epochs that go on in their middle
    "the turn begins with the first batch again": (
        "free",
        "self.shelf.open(self.first, self.drawn,",
        "self.shelf.open(self.first, self.first,",
    ),
    "the sampler's next batch is taken for the first": ("free", "self.drawn += epoch.start", "pass"),
    "numbers count from where the epoch goes on": (
        "free",
        "self.first, self.sampler_ended = self.drawn, False\n        self.drawn += epoch.start",
        "self.first = self.drawn = self.drawn + epoch.start\n        self.sampler_ended = False",
    ),
    "homes count from where the epoch goes on": (
        "free",
        "self.drawn += epoch.start",
        "self.drawn += epoch.start\n        self.seats = self.seats[epoch.start % len(self.seats) :] + self.seats\n"
        "        del self.seats[self.limits.seats :]",
    ),
    "a batch that was given is loaded again": ("free", "        if self.shelf.given:", "        if False:"),
    "a batch that was given is waited for": ("free", "            count = len(batches)\n", ""),
    "the turn waits for a batch that was given": (
        "shelf",
        "            if self.given:\n",
        "            if False:\n",
    ),
    "an epoch forgets what was given": (
        "free",
        "frozenset(self.first + batch for batch in epoch.done)",
        "frozenset()",
    ),
    "what was given is counted through epochs": (
        "free",
        "frozenset(self.first + batch for batch in epoch.done)",
        "epoch.done",
    ),
    "a stream goes on and its worker is not told": (
        "machine",
        "seat.start(self.schedule.skip(seat), fresh=True)",
        "seat.start(skip=0, fresh=True)",
    ),
    "a stream that goes on is asked for its first batch": (
        "bound",
        "self.first + seat.number + count * len(self.seats)",
        "self.first + seat.number",
    ),
    "streams are numbered from where the slowest goes on": (
        "bound",
        "        self.shelf.open(",
        "        self.first += min(epoch.given, default=0) * len(self.seats)\n        self.shelf.open(",
    ),
    "a worker is started for a stream that was over": (
        "machine",
        "            if not self.schedule.wants(seat):\n                seat.restart_at",
        "            if False:\n                seat.restart_at",
    ),
    "a pause outlives the stream": (
        "machine",
        "seat.restart_at = math.inf  # an earlier",
        "pass  # an earlier",
    ),
    "a stream that was over counts among those to end": (
        "bound",
        "0, len(self.seats) - len(epoch.ended)",
        "0, len(self.seats)",
    ),
    "a stream that was over is asked for more": (
        "bound",
        "seat.end = seat.slot if seat.number in epoch.ended else NEVER",
        "seat.end = NEVER",
    ),
    "the turn of streams begins with the first again": (
        "bound",
        "        self.shelf.pass_over()\n        return",
        "        return",
    ),
    "the turn waits for a stream that is further": (
        "shelf",
        "if seat.begin <= self.turn < seat.end:",
        "if self.turn < seat.end:",
    ),
    "the turn never comes to a stream that is far ahead": (
        "shelf",
        "        self.turn = min((seat.begin",
        "        _ = min((seat.begin",
    ),
}


def live_in_a_copy(folder: Path, walks: int, limits: str = "None") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", WALKS.format(walks=walks, limits=limits, folder=str(folder))]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60, check=False)


def copy_of_the_core(folder: Path) -> Path:
    (folder / "holdfast").mkdir()
    (folder / "holdfast" / "__init__.py").touch()  # a folder without it would give way to the installed package
    for room in ("_core", "testing"):
        shutil.copytree(SOURCE / room, folder / "holdfast" / room, ignore=shutil.ignore_patterns("__pycache__"))
    return folder


@pytest.mark.parametrize("bug", BUGS)
def test_a_planted_bug_is_caught(bug: str, tmp_path: Path):
    module, right, wrong = BUGS[bug]
    path = copy_of_the_core(tmp_path) / "holdfast" / "_core" / f"{module}.py"
    text = path.read_text()
    assert text.count(right) == 1, f"{bug}: the text to replace occurs {text.count(right)} times in {path.name}"
    path.write_text(text.replace(right, wrong))
    found = live_in_a_copy(tmp_path, walks=300, limits=WHERE.get(bug, "None"))
    assert found.returncode == 1, f"not caught: {bug}"
    assert "BrokenPromise" in found.stderr, f"{bug}: a crash, and no promise that was broken\n{found.stderr}"


def test_the_core_without_a_bug_passes_the_same_walks(tmp_path: Path):
    found = live_in_a_copy(copy_of_the_core(tmp_path), walks=200)
    assert found.returncode == 0, found.stderr
