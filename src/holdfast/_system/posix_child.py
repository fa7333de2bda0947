"""What a fresh worker process does to itself before anything else, on POSIX systems."""

from __future__ import annotations

import ctypes
import faulthandler
import os
import select
import signal
import sys
import threading

_PR_SET_PDEATHSIG = 1
_PR_SET_NAME = 15


def die_with_parent(parent: int) -> None:
    """Be killed when the parent ends, even while busy in C code. Linux only; elsewhere the channel's end must do.

    The kernel means the parent's *thread* that started us, so this is for parents that fork from their main thread.
    """
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)  # it ended before we asked


def tie_to(parent: int, from_main_thread: bool) -> None:
    """Die with the parent, whichever of its threads it was that started us."""
    if from_main_thread:
        die_with_parent(parent)
    else:
        die_with_process(parent)


def die_with_process(pid: int) -> None:
    """The same for a parent that forked us from a thread that may end before it: a thread of ours watches its pidfd."""
    try:
        pidfd = os.pidfd_open(pid)
    except (AttributeError, OSError):
        return

    def watch() -> None:
        poll = select.poll()
        poll.register(pidfd, select.POLLIN)
        poll.poll()
        os._exit(1)

    threading.Thread(target=watch, name="holdfast-parent-watch", daemon=True).start()


def set_name(name: str) -> None:
    """As shown by ps and top, up to 15 letters."""
    buffer = ctypes.create_string_buffer(name.encode()[:15])
    _prctl(_PR_SET_NAME, ctypes.addressof(buffer))


def reset_signals() -> None:
    """Ctrl-C is the trainer's: terminals and notebooks signal the whole group. All else as in a new process."""
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for number in (signal.SIGTERM, signal.SIGCHLD, signal.SIGUSR1, signal.SIGUSR2, signal.SIGALRM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])


def reset_affinity() -> None:
    """All cores that the container allows, also when the trainer's main thread was pinned to one."""
    if hasattr(os, "sched_setaffinity"):
        try:
            os.sched_setaffinity(0, range(os.cpu_count() or 1))
        except OSError:
            pass


def write_crashes_to(fd: int, start: int) -> None:
    """The Python stack of a crash goes into the logbook, from where the trainer can read it."""
    os.lseek(fd, start, os.SEEK_SET)
    faulthandler.enable(file=fd, all_threads=False)


_libc = ctypes.CDLL(None) if sys.platform == "linux" else None


def _prctl(option: int, argument: int) -> None:
    """Nothing on systems other than Linux."""
    if _libc is not None:
        _libc.prctl(option, argument, 0, 0, 0)
