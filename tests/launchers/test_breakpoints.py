"""A breakpoint in a worker is a prompt in the trainer, however the worker was started."""

from __future__ import annotations

import builtins

import pytest
from samples import SAMPLES, Plain
from test_every_start import STARTS

from holdfast import DataLoader


class Halts(Plain):
    def __getitem__(self, index):
        if index == 5:
            breakpoint()  # this is what is tested
        return super().__getitem__(index)


@pytest.mark.parametrize("start", STARTS)
def test_a_worker_that_stops_is_talked_to(start, monkeypatch, capsys):
    answers = iter(["p index * 111", "c"])
    monkeypatch.setattr(builtins, "input", lambda prompt: next(answers))  # as a notebook does
    batches = list(DataLoader(Halts(), batch_size=4, num_workers=1, start=start))
    assert sum(len(batch) for batch in batches) == SAMPLES
    assert "\n555\n" in capsys.readouterr().out
