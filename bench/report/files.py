"""Results as files: ``<group>.json``, ``faults-met.json`` and ``machine.json`` in one directory."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from bench.contest import FaultResult, FaultTable, Outcome, outcome_from

MACHINE, FATES = "machine.json", "faults-met.json"


@dataclass
class Results:
    """All of a directory. `held` tells for each contest, by its name, when it was and how long it took."""

    machine: dict[str, Any] = field(default_factory=dict)
    groups: dict[str, list[Outcome]] = field(default_factory=dict)
    fates: dict[str, FaultTable] = field(default_factory=dict)
    held: dict[str, dict[str, Any]] = field(default_factory=dict)

    @property
    def outcomes(self) -> list[Outcome]:
        return [outcome for group in self.groups.values() for outcome in group]

    def put(self, group: str, outcome: Outcome, held: dict[str, Any]) -> None:
        """In the place of an earlier one of its name, else at the end."""
        outcomes, name = self.groups.setdefault(group, []), outcome.contest.name
        self.held[name] = held
        for place, one in enumerate(outcomes):
            if one.contest.name == name:
                outcomes[place] = outcome
                return
        outcomes.append(outcome)


def write(directory: Path, results: Results) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    _write(directory / MACHINE, results.machine)
    for group, outcomes in results.groups.items():
        contests = [{**one.as_dict(), "held": results.held.get(one.contest.name, {})} for one in outcomes]
        _write(directory / f"{group}.json", {"contests": contests})
    if results.fates:
        _write(directory / FATES, {name: asdict(table) for name, table in results.fates.items()})


def read(directory: Path, order: Iterable[str] = ()) -> Results:
    """What is there; groups in the given order first."""
    results = Results()
    if (directory / MACHINE).is_file():
        results.machine = json.loads((directory / MACHINE).read_text())
    if (directory / FATES).is_file():
        for name, facts in json.loads((directory / FATES).read_text()).items():
            met = [FaultResult(**one) for one in facts["results"]]
            results.fates[name] = FaultTable(**{**facts, "results": met})
    found = {path.stem: path for path in sorted(directory.glob("*.json")) if path.name not in (MACHINE, FATES)}
    for group in [*(name for name in order if name in found), *(name for name in found if name not in list(order))]:
        for facts in json.loads(found[group].read_text())["contests"]:
            results.put(group, outcome_from(facts), facts.get("held", {}))
    return results


def remove_others(directory: Path, results: Results) -> None:
    """Files of groups that there are no longer."""
    keep = {MACHINE, *(f"{group}.json" for group in results.groups), *([FATES] if results.fates else [])}
    for path in directory.glob("*.json"):
        if path.name not in keep:
            path.unlink()


def _write(path: Path, content: Any) -> None:
    path.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n")
