"""Workers as forks of the trainer, and when that is a good idea.

A fork copies one thread and all memory: a lock that another thread holds at that moment stays held in the copy. What
counts here are Python's threads. Pools of native libraries are named but not minded: importing numpy starts one, they
wait between calls, and a worker uses one thread. torch's loader has always forked beside them.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable

from holdfast._system.threads_at_fork import company, held_locks
from holdfast._worker.job import Errand, Post
from holdfast.errors import CannotShip

from .berth import Berth, pipe_berth
from .notices import of_the_user

Posts = Callable[[int], Post]


class ForkWarning(UserWarning):
    """Something about a fork that the user should know."""


class Forked:
    """Forks of the trainer itself: nothing is serialised, everything is inherited, locks included."""

    forks = processes = True

    def __init__(self, job: Errand, posts: Posts) -> None:
        self._job, self._posts = job, posts
        self._warned = False

    def launch(self, seat: int) -> Berth:
        from holdfast._system.fork import forked_child
        from holdfast._worker.process import work_forked

        self._warn_of_threads()
        post = self._posts(seat)
        return pipe_berth(lambda fds, stderr: forked_child(lambda: work_forked(self._job, post, fds), stderr))

    def close(self) -> None: ...

    def _warn_of_threads(self) -> None:
        others = company()
        if not others.python or self._warned:
            return
        self._warned = True
        held = held_locks()
        locks = f"; held now: {', '.join(held)}" if held else ""
        text = (
            f"the workers are forks of a process with other threads: {others}{locks}. A lock that one of them holds at "
            'the fork is never released in the worker; start="auto" does not fork this process'
        )
        warnings.warn(text, ForkWarning, stacklevel=of_the_user())


def fall_back(refusal: CannotShip, job: Errand, posts: Posts) -> Forked:
    """A job that cannot be shipped can be inherited, if a fork is safe now; the refusal, with the reason, if not."""
    others = company()
    if others.python:
        reason = f"not safe as an alternative: this process has other threads, {others}"
        raise CannotShip(refusal.what, refusal.path, refusal.kind, refusal.reason, reason) from refusal.__cause__
    text = (
        f"{refusal.path} ({refusal.kind}) cannot be pickled, so the workers are forks of this process and share it as "
        f"it is now ({refusal.reason})"
    )
    warnings.warn(text, ForkWarning, stacklevel=of_the_user())
    return Forked(job, posts)
