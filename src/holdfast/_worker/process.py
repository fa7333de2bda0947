"""A worker as a process: from bare descriptors to the loop."""

from __future__ import annotations

import contextlib
import os
import pickle
import sys
from collections.abc import Callable, Sequence

from holdfast._system import late, posix_child
from holdfast._system.segments import MemfdSegment, Segment
from holdfast._transport.channel import Channel, PipeChannel
from holdfast._transport.faults import pack_error
from holdfast._transport.logbook import SIZE, STACK, Logbook, Phase
from holdfast._transport.messages import InitFailed, pack
from holdfast._transport.shipment import Manifest, unload

from . import debugger, life  # noqa: F401  # the debugger now, before the zygote forks: pdb would take each worker 10 ms
from .job import Errand, Post
from .surroundings import take_over


def work(fds: list[int]) -> None:
    """Entry of workers from the zygote and of spawned ones. Does not return.

    The descriptors: reading end, writing end, logbook, arena, shipment, then those that came with the shipment.
    """
    read_fd, write_fd, logbook_fd, arena_fd, shipment_fd, *passengers = fds
    logbook = _open_logbook(logbook_fd)
    channel = PipeChannel(read_fd, write_fd, blocking=True)
    post, manifest, heard = introduced(channel)
    posix_child.set_name(f"holdfast {post.seat}")

    def job() -> Errand:
        shipment = MemfdSegment(shipment_fd)
        loaded: Errand = unload(shipment.map_private(), manifest, passengers)
        shipment.close()
        return loaded

    serve(job, post, channel, logbook, MemfdSegment(arena_fd), heard)


def work_forked(job: Errand, post: Post, fds: list[int]) -> None:
    """Entry of workers that are forks of the trainer: the job is simply there. Does not return."""
    read_fd, write_fd, logbook_fd, arena_fd = fds
    logbook = _open_logbook(logbook_fd)
    posix_child.set_name(f"holdfast {post.seat}")
    serve(lambda: job, post, PipeChannel(read_fd, write_fd, blocking=True), logbook, MemfdSegment(arena_fd))


def serve(
    job: Callable[[], Errand],
    post: Post,
    channel: Channel,
    logbook: Logbook,
    segment: Segment,
    heard: Sequence[bytes] = (),
) -> None:
    """Get ready, load until told to close, exit. Does not return."""
    late.have_one_thread()
    try:
        take_over(post.environ, post.cwd, post.sys_path)
        sys.argv[:] = post.argv
        logbook.note(Phase.UNPACKING)
        worker = job().worker(post, channel, logbook, segment, heard)
        worker.initialise()
    except Exception as error:
        channel.send(pack(InitFailed(pack_error(error))))  # it could not get ready
        _exit(1)
    except BaseException as end:
        logbook.tell_end(end)
        _exit(_status(end))
    try:
        worker.run()
    except BaseException as end:  # sys.exit and KeyboardInterrupt in the user's code, or a bug of ours
        logbook.tell_end(end)
        _exit(_status(end))
    life.current().end()  # in its own time: the trainer gives it a moment, then SIGKILL
    del worker
    _exit(0)


def introduced(channel: Channel) -> tuple[Post, Manifest, list[bytes]]:
    """The first message, which says who we are, and what came right behind it."""
    messages: list[bytes] = []
    while not messages:
        messages = channel.receive()
    post, manifest = pickle.loads(messages[0])
    return Post(*post), Manifest(*manifest), messages[1:]


def _open_logbook(fd: int) -> Logbook:
    logbook = Logbook(MemfdSegment(fd).map(0, SIZE))
    posix_child.write_crashes_to(fd, STACK)
    return logbook


def _status(end: BaseException) -> int:
    """As the interpreter would exit."""
    if not isinstance(end, SystemExit):
        return 1
    return end.code & 0xFF if isinstance(end.code, int) else int(end.code is not None)


def _exit(status: int) -> None:
    """Leave without running the exit handlers that this process has only because its parent had them."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()
    os._exit(status)
