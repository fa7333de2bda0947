"""One rank, launched: the pipes and the memory between it and its parent."""

from __future__ import annotations

import os
import sys
from contextlib import ExitStack, nullcontext, suppress
from typing import NamedTuple

from holdfast._engine.berth import Berth, introduce
from holdfast._system.segments import MemfdSegment
from holdfast._system.stderr import Stderr, above_standard
from holdfast._transport.arena import ArenaView
from holdfast._transport.channel import PipeChannel
from holdfast._transport.logbook import SIZE, Logbook
from holdfast._worker.job import Post

from .entry import Ends
from .output import Lines
from .rank import Rank
from .starters import Starter


class Outlets(NamedTuple):
    """How what ranks print is shown. What does not come through the parent goes where the parent's own goes."""

    prefixed: bool  # stdout and stderr through the parent, line by line
    stderr: bool  # through the parent, as it comes; the last of it is evidence


def launch(starter: Starter, post: Post, outlets: Outlets) -> Rank:
    with ExitStack() as ours, ExitStack() as theirs:
        stdout, rank_stdout = _outlet(1, post.seat, outlets.prefixed, outlets.prefixed, ours, theirs)
        stderr, rank_stderr = _outlet(2, post.seat, outlets.prefixed, outlets.stderr, ours, theirs)
        with above_standard():
            rank_reads, writes = _pipe(theirs, ours)
            reads, rank_writes = _pipe(ours, theirs)
            logbook, outcome = MemfdSegment.create("holdfast-logbook"), MemfdSegment.create("holdfast-outcome")
            ours.callback(logbook.close)
            ours.callback(outcome.close)
        logbook.extend(SIZE)
        pages, channel = Logbook(logbook.map(0, SIZE)), PipeChannel(reads, writes, blocking=False)
        process = starter.start(post, Ends(rank_reads, rank_writes, logbook.fd, outcome.fd, rank_stdout), rank_stderr)
        ours.pop_all()  # the rank's from here on
    process.stderr = stderr
    if starter.manifest is not None:
        introduce(channel, post, starter.manifest)
    return Rank(post.seat, Berth(process, channel, pages, ArenaView(outcome)), logbook, outcome, stdout)


def _pipe(of_reader: ExitStack, of_writer: ExitStack) -> tuple[int, int]:
    reads, writes = os.pipe()
    of_reader.callback(os.close, reads)
    of_writer.callback(os.close, writes)
    return reads, writes


def _outlet(
    number: int, rank: int, prefixed: bool, piped: bool, ours: ExitStack, theirs: ExitStack
) -> tuple[Stderr | None, int]:
    """Our end, if there is one, and what is to become this descriptor of the rank."""
    mine: Stderr | None = None
    with above_standard() if prefixed or piped else nullcontext():
        if prefixed:
            mine, fd = Lines.of(rank, "stdout" if number == 1 else "stderr")
        elif piped:
            mine, fd = Stderr.pipe()
        else:
            fd = _own(number)
    theirs.callback(os.close, fd)
    if mine is not None:
        ours.callback(mine.close)
    return mine, fd


def _own(number: int) -> int:
    """A copy of ours. Of a program that was started without, that number may be any other file by now."""
    import fcntl  # here, as not every system has it

    with suppress(OSError):
        if (sys.__stdout__ if number == 1 else sys.__stderr__) is not None:
            return fcntl.fcntl(number, fcntl.F_DUPFD_CLOEXEC, 3)
    with above_standard():
        return os.open(os.devnull, os.O_WRONLY)
