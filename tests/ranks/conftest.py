"""Ranks that are new interpreters take minutes: they are for ``make torture``. In ``make test`` ranks are forked."""

from __future__ import annotations

from pathlib import Path

import pytest

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.parent == HERE and starts_interpreters(item):
            item.add_marker(pytest.mark.slow)


def starts_interpreters(item: pytest.Item) -> bool:
    """More than one: programs of `test_ends` are one already, and a zygote would be the second."""
    starts = set(item.callspec.id.split("-")) if hasattr(item, "callspec") else set()
    return "spawn" in starts or ("zygote" in starts and item.path.name == "test_ends.py")
