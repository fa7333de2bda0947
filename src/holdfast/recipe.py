"""``per_worker``: a recipe that each worker follows once in its life, for what should not be inherited or pickled."""

from __future__ import annotations

import inspect
import itertools
import reprlib
import typing
import weakref
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple, TypeVar, cast

from torch.utils.data import IterableDataset

from ._worker import life
from ._worker.info import get_worker_info
from ._worker.life import unwrap

__all__ = ["look_into", "per_worker", "unwrap"]

T = TypeVar("T")
_keys = itertools.count()


def per_worker(
    factory: Callable[..., T],
    *args: Any,
    close: Callable[[T], object] | None = None,
    length: int | None = None,
    iterable: bool | None = None,
    **kwargs: Any,
) -> T:
    """Stands for ``factory(*args, **kwargs)``, made by each worker for itself: on first use, once in its life.

    For handles that must not be shared or cannot be pickled, and for a whole data set, of which then only the recipe
    travels::

        self.file = per_worker(open, path, "rb")
        loader = DataLoader(per_worker(ImageFolder, root), num_workers=8)

    It is used like the thing itself: attributes, calls, indexing, iteration, ``len``, ``in``, ``with``. For operators
    and other special methods there is the thing itself, ``holdfast.recipe.unwrap(it)``. A worker is a process, a fork
    too, or a worker thread; the trainer has its own as well, if it uses it. A copy or a pickle is the recipe.

    Args:
        close: how to close it at the end of the worker's life; its ``close()`` if it has one. A worker that is killed
            closes nothing.
        length: of a data set, so that the trainer need not make one to know it. Else one is made, asked, and closed.
        iterable: whether it is an ``IterableDataset``. Told by the factory if that is a class, or a function that says
            so in its annotation; else holdfast's loader makes one to see, and torch's takes it for map-style.
    """
    _refuse_options_of(factory, close=close, length=length, iterable=iterable)
    if iterable is None:
        iterable = _gives_iterable(factory)
    if iterable is None and length is not None:
        iterable = False
    return cast(T, _stand_in(Recipe(factory, args, kwargs, close, length, iterable)))


def look_into(dataset: object) -> None:
    """For a loader, before it asks: find out whether a ``per_worker`` is iterable, if its recipe does not say."""
    if isinstance(dataset, PerWorker) and dataset._holdfast.recipe.iterable is None:
        maker = dataset._holdfast
        maker.recipe = maker.recipe._replace(iterable=maker.look().iterable)
        object.__setattr__(dataset, "__class__", _kind(maker.recipe))


class Recipe(NamedTuple):
    """How to make it, and what was said of it. All that travels."""

    factory: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    close: Callable[[Any], object] | None
    length: int | None
    iterable: bool | None

    def make(self) -> Any:
        try:
            return self.factory(*self.args, **self.kwargs)
        except Exception as error:
            from ._transport.faults import add_note

            add_note(error, f"in {self}")
            raise

    def shut(self, it: Any) -> None:
        if self.close is not None:
            self.close(it)
        elif callable(close := getattr(it, "close", None)):
            close()

    def __str__(self) -> str:
        said = [_name(self.factory), *map(reprlib.repr, self.args)]
        said += [f"{name}={reprlib.repr(value)}" for name, value in self.kwargs.items()]
        return f"per_worker({', '.join(said)})"


class Seen(NamedTuple):
    """What a data set is, seen in one that was closed again."""

    iterable: bool
    length: int | None


class Maker:
    """Follows the recipe, once in each life. What it made belongs to that life, and is closed when the maker goes."""

    def __init__(self, recipe: Recipe) -> None:
        self.recipe = recipe
        self._key = next(_keys)
        self._seen: Seen | None = None

    def own(self) -> Any:
        """The thing itself, in this life."""
        try:
            return life.current().made[self._key]
        except KeyError:
            return self._make(life.current())

    def _make(self, here: life.Life) -> Any:
        with here.lock(self._key):  # several threads may use it first
            if self._key not in here.made:
                it = self.recipe.make()
                ending = weakref.finalize(self, here.let_go, self._key)
                ending.atexit = False  # a life knows its end better
                life.at_end(partial(_close, ending, self.recipe, it), self._key)
                here.made[self._key] = it
            return here.made[self._key]

    def look(self) -> Seen:
        """Make one, see what it is, close it: the trainer has no other use for it."""
        if self._seen is None:
            it = self.recipe.make()
            try:
                self._seen = Seen(isinstance(it, IterableDataset), _length(it))
            finally:
                self.recipe.shut(it)
        return self._seen

    def length(self) -> int:
        recipe = self.recipe
        if recipe.length is not None:
            return recipe.length
        if get_worker_info() is not None or self._key in life.current().made:
            return len(self.own())
        if isinstance(recipe.factory, type) and not hasattr(recipe.factory, "__len__"):
            raise TypeError(f"object of type {_name(recipe.factory)!r} has no len()")  # without making one: list() asks
        seen = self.look()
        if seen.iterable and not recipe.iterable:
            raise TypeError(f"{recipe} is an IterableDataset: say so by per_worker(..., iterable=True)")
        if seen.length is None:
            raise TypeError(f"what {recipe} makes has no len()")
        return seen.length


class PerWorker:
    """Stands for the thing: all that is asked of it is asked of the one of this life. Has no other names than these,
    so that the thing's own can be reached."""

    _holdfast: Maker

    def __init__(self, recipe: Recipe) -> None:
        object.__setattr__(self, "_holdfast", Maker(recipe))

    def _holdfast_own(self) -> Any:
        return self._holdfast.own()

    def __reduce__(self) -> Any:
        return _stand_in, (self._holdfast.recipe,)

    def __repr__(self) -> str:
        return str(self._holdfast.recipe)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name != "__getitems__":  # copy, inspect and their kind look for these everywhere
            raise AttributeError(f"{self} has no attribute {name!r}")
        return getattr(self._holdfast.own(), name)

    def __setattr__(self, name: str, value: Any) -> None:
        if get_worker_info() is None:
            raise AttributeError(
                f"{name!r} would be set in the trainer only, as each worker makes its own {self}: set it in the "
                "factory or in worker_init_fn"
            )
        setattr(self._holdfast.own(), name, value)

    def __len__(self) -> int:
        return self._holdfast.length()

    def __bool__(self) -> bool:
        return bool(self._holdfast.own())

    def __getitem__(self, index: Any) -> Any:
        return self._holdfast.own()[index]

    def __setitem__(self, index: Any, value: Any) -> None:
        self._holdfast.own()[index] = value

    def __delitem__(self, index: Any) -> None:
        del self._holdfast.own()[index]

    def __contains__(self, value: Any) -> bool:
        return value in self._holdfast.own()

    def __iter__(self) -> Iterator[Any]:
        return iter(self._holdfast.own())

    def __next__(self) -> Any:
        return next(self._holdfast.own())

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._holdfast.own()(*args, **kwargs)

    def __enter__(self) -> Any:
        return self._holdfast.own().__enter__()

    def __exit__(self, *error: Any) -> Any:
        return self._holdfast.own().__exit__(*error)


class IterablePerWorker(PerWorker, IterableDataset[Any]):
    """The same for an iterable data set: loaders tell the two kinds apart by their class."""


def _kind(recipe: Recipe) -> type[PerWorker]:
    return IterablePerWorker if recipe.iterable else PerWorker


def _stand_in(recipe: Recipe) -> PerWorker:
    return _kind(recipe)(recipe)


def _close(ending: Any, recipe: Recipe, it: Any) -> None:
    ending.detach()
    recipe.shut(it)


def _length(it: Any) -> int | None:
    try:
        return len(it)
    except (TypeError, NotImplementedError):
        return None


def _gives_iterable(factory: Any) -> bool | None:
    """None: it does not say."""
    if isinstance(factory, partial):
        return _gives_iterable(factory.func)
    if not isinstance(factory, type):
        try:
            factory = typing.get_type_hints(factory).get("return")
        except Exception:  # annotations that name what is not there
            return None
        factory = typing.get_origin(factory) or factory
    return issubclass(factory, IterableDataset) if isinstance(factory, type) else None


def _refuse_options_of(factory: Callable[..., Any], **options: Any) -> None:
    """An argument that the factory takes too would be taken from it, silently."""
    try:
        parameters = inspect.signature(factory).parameters
    except (TypeError, ValueError):  # written in C, and does not say
        return
    for name, value in options.items():
        if value is not None and name in parameters:
            raise ValueError(
                f"{name}= is an option of per_worker, and an argument of {_name(factory)} as well: give it to the "
                f"factory by functools.partial(factory, {name}={value!r})"
            )


def _name(factory: Any) -> str:
    return getattr(factory, "__qualname__", None) or repr(factory)
