"""Importing holdfast is cheap, and brings in nothing that it does not need."""

from __future__ import annotations

import subprocess
import sys


def modules_after(code: str) -> set[str]:
    program = f"import sys\n{code}\nprint(*sys.modules)"
    return set(
        subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    )


def test_the_package_alone_does_not_import_torch():
    assert "torch" not in modules_after("import holdfast, holdfast._core.machine, holdfast.testing")


def test_the_loader_does_not_import_what_only_other_starts_need():
    added = modules_after("from holdfast import DataLoader") - modules_after("import torch.utils.data")
    assert not added & {
        "holdfast._engine.threads",
        "holdfast._engine.forking",
        "holdfast._system.standby",
        "rich",
        "typer",
    }


def test_an_unknown_name_is_an_attribute_error_and_every_public_one_is_there():
    import holdfast

    assert all(hasattr(holdfast, name) for name in holdfast.__all__)
    assert not hasattr(holdfast, "Loader")


def test_no_collection_goes_through_what_our_imports_make_and_the_collector_is_left_as_it_was():
    """One of all objects would be due by then: with torch's to look at it takes longer than the import."""
    program = """
import gc
import torch
gc.set_threshold(100, 10, 10)
begun = []
gc.callbacks.append(lambda phase, info: begun.append(phase))
from holdfast import DataLoader, Pool
print(begun.count("start"), gc.get_threshold())
"""
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    count, _, thresholds = ran.stdout.partition(" ")
    assert int(count) < 20  # on the way in and out; else hundreds
    assert thresholds.strip() == "(100, 10, 10)"
