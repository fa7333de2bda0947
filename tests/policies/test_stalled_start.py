"""A worker that does not get ready: there is no sample to leave out, but it can be tried again."""

from __future__ import annotations

import threading

import pytest

from holdfast import DataLoader, Retry, WorkerStalled
from holdfast.testing import Once


def hangs_once(once: Once):
    def init(_: int) -> None:
        if once.first():
            threading.Event().wait()

    return init


def test_a_worker_that_stalls_while_it_starts_is_tried_again():
    init, policy = hangs_once(Once()), Retry(1, on=WorkerStalled)
    loader = DataLoader(range(8), num_workers=1, worker_init_fn=init, stall_timeout=0.5, on_error=policy)
    assert [int(batch) for batch in loader] == list(range(8))
    (fault,) = loader.faults
    assert (fault.kind, fault.batch, fault.action, loader.restarts) == ("stall", None, "tried again", 1)


@pytest.mark.parametrize("on_error", ["raise", "skip"])
def test_and_else_raised_with_what_it_was_doing(on_error):
    init = hangs_once(Once())
    loader = DataLoader(range(8), num_workers=1, worker_init_fn=init, stall_timeout=0.5, on_error=on_error)
    with pytest.raises(WorkerStalled, match="while running worker_init_fn"):
        next(iter(loader))
