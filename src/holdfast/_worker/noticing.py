"""What only a worker can see of a data set, in its first batches: told to the trainer once, which compares and warns.

The first items of a stream, as fingerprints: equal ones in two workers are a stream that nobody has divided. And the
random generators of the data set that were drawn from.
"""

from __future__ import annotations

from typing import Any

from torch.utils.data import IterDataPipe

from holdfast._transport.messages import Noticed
from holdfast.audit import generators

from .digests import fingerprint
from .job import Job, Post

ITEMS = 8  # of a stream: fewer are equal by chance too often, where there are few labels


class Noticing:
    """Owned by a worker until it has told. Made before ``worker_init_fn`` runs, which may seed generators."""

    def __init__(self, job: Job, post: Post) -> None:
        self._lists, self._tells_items = job.auto_collation, post.tells_items
        looks = post.tells_random and not isinstance(job.dataset, IterDataPipe)  # torch seeds those itself
        self._generators = generators.Watch(job.dataset) if looks else None
        self._items: list[int | None] = []

    def initialised(self) -> None:
        if self._generators is not None:
            self._generators.excuse_seeded()

    def begin(self) -> None:
        self._items.clear()

    def see(self, samples: Any) -> Noticed | None:
        """What there is to tell after this batch; None until all of it is known."""
        if self._tells_items:
            items = samples if self._lists else [samples]
            self._items += map(fingerprint, items[: ITEMS - len(self._items)])
            if len(self._items) < ITEMS:
                return None
        return self.all_seen()

    def all_seen(self) -> Noticed:
        drawn = self._generators.drawn() if self._generators is not None else []
        return Noticed(self._items, [(one.path, one.kind, one.start) for one in drawn])
