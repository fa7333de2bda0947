"""What a loader remembers from one epoch to the next: where its random numbers come from, and how far it is."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from copy import copy
from typing import Any, NamedTuple

import torch
from torch.utils.data import IterDataPipe, RandomSampler
from torch.utils.data.dataloader import _get_distributed_settings

from holdfast._core.mixing import mix
from holdfast._engine.draws import Draws
from holdfast._engine.streams import History
from holdfast._engine.trail import Trail
from holdfast._transport.messages import Begin
from holdfast.sampling.distributed import DistributedSampler
from holdfast.sampling.generators import is_fresh, unmoved
from holdfast.sampling.sources import Source, kind, shape
from holdfast.sampling.springs import Origin, Spring, draw

from .moment import Moments

_RANKS = 0x0D157B  # seeds of epochs from the seed of a sampler that all ranks share
_NO_ORDER = Origin(0)


class Epoch(NamedTuple):
    """Its number, and all that is random in it: the seed of its batches, and of its order."""

    number: int
    seed: int
    order: Origin = _NO_ORDER
    shared: int | None = None  # torch's, of data pipes


class Progress:
    """How far an epoch is. ``over``: the user was told that it has ended."""

    def __init__(
        self,
        epoch: Epoch,
        draws: Draws,
        *,
        source: Source | None = None,
        trail: Trail | None = None,
        before: int = 0,
        histories: tuple[History, ...] = (),
        ahead: Callable[[], int] = lambda: 0,
    ) -> None:
        self.ahead = ahead  # how many samples were left out of batches that are not delivered
        self.epoch, self.draws, self.source, self.trail = epoch, draws, source, trail
        self.before = before  # batches of streams that were given with another number of workers
        self.histories = histories  # of streams, from an earlier run
        self.over = False

    @property
    def given(self) -> int:
        """Batches of this epoch; those of an earlier run, too."""
        return self.before + sum(self.trail.given) if self.trail is not None else self.draws.position[0]

    def told(self) -> Begin:
        """The epoch as workers are told of it."""
        stride, shift = (self.source.stride, self.source.shift) if self.source is not None else (1, self.before)
        return Begin(0, self.epoch.seed, self.epoch.shared, stride=stride, shift=shift)


    def moments(self) -> Moments | None:
        """By which its batches can be had again; those of streams cannot."""
        if self.source is None:
            return None
        epoch, source = self.epoch, self.source
        return Moments(epoch.number, epoch.seed, epoch.order, source.stride, source.shift)


class Run:
    """Owned by the loader."""

    def __init__(self) -> None:
        self.epochs = 0  # the number of the next one
        self.progress: Progress | None = None  # of the latest one
        self.loaded: dict[str, Any] | None = None  # a state to begin with
        self.iterator: Callable[[], Any] = _nobody  # the latest one, if it is there
        self._springs: dict[str, Spring] = {}
        self._prepared: Epoch | None = None
        self._before: dict[str, Spring] = {}  # as they were when that was prepared
        self._noted: dict[str, tuple[int, torch.Tensor]] = {}  # the generators: their seeds and states, then

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"progress": None, "iterator": _nobody}  # a copy begins with an epoch of its own

    def load(self, loader: Any, state: dict[str, Any] | None) -> None:
        """Begin the next epoch with this state."""
        self._forget_prepared()
        self.loaded = state
        self._note(loader)

    def attend(self, loader: Any) -> None:
        """An epoch is about to begin: was anything seeded anew since the last one, or since this one was settled?"""
        state = self.loaded
        settled = state is not None and (state["batch"] > 0 or not self._seeded_since(loader))
        if state is not None:
            self._springs = {name: Spring.of(saved) for name, saved in state["springs"].items()}
        elif self._prepared is not None:
            settled = not self._seeded_since(loader)
            if not settled:
                self._forget_prepared()
        for name, generator in _generators(loader).items():
            self._springs.setdefault(name, Spring()).attend(generator, resumed=settled)

    def _note(self, loader: Any) -> None:
        """The generators as they are now, when the next epoch is settled."""
        self._noted = {name: (one.initial_seed(), one.get_state()) for name, one in _generators(loader).items()}

    def _seeded_since(self, loader: Any) -> bool:
        for name, generator in _generators(loader).items():
            seed, state = self._noted.get(name, (None, None))
            if generator.initial_seed() != seed:
                return True
            if state is not None and is_fresh(generator) and not torch.equal(generator.get_state(), state):
                return True
        return False

    def _forget_prepared(self) -> None:
        if self._prepared is not None:
            self._springs, self._prepared = self._before, None

    def begin(self, loader: Any, base: int | None, shared: int | None) -> Epoch:
        """The next epoch. ``base`` and ``shared``: what torch has drawn for it from the loader's generator."""
        prepared, self._prepared = self._prepared, None
        if self.loaded is not None and not self._is_other_epoch(loader, self.loaded):
            epoch = _loaded(self.loaded)
        elif prepared is not None and _generators(loader):
            epoch = prepared
        else:
            epoch = self._drawn(loader, base, shared)
        for generator in _generators(loader).values():
            if is_fresh(generator):
                draw(generator)  # or it would look, next time, as if it had been seeded once more
        self.epochs = epoch.number + 1
        return epoch

    def prepare(self, loader: Any) -> Epoch:
        """What the next epoch will be, if nothing is seeded anew before it begins. Nobody's generator moves by that."""
        if self._prepared is not None and self._seeded_since(loader):
            self._forget_prepared()
        if self._prepared is None:
            self._before = {name: copy(spring) for name, spring in self._springs.items()}
            self._note(loader)
            with unmoved(_generators(loader).values()):
                self.attend(loader)
                epoch = self._drawn(loader, None, None)
            last = self.progress
            if not _generators(loader) and last is not None and last.epoch.number == epoch.number:
                epoch = epoch._replace(number=epoch.number + 1)  # for which set_epoch is still to be called
            self._prepared = epoch
        return self._prepared

    def unmoved(self, loader: Any) -> AbstractContextManager[None]:
        """While an epoch is begun of which a part was given: its numbers were drawn then, not now.

        A generator that nobody has drawn from moves all the same, or it would look as if it were seeded once more.
        """
        if self.loaded is None or not self.loaded["batch"]:
            return nullcontext()
        own = loader.generator if loader.generator is not None else torch.default_generator
        return unmoved(one for one in {own, *_generators(loader).values()} if not is_fresh(one))

    def springs(self, loader: Any) -> dict[str, list[int]]:
        return {name: self._springs[name].saved() for name in _generators(loader)}

    def _is_other_epoch(self, loader: Any, state: dict[str, Any]) -> bool:
        """A state between epochs knows the next one; unless the user says otherwise by a seed, or ``set_epoch``."""
        if state["batch"]:
            return False
        self.epochs = state["epoch"]
        return _counts_itself(loader) or any(spring.is_new for spring in self._springs.values())

    def _drawn(self, loader: Any, base: int | None, shared: int | None) -> Epoch:
        sampler = shape(loader._index_sampler).sampler
        generator = _generators(loader).get("loader")
        if generator is None:
            number = sampler.epoch if sampler.epoch_is_set else self.epochs
            return Epoch(number, mix(sampler.seed ^ _RANKS, number))
        spring = self._springs["loader"]
        if shared is not None:
            spring.draw(generator, shared)
        elif isinstance(loader.dataset, IterDataPipe) and base is None and _get_distributed_settings()[0] == 1:
            shared = spring.draw(generator)  # of ranks, all have the same one, which nobody can know ahead
        seed = spring.draw(generator, base)
        return Epoch(self.epochs, seed, self._order(loader, sampler), shared)

    def _order(self, loader: Any, sampler: Any) -> Origin:
        generators = _generators(loader)
        if loader._is_iterable or kind(sampler) == "sequential":
            return _NO_ORDER
        name = "sampler" if "sampler" in generators else "loader"
        spring, generator = self._springs[name], generators[name]
        if type(sampler) is RandomSampler and sampler.generator is None:
            return Origin(spring.draw(generator, draw(generator)))  # as torch does: a number from the trainer's, always
        if spring.fresh is None:
            return Origin(spring.draw(generator))
        return spring.here


def keeps_data_set(loader: Any) -> bool:
    """New workers have a new copy of the data set; those that stay, and the trainer, go on with the one they have."""
    return loader.persistent_workers or not loader.num_workers


def _nobody() -> None: ...


def _counts_itself(loader: Any) -> bool:
    """Whether the user says which epoch begins, by ``set_epoch``."""
    sampler = shape(loader._index_sampler).sampler
    return isinstance(sampler, DistributedSampler) and loader.generator is None and sampler.epoch_is_set


def _loaded(state: dict[str, Any]) -> Epoch:
    return Epoch(state["epoch"], state["seed"], Origin(*state["order"]), state.get("shared_seed"))


def _generators(loader: Any) -> dict[str, torch.Generator]:
    """From which generators the numbers of its epochs come. The loader's own may be the sampler's as well.

    Of our sampler of ranks none, unless the user gives one: its seed is the same on all of them, and so is the state.
    """
    sampler = shape(loader._index_sampler).sampler
    if isinstance(sampler, DistributedSampler) and loader.generator is None:
        return {}
    common = torch.default_generator
    main = loader.generator if loader.generator is not None else common
    own = getattr(sampler, "generator", None)
    if loader._is_iterable or kind(sampler) == "sequential" or (own is not None and type(sampler) is not RandomSampler):
        return {"loader": main}  # there is no order to draw, or the sampler draws it itself
    order = own if own is not None else common
    return {"loader": main} if order is main else {"loader": main, "sampler": order}
