"""What one rank does, as a program for torchrun: it is dealt samples in many ways, and writes down all of it.

    torchrun … dealt.py FOLDER STATES

FOLDER gets a file of what this rank was given; STATES, if it is a folder, has states that ranks of another run saved.
Each step ends with a collective, so that ranks with different numbers of steps would hang.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import torch
import torch.distributed as dist
from torch.utils.data import Dataset

from holdfast import DataLoader, DistributedSampler


class Case(NamedTuple):
    """One way to deal."""

    size: int
    batch_size: int
    tail: str
    shuffle: bool = True
    workers: int = 0
    sets_epoch: bool = False
    drop_last: bool = False

    @property
    def name(self) -> str:
        return " ".join(map(str, self))


CASES = {
    case.name: case
    for case in (
        Case(61, 4, "exact"),
        Case(61, 4, "pad"),
        Case(61, 4, "drop"),
        Case(61, 4, "exact", sets_epoch=True),
        Case(61, 4, "exact", shuffle=False),
        Case(61, 4, "pad", drop_last=True),
        Case(60, 1, "exact"),
        Case(3, 2, "exact"),
    )
}
WORKERS = Case(49, 4, "exact", workers=1)  # in the smallest run only: each rank starts processes of its own
EPOCHS = 2
LEG = 2  # steps that each of the runs gives of the epoch that all of them share
RELAY = Case(61, 3, "exact")


class Numbers(Dataset):
    def __init__(self, size: int) -> None:
        self.size = size

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, index: int) -> tuple[int, float]:
        return index, torch.rand((), dtype=torch.float64).item()


def loader_of(case: Case) -> DataLoader:
    data = Numbers(case.size)
    sampler = DistributedSampler(data, shuffle=case.shuffle, seed=7, tail=case.tail)  # type: ignore[arg-type]
    return DataLoader(data, case.batch_size, sampler=sampler, num_workers=case.workers, drop_last=case.drop_last)


def steps(loader: DataLoader) -> Iterator[dict[str, Any]]:
    """What is given in each step, with the state after it. All ranks have a batch, or none has."""
    for indices, noise in loader:
        total = torch.tensor(len(indices))
        dist.all_reduce(total)
        yield {
            "indices": indices.tolist(),
            "noise": noise.tolist(),
            "total": int(total),
            "state": loader.state_dict(),
        }
    dist.barrier()


def given(case: Case) -> Any:
    """Whole epochs; or the error, which all ranks have to get."""
    try:
        loader = loader_of(case)
    except ValueError as error:
        return str(error)
    epochs = []
    for epoch in range(EPOCHS):
        if case.sets_epoch:
            loader.sampler.set_epoch(epoch)  # type: ignore[attr-defined]
        epochs.append(list(steps(loader)))
    return {"length": len(loader), "epochs": epochs, "between": loader.state_dict()}


def gone_on(case: Case, state: dict[str, Any]) -> Any:
    """The rest of the epoch of that state; or the error."""
    try:
        loader = loader_of(case)
        loader.load_state_dict(state)
        if case.sets_epoch:
            loader.sampler.set_epoch(state["epoch"])  # type: ignore[attr-defined]
        return list(steps(loader))
    except ValueError as error:
        return str(error)


def relay(state: dict[str, Any] | None) -> list[dict[str, Any]]:
    """A few steps of one epoch that goes on from run to run; alone, all that is left."""
    loader = loader_of(RELAY)
    if state is not None:
        loader.load_state_dict(state)
    leg = []
    for step in steps(loader):
        leg.append(step)
        if len(leg) == LEG and dist.get_world_size() > 1:
            break
    return leg


def main() -> None:
    folder, states = Path(sys.argv[1]), Path(sys.argv[2])
    dist.init_process_group("gloo")
    torch.manual_seed(1000 + dist.get_rank())  # as many people do: it is of no account
    cases = CASES | ({WORKERS.name: WORKERS} if dist.get_world_size() == 2 else {})
    whole = {name: given(case) for name, case in cases.items()}
    own = {name: states_of(told) for name, told in whole.items()}
    saved = json.loads(states.read_text()) if states.exists() else {"cases": {}, "relay": None}
    found = {
        "whole": whole,
        "again": {name: [gone_on(cases[name], state) for state in of_case] for name, of_case in own.items()},
        "rest": {name: [gone_on(CASES[name], state) for state in of_case] for name, of_case in saved["cases"].items()},
        "relay": relay(saved["relay"]),
    }
    folder.mkdir(exist_ok=True)
    (folder / f"rank-{dist.get_rank()}.json").write_text(json.dumps(found))
    dist.destroy_process_group()


def states_of(told: Any) -> list[dict[str, Any]]:
    """Those after each step of the last epoch."""
    return [step["state"] for step in told["epochs"][-1]] if isinstance(told, dict) else []


if __name__ == "__main__":
    main()
