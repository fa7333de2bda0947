"""Both ends of the transport."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from carrier import Carrier


@pytest.fixture
def carry() -> Iterator[Carrier]:
    carrier = Carrier()
    yield carrier
    carrier.close()
