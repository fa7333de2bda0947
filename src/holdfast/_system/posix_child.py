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
_PR_SET_PTRACER, _PR_SET_PTRACER_ANY = 0x59616D61, -1

# Real-time signals: SIGUSR1 and SIGUSR2 are the user's, and SLURM's.
ASK_STACK: int = getattr(signal, "SIGRTMIN", 0) + 13  # of the main thread, which loads
ASK_STACKS = ASK_STACK + 1  # of all threads; those that run meanwhile are read as they change, so only on request
STACK_PAGE = "holdfast-stack"
_page = -1  # its descriptor, in a process that answers


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


def lead(stream: str, to: int) -> None:
    """Standard output or error becomes this descriptor, for C code and for Python; somebody reads the other end."""
    number = {"stdout": 1, "stderr": 2}[stream]
    os.dup2(to, number)
    os.close(to)
    try:
        as_always = getattr(sys, stream).fileno() == number
    except (AttributeError, OSError, ValueError):
        as_always = False
    if not as_always:  # a fork of a notebook or of a test, whose stream leads elsewhere
        buffering = 1 if stream == "stderr" else -1
        new = open(number, "w", buffering, errors="backslashreplace", closefd=False)  # noqa: SIM115  # for good
        setattr(sys, stream, new)


def write_crashes_to(fd: int, start: int) -> None:
    """The Python stack of a crash goes into the logbook, from where the trainer can read it."""
    os.lseek(fd, start, os.SEEK_SET)
    faulthandler.enable(file=fd, all_threads=False)
    answer_stack_requests()


def answer_stack_requests() -> None:
    """From here on two signals have Python's stack written to a page of memory, also from inside C code. Linux only.

    The page is found in ``/proc/PID/fd`` by its name, so anybody who may look can ask. It is a file of its own, in
    append mode: whoever asks cuts it to nothing first, and the answer begins at its beginning, the second time too. In
    the logbook it would begin where the last one ended, as nobody else can move this process' place in a file.
    """
    if not (hasattr(signal, "SIGRTMIN") and hasattr(os, "memfd_create")):
        return
    import fcntl

    global _page
    if _page >= 0:
        os.close(_page)  # a fork of a worker answers for itself
    _page = os.memfd_create(STACK_PAGE)
    fcntl.fcntl(_page, fcntl.F_SETFL, os.O_APPEND)
    faulthandler.register(ASK_STACK, file=_page, all_threads=False, chain=False)
    faulthandler.register(ASK_STACKS, file=_page, all_threads=True, chain=False)
    # Where Yama is on, py-spy is neither our parent nor our grandparent, and would see nothing of us.
    _prctl(_PR_SET_PTRACER, _PR_SET_PTRACER_ANY)


_libc = ctypes.CDLL(None) if sys.platform == "linux" else None


def _prctl(option: int, argument: int) -> None:
    """Nothing on systems other than Linux."""
    if _libc is not None:
        _libc.prctl(option, ctypes.c_ulong(argument), 0, 0, 0)
