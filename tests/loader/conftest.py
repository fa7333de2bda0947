"""Small data sets."""

from __future__ import annotations

import pytest
from small_datasets import Squares, Stream


@pytest.fixture
def squares() -> Squares:
    return Squares()


@pytest.fixture
def stream() -> Stream:
    return Stream()
