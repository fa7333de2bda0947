"""``Executor``: ``concurrent.futures.ProcessPoolExecutor`` that holds."""

from __future__ import annotations

import atexit
import concurrent.futures
import math
import os
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from multiprocessing import TimeoutError as NotInTime
from typing import Any, TypeVar

from holdfast._system.process import Process
from holdfast._transport.faults import twin
from holdfast.ledger import Ledger
from holdfast.policies import Policy

from .calls import Call
from .futures import Future
from .kits import Kit
from .making import check_owner, checked, default_seats, make
from .results import Ended
from .streaming import Stream
from .turns import Turns
from .works import Works

R = TypeVar("R")


class Promise(Call):
    """A call whose result goes into a future."""

    def __init__(self, future: Future[Any], kit: Kit, item: Any, timeout: float | None) -> None:
        super().__init__(kit, [item], "call", timeout, background=True)
        self._future, self._begun = future, False

    def begin(self) -> bool:
        if not self._begun:
            self._begun = self._future.set_running_or_notify_cancel()
        return self._begun

    def cancel(self, works: Works) -> None:
        if self._future.cancel():
            works.withdraw(self)
            self._future.set_running_or_notify_cancel()

    def settle(self, items: Sequence[int], values: list[Any], errors: Mapping[int, BaseException | None]) -> None:
        if 0 in errors:
            error = errors[0]
            if error is not None and self.begin():
                self._future.set_exception(error)
        else:
            self._future.set_result(values[0])


class Executor(concurrent.futures.Executor):
    """Calls in other processes, as futures. Change the import, keep the code.

    A worker that dies takes only the call with it that it was making: that one is tried again (``retries``), or fails
    with the reason; the executor goes on. Workers are started when there is something for them to do.

    Args:
        max_workers: how many processes; as many as this process may use at once.
        mp_context: of ``multiprocessing``; its start method is used.
        initializer, initargs: called by each worker when it starts.
        max_tasks_per_child: calls after which a worker is replaced by a new one.
        start, task_timeout, retries, seed, max_shared_memory: as for `Pool`.
    """

    def __init__(
        self,
        max_workers: int | None = None,
        mp_context: Any = None,
        initializer: Callable[..., object] | None = None,
        initargs: Iterable[Any] = (),
        *,
        max_tasks_per_child: int | None = None,
        start: str = "auto",
        task_timeout: float | None = None,
        retries: int | Policy = 0,
        seed: int | bool | None = None,
        max_shared_memory: int | None = None,
    ) -> None:
        seats = default_seats() if max_workers is None else max_workers
        if seats <= 0:
            raise ValueError("max_workers must be greater than 0")
        if initializer is not None and not callable(initializer):
            raise TypeError("initializer must be a callable")
        if max_tasks_per_child is not None and not isinstance(max_tasks_per_child, int):
            raise TypeError("max_tasks_per_child must be an integer")
        if max_tasks_per_child is not None and max_tasks_per_child <= 0:
            raise ValueError("max_tasks_per_child must be >= 1")
        self.faults = Ledger()
        self.task_timeout = checked(task_timeout)
        self._works, self._turns = make(
            seats,
            start,
            mp_context,
            initializer,
            tuple(initargs),
            max_tasks_per_child,
            retries,
            seed,
            max_shared_memory,
            self.faults,
        )
        self._streams: weakref.WeakSet[Stream] = weakref.WeakSet()
        self._finalizer = weakref.finalize(self, _dropped, self._works, self._turns)
        self._finalizer.atexit = False
        _unfinished.add(self._turns)

    @property
    def processes(self) -> list[Process]:
        """The workers' processes, by seat."""
        return self._works.processes

    def submit(self, fn: Callable[..., R], /, *args: Any, **kwargs: Any) -> Future[R]:
        self._check_running()
        future: Future[R] = Future()
        with self._works.lock:
            promise = Promise(future, self._works.kits.of(fn, "call"), (args, kwargs), self.task_timeout)
            self._works.submit(promise, 1)
        self._turns.changed()
        return future

    def map(
        self, fn: Callable[..., R], *iterables: Iterable[Any], timeout: float | None = None, chunksize: int = 1
    ) -> Iterator[R]:
        """As the builtin: results in order. All items are taken now. ``timeout`` counts from now, for all of them."""
        if chunksize < 1:
            raise ValueError("chunksize must be >= 1.")
        self._check_running()
        items = zip(*iterables, strict=False)
        with self._works.lock:
            kit = self._works.kits.keep(fn, "star")
        stream = Stream(
            self._works, self._turns, kit, items, "star", chunksize, math.inf, self.task_timeout, background=True
        )
        self._streams.add(stream)
        deadline = math.inf if timeout is None else time.monotonic() + timeout
        stream.fill()
        return _results(stream, deadline)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """No more calls. ``wait``: until all are done and the workers gone. ``cancel_futures``: without those that have
        not begun."""
        check_owner(self._works)
        if cancel_futures:
            for call in self._works.calls():
                if isinstance(call, Promise):
                    call.cancel(self._works)
            for stream in list(self._streams):
                stream.close(concurrent.futures.CancelledError())
        self._works.drain()
        self._turns.changed()
        if wait:
            self._turns.wait_for(Ended(self._works))
            self._turns.close()

    def _check_running(self) -> None:
        works = self._works
        check_owner(works)
        if works.failure is not None:
            raise twin(works.failure) from works.failure.__cause__
        if works.draining or works.closed:
            raise RuntimeError("cannot schedule new futures after shutdown")


def _results(stream: Stream, deadline: float) -> Iterator[Any]:
    try:
        while True:
            try:
                stream.wait(None if deadline == math.inf else deadline - time.monotonic())
                values = stream.whole_piece() or [stream.next()]
            except StopIteration:
                return
            except NotInTime:
                raise TimeoutError from None
            values.reverse()
            while values:
                yield values.pop()  # and keep none of them
    finally:
        stream.close()


_unfinished: weakref.WeakSet[Turns] = weakref.WeakSet()


def _finish_all() -> None:
    """When the program has come to its end, what was asked for is done, as all executors do."""
    for turns in list(_unfinished):
        if turns.works.owner == os.getpid():
            turns.works.drain()
            turns.wait_for(Ended(turns.works))


# Before Python waits for threads, and long before the exit handlers: the way of concurrent.futures' own.
getattr(threading, "_register_atexit", atexit.register)(_finish_all)


def _dropped(works: Works, turns: Turns) -> None:
    """Nobody has the executor any more. What is on its way is done; then the workers go."""
    works.drain()
    turns.changed()
