"""All contests and tables of faults, in the order in which they are held."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from bench.contest import Contest, FaultResult, FaultTable
from bench.contests import faults, files, growth, moments, own, pools, rates

# By the module that they stand in: each group is a file of results and a part of the report.
GROUPS: dict[str, list[Contest]] = {
    "rates": rates.CONTESTS,
    "files": files.CONTESTS,
    "moments": moments.CONTESTS,
    "growth": growth.CONTESTS,
    "faults": faults.CONTESTS,
    "pools": pools.CONTESTS,
    "own": own.CONTESTS,
}
# What the parts of the report are called; a group that is not here has its own name.
HEADINGS = {
    "rates": "Rates from memory",
    "files": "Rates from files",
    "moments": "Moments of waiting",
    "growth": "Growth",
    "faults": "Under faults",
    "pools": "Pools",
    "own": "The price of supervision",
}


@dataclass(frozen=True)
class Faults:
    """Where a table of faults comes from. `before`: the group of contests that wants to know what it found."""

    name: str
    title: str
    module: str
    before: str = ""

    def legend(self) -> FaultTable:
        module = self._module()
        return FaultTable(self.title, dict(getattr(module, "FAULTS", {})), dict(getattr(module, "OUTCOMES", {})))

    def run(self, quick: bool, only: frozenset[str] | None, directory: Path) -> Iterator[FaultResult]:
        module = self._module()
        yield from module.run(quick, only, directory) if self.before else module.run(quick, only)

    def _module(self) -> Any:
        return import_module(self.module)


FAULTS = (
    Faults("loader-faults", "loaders", "bench.faults", before="faults"),
    Faults("pool-faults", "pools", "bench.pools.faults"),
)


def contests() -> list[Contest]:
    return [contest for group in GROUPS.values() for contest in group]
