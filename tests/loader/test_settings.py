"""What a fork would have inherited reaches workers that are no forks of the trainer."""

from __future__ import annotations

import warnings

import numpy
import pytest
import torch
from PIL import ImageFile

from holdfast import DataLoader


class Asks:
    """Samples that tell what the worker's process is set to."""

    def __len__(self) -> int:
        return 2

    def __getitem__(self, index: int) -> list[object]:
        with warnings.catch_warnings(record=True) as heard:
            warnings.warn("of the data set", UserWarning, stacklevel=1)
        return [
            str(torch.zeros(1).dtype),
            torch.is_grad_enabled(),
            torch.are_deterministic_algorithms_enabled(),
            numpy.geterr()["over"],
            ImageFile.LOAD_TRUNCATED_IMAGES,
            len(heard),
        ]


@pytest.fixture
def unusual(monkeypatch):
    """Every setting is another one than a new process has."""
    monkeypatch.setattr(ImageFile, "LOAD_TRUNCATED_IMAGES", True)
    torch.set_default_dtype(torch.float64)
    torch.use_deterministic_algorithms(True)
    with warnings.catch_warnings(), numpy.errstate(over="ignore"), torch.no_grad():
        warnings.filterwarnings("ignore", message="of the data set")
        yield
    torch.use_deterministic_algorithms(False)
    torch.set_default_dtype(torch.float32)


@pytest.mark.parametrize("start", ["zygote", "fork", "spawn", "standby"])
def test_settings_of_the_trainer_hold_in_its_workers(unusual, start):
    loader = DataLoader(Asks(), batch_size=None, num_workers=1, start=start)
    assert list(loader) == [["torch.float64", False, True, "ignore", True, 0]] * 2


def test_a_new_process_would_not_have_them():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        first, _ = DataLoader(Asks(), batch_size=None, num_workers=1)
    assert first[:5] == ["torch.float32", True, False, "warn", False]
