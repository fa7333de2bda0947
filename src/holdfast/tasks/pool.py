"""``Pool``: ``multiprocessing.Pool`` that holds."""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType, TracebackType
from typing import Any, TypeVar

from typing_extensions import Self

from holdfast._system.process import Process
from holdfast.ledger import Ledger
from holdfast.policies import Policy

from .kits import Kit
from .making import check_owner, checked, default_seats, make
from .progress import Shown, length_of, show
from .results import AsyncResult, Ended
from .streaming import Stream
from .turns import Turns
from .works import Works

R = TypeVar("R")
NOTHING: Mapping[str, Any] = MappingProxyType({})
AHEAD = 4  # chunks of an ``imap`` on the way, for each worker
CHUNKS = 4  # of a ``map``, for each worker
SHORT = 0.001  # seconds that a chunk should take at least


class Pool:
    """Processes that call functions for you. Change the import, keep the code.

    A worker that dies takes only the call with it that it was making: that one is tried again (``retries``), or fails
    with the reason; all others go on. Arrays and tensors travel through shared memory. Nothing hangs.

    ::

        with Pool(8, retries=1, task_timeout=60) as pool:
            for thumbnail in pool.imap(make_thumbnail, paths):
                ...
        print(pool.faults)

    Args:
        processes: how many; as many as this process may use at once.
        initializer, initargs: called by each worker when it starts.
        maxtasksperchild: tasks after which a worker is replaced by a new one.
        context: of ``multiprocessing``; its start method is used.
        start: how workers are started, as for `DataLoader`.
        task_timeout: seconds that a call may take. One that takes longer is stopped by an exception, or with its worker
            where that does not help, and fails with `TaskTimeout`.
        retries: how many times a call is tried again after its worker died, and how many times after it raised; or a
            policy, such as ``Retry(3, on=OSError)``.
        seed: each call has random numbers that follow from this and its number, for any number of workers. By default
            of torch's seed. False: random state is left as it is.
        max_shared_memory: bytes that arguments and results may take on their way.
    """

    def __init__(
        self,
        processes: int | None = None,
        initializer: Callable[..., object] | None = None,
        initargs: Iterable[Any] = (),
        maxtasksperchild: int | None = None,
        context: Any = None,
        *,
        start: str = "auto",
        task_timeout: float | None = None,
        retries: int | Policy = 0,
        seed: int | bool | None = None,
        max_shared_memory: int | None = None,
    ) -> None:
        seats = default_seats() if processes is None else processes
        if seats < 1:
            raise ValueError("Number of processes must be at least 1")
        if not (maxtasksperchild is None or (type(maxtasksperchild) is int and maxtasksperchild > 0)):
            raise ValueError("maxtasksperchild must be a positive int or None")
        if initializer is not None and not callable(initializer):
            raise TypeError("initializer must be a callable")
        self.faults = Ledger()
        self.task_timeout = checked(task_timeout)
        self._seats = seats
        self._works, self._turns = make(
            seats,
            start,
            context,
            initializer,
            tuple(initargs),
            maxtasksperchild,
            retries,
            seed,
            max_shared_memory,
            self.faults,
        )
        self._finalizer = weakref.finalize(self, _dropped, self._works, self._turns)
        self._finalizer.atexit = False  # the works end with the interpreter by themselves
        self._streams: weakref.WeakSet[Stream] = weakref.WeakSet()
        self._works.open(at_once=initializer is not None)  # it may do something that is waited for

    @property
    def processes(self) -> list[Process]:
        """The workers' processes, by seat."""
        return self._works.processes

    # -- one call ------------------------------------------------------------------------------

    def apply(
        self,
        func: Callable[..., R],
        args: Sequence[Any] = (),
        kwds: Mapping[str, Any] = NOTHING,
        *,
        timeout: float | None = None,
    ) -> R:
        """``func(*args, **kwds)`` in a worker. ``timeout``: in place of the pool's ``task_timeout``."""
        result: R = self._submit(func, [(tuple(args), dict(kwds))], "call", 1, timeout).get()
        return result

    def apply_async(
        self,
        func: Callable[..., Any],
        args: Sequence[Any] = (),
        kwds: Mapping[str, Any] = NOTHING,
        callback: Callable[[Any], object] | None = None,
        error_callback: Callable[[BaseException], object] | None = None,
        *,
        timeout: float | None = None,
    ) -> AsyncResult:
        """The same, without waiting. A callback is called in another thread, and should be quick."""
        items = [(tuple(args), dict(kwds))]
        return self._submit(func, items, "call", 1, timeout, None, (callback, error_callback), background=True)

    # -- many ----------------------------------------------------------------------------------

    def map(
        self,
        func: Callable[..., R],
        iterable: Iterable[Any],
        chunksize: int | None = None,
        *,
        resource: Callable[[], Any] | None = None,
        progress: bool = False,
        timeout: float | None = None,
    ) -> list[R]:
        """``list(map(func, iterable))`` in the workers. All calls are made; then the first error, if any, is raised.

        Args:
            chunksize: items that a worker is given at a time.
            resource: a function that makes what each worker needs once in its life, or a `per_worker`. ``func`` is then
                called with it and the item. What has a ``close`` is closed at the end of that life.
            progress: show a bar, where there is a terminal.
            timeout: for each call, in place of the pool's ``task_timeout``.
        """
        return self._mapped(func, iterable, "map", chunksize, timeout, resource, progress)

    def starmap(
        self,
        func: Callable[..., R],
        iterable: Iterable[Iterable[Any]],
        chunksize: int | None = None,
        *,
        resource: Callable[[], Any] | None = None,
        progress: bool = False,
        timeout: float | None = None,
    ) -> list[R]:
        """As ``map``, of items that are arguments: ``func(*item)``."""
        return self._mapped(func, iterable, "star", chunksize, timeout, resource, progress)

    def map_async(
        self,
        func: Callable[..., Any],
        iterable: Iterable[Any],
        chunksize: int | None = None,
        callback: Callable[[Any], object] | None = None,
        error_callback: Callable[[BaseException], object] | None = None,
        *,
        resource: Callable[[], Any] | None = None,
        timeout: float | None = None,
    ) -> AsyncResult:
        items, callbacks = list(iterable), (callback, error_callback)
        return self._submit(func, items, "map", chunksize, timeout, resource, callbacks, background=True)

    def starmap_async(
        self,
        func: Callable[..., Any],
        iterable: Iterable[Iterable[Any]],
        chunksize: int | None = None,
        callback: Callable[[Any], object] | None = None,
        error_callback: Callable[[BaseException], object] | None = None,
        *,
        resource: Callable[[], Any] | None = None,
        timeout: float | None = None,
    ) -> AsyncResult:
        items, callbacks = list(iterable), (callback, error_callback)
        return self._submit(func, items, "star", chunksize, timeout, resource, callbacks, background=True)

    def imap(
        self,
        func: Callable[..., R],
        iterable: Iterable[Any],
        chunksize: int = 1,
        *,
        resource: Callable[[], Any] | None = None,
        progress: bool = False,
        timeout: float | None = None,
        ahead: int | None = None,
    ) -> Iterator[R]:
        """Results in order, while the workers are ahead by ``ahead`` items at most: by default 4 chunks for each of
        them. The iterable may be endless: no more is taken from it."""
        return self._stream(func, iterable, chunksize, timeout, resource, progress, ahead, ordered=True)

    def imap_unordered(
        self,
        func: Callable[..., R],
        iterable: Iterable[Any],
        chunksize: int = 1,
        *,
        resource: Callable[[], Any] | None = None,
        progress: bool = False,
        timeout: float | None = None,
        ahead: int | None = None,
    ) -> Iterator[R]:
        """The same in the order in which they come."""
        return self._stream(func, iterable, chunksize, timeout, resource, progress, ahead, ordered=False)

    # -- its end -------------------------------------------------------------------------------

    def close(self) -> None:
        """No more calls. Workers end when all is done."""
        self._works.drain()
        self._turns.changed()

    def terminate(self) -> None:
        """End all workers, now. What is not done fails."""
        self._works.close()
        self._turns.close()

    def join(self) -> None:
        """Wait until all workers have ended, after ``close`` or ``terminate``."""
        if not (self._works.draining or self._works.closed):
            raise ValueError("Pool is still running")
        for stream in list(self._streams):
            stream.take_all()
        self._turns.wait_for(Ended(self._works))
        self._turns.close()

    def __enter__(self) -> Self:
        self._check_running()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.terminate()

    def __reduce__(self) -> Any:
        raise NotImplementedError("pool objects cannot be passed between processes or pickled")

    def __repr__(self) -> str:
        state = "ended" if self._works.closed else "closed" if self._works.draining else "running"
        return f"<{type(self).__module__}.{type(self).__qualname__} {state} pool_size={self._seats}>"

    # ------------------------------------------------------------------------------------------

    def _check_running(self) -> None:
        check_owner(self._works)
        if self._works.draining or (self._works.closed and self._works.failure is None):
            raise ValueError("Pool not running")
        if self._works.failure is not None:
            raise ValueError("Pool not running") from self._works.failure

    def _submit(
        self,
        func: Callable[..., Any],
        items: list[Any],
        shape: str,
        chunksize: int | None,
        timeout: float | None,
        resource: Any = None,
        callbacks: Callbacks = (None, None),
        *,
        background: bool = False,
    ) -> AsyncResult:
        self._check_running()
        if chunksize is not None and chunksize < 1:
            raise ValueError(f"Chunksize must be 1+, not {chunksize}")
        timeout, background = self.task_timeout if timeout is None else checked(timeout), background and bool(items)
        with self._works.lock:
            kit = self._works.kits.of(func, shape, resource)
            result = AsyncResult(kit, items, shape, timeout, self._turns, *callbacks, background=background)
            if items:
                self._works.submit(result, chunksize or self._chunk(len(items), kit))
        self._turns.changed()
        return result

    def _chunk(self, count: int, kit: Kit) -> int:
        """So many that each worker gets a few times some; once if they are short, as far as is known."""
        share, least = -(-count // self._seats), -(-count // (self._seats * CHUNKS))
        return max(1, least, min(share, int(SHORT / kit.seconds)))

    def _mapped(
        self,
        func: Callable[..., R],
        iterable: Iterable[Any],
        shape: str,
        chunksize: int | None,
        timeout: float | None,
        resource: Any,
        progress: bool,
    ) -> list[R]:
        result = self._submit(func, list(iterable), shape, chunksize, timeout, resource)
        if progress:
            show(result, result.kit.name)
        values: list[R] = result.get()
        return values

    def _stream(
        self,
        func: Callable[..., R],
        iterable: Iterable[Any],
        chunksize: int,
        timeout: float | None,
        resource: Any,
        progress: bool,
        ahead: int | None,
        *,
        ordered: bool,
    ) -> Iterator[R]:
        self._check_running()
        if chunksize < 1:
            raise ValueError(f"Chunksize must be 1+, not {chunksize:n}")
        if ahead is not None and ahead < 1:
            raise ValueError(f"ahead should be 1 or more, but got ahead={ahead}")
        timeout = self.task_timeout if timeout is None else checked(timeout)
        most = ahead or AHEAD * chunksize * self._seats
        with self._works.lock:
            kit = self._works.kits.keep(func, "map", resource)
        stream = Stream(self._works, self._turns, kit, iter(iterable), "map", chunksize, most, timeout, ordered=ordered)
        self._streams.add(stream)
        return Shown(stream, length_of(iterable), kit.name) if progress else stream


Callbacks = tuple[Callable[[Any], object] | None, Callable[[BaseException], object] | None]


def _dropped(works: Works, turns: Turns) -> None:
    """Nobody has the pool any more. What is on its way is done; then the workers go."""
    if not (works.closed or works.draining):
        warnings.warn("a holdfast.Pool was neither closed nor terminated", ResourceWarning, stacklevel=2)
        works.drain()
        turns.changed()
