"""``DataLoader.restarts``, over the life of a loader."""

from __future__ import annotations

import copy
import gc
import pickle
import weakref

from samples import Plain

from holdfast import DataLoader
from holdfast.testing import DiesAt, Faulty


def test_restarts_add_up_over_epochs_and_outlive_the_iterator():
    dataset = Faulty(Plain(), DiesAt(2, once=True), DiesAt(20, once=True))
    loader = DataLoader(dataset, batch_size=4, num_workers=1, timeout=30)
    batches = iter(loader)
    next(batches)
    assert loader.restarts == 1
    gone = weakref.ref(batches)
    del batches
    gc.collect()
    assert gone() is None
    assert loader.restarts == 1
    list(loader)
    list(loader)
    assert loader.restarts == 2


def test_a_loader_can_be_copied_pickled_and_made_again_from_its_attributes():
    loader = DataLoader(Plain(), batch_size=4, num_workers=2)
    public = {name: value for name, value in vars(loader).items() if not name.startswith("_")}
    for name in ("sampler", "batch_sampler", "multiprocessing_context"):
        public.pop(name, None)
    for other in (copy.deepcopy(loader), pickle.loads(pickle.dumps(loader)), DataLoader(**public)):
        assert other.restarts == 0
        assert other.num_workers == 2
