"""The clean process that workers are forked from.

Started as a new interpreter, never as a fork of the trainer: one thread, no inherited locks, sockets or devices. It
does three things: import modules, torch as a rule the first of them, fork, and report how its children ended. It has no
thread of its own and waits in one place.
"""

from __future__ import annotations

import gc
import importlib
import os
import pickle
import select
import signal
import socket
import struct
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from . import collector, huge_pages, late, remains

LENGTH = struct.Struct("<I")
STATUS = struct.Struct("<i")
MAX_FDS = 250
QUIET = 50  # ms without a request, before anything is done that nobody asked for
# Threads that are stopped for a fork and started again by their library. jemalloc's comes with pyarrow, and so with
# every data set of Hugging Face: each worker would have to import that, for seconds.
MINDS_FORKS = frozenset({"jemalloc_bg_thd"})


def send(sock: socket.socket, value: object, fds: list[int]) -> None:
    body = pickle.dumps(value)
    head = LENGTH.pack(len(body))
    if fds:
        socket.send_fds(sock, [head], fds)
    else:
        sock.sendall(head)
    sock.sendall(body)


def receive(sock: socket.socket) -> tuple[Any, list[int]]:
    head, fds, _, _ = socket.recv_fds(sock, LENGTH.size, MAX_FDS)
    if len(head) < LENGTH.size:
        raise EOFError
    body = b""
    while len(body) < LENGTH.unpack(head)[0]:
        part = sock.recv(LENGTH.unpack(head)[0] - len(body))
        if not part:
            raise EOFError
        body += part
    return pickle.loads(body), list(fds)


class Server:
    """Owns the control socket and, for each child, the socket on which its start and its end are told.

    When nobody asks for anything, and no child shares its memory, it moves that into huge pages, piece by piece.
    """

    def __init__(self, control: socket.socket, trainer: int) -> None:
        self._control, self._retired = control, False
        self._told: dict[int, socket.socket] = {}
        self._scattered: list[int] = []  # memory that is still to be moved
        self._wakeup, wakeup_write = os.pipe()
        os.set_blocking(wakeup_write, False)
        os.set_blocking(self._wakeup, False)
        self._trainer_gone = -1
        self._private = [control.fileno(), self._wakeup, wakeup_write]
        signal.set_wakeup_fd(wakeup_write, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)  # holdfast: noqa HL113
        self._poll = select.poll()
        for fd in (control.fileno(), self._wakeup):
            self._poll.register(fd, select.POLLIN)
        if hasattr(os, "pidfd_open"):
            # The socket alone would not tell: another child of the trainer may hold a copy of its other end.
            self._trainer_gone = os.pidfd_open(trainer)
            self._private.append(self._trainer_gone)
            self._poll.register(self._trainer_gone, select.POLLIN)

    def run(self) -> None:
        quiet = False
        while True:
            ready = {fd for fd, _ in self._poll.poll(self._patience(quiet))}
            if quiet := not ready:
                huge_pages.collapse(self._scattered.pop())
            if self._wakeup in ready:
                os.read(self._wakeup, 4096)
                self._reap()
            if self._trainer_gone in ready:
                return
            if self._control.fileno() in ready:
                try:
                    self._serve(*receive(self._control))
                except (EOFError, ConnectionResetError, BrokenPipeError):
                    self._retire()
            if self._retired and not self._told:
                return

    def _patience(self, quiet: bool) -> int | None:
        """How long to wait for a request: a child that shared memory with us would be left with a copy of it."""
        if not self._scattered or self._told:
            return None
        return 0 if quiet else QUIET

    def _retire(self) -> None:
        """The trainer closed its end and will ask for nothing more; the workers that run go on as long as it lives."""
        self._retired = True
        if self._trainer_gone < 0:
            self._told.clear()  # nothing here tells whether it lives: this is its end
        else:
            self._poll.unregister(self._control.fileno())

    def _serve(self, request: dict[str, Any], fds: list[int]) -> None:
        if "modules" in request:
            send(self._control, _preload(request), [])
            if request["modules"]:
                self._scattered = huge_pages.candidates()
        else:
            self._fork(fds)

    def _fork(self, fds: list[int]) -> None:
        told_fd, stderr, *for_worker = fds
        told = socket.socket(fileno=told_fd)
        zygote, pid, pidfds = os.getpid(), 0, []
        try:
            pid = os.fork()
            if not pid:
                private = [*self._private, told_fd, *(other.fileno() for other in self._told.values())]
                _become_worker(zygote, private, stderr, for_worker)
            self._told[pid] = told
            pidfds = [os.pidfd_open(pid)] if hasattr(os, "pidfd_open") else []
            _tell(told, pid, pidfds)
        except BlockingIOError as error:  # no more processes allowed: theirs to hear, and no reason for us to end
            _tell(told, -(error.errno or 1), [])
            told.close()
        finally:
            for fd in (stderr, *for_worker, *pidfds):
                os.close(fd)

    def _reap(self) -> None:
        while True:
            try:
                found = remains.reap()
            except ChildProcessError:
                return
            if found is None:
                return
            pid, status, left = found
            told = self._told.pop(pid, None)
            if told is not None:
                _tell(told, status, [], remains.FORMAT.pack(*left._replace(ended=time.monotonic())))
                told.close()


def _become_worker(zygote: int, private: list[int], stderr: int, fds: list[int]) -> None:
    try:
        from holdfast._system import posix_child
        from holdfast._worker.process import work

        posix_child.die_with_parent(zygote)
        posix_child.reset_signals()
        posix_child.reset_affinity()
        for fd in private:
            os.close(fd)
        posix_child.lead("stderr", stderr)
        work(fds)
    finally:
        os._exit(1)


def _tell(told: socket.socket, number: int, fds: list[int], more: bytes = b"") -> None:
    try:
        socket.send_fds(told, [STATUS.pack(number) + more], fds)
    except (BrokenPipeError, ConnectionResetError):
        pass  # the trainer has lost interest


def _preload(request: dict[str, Any]) -> dict[str, Any]:
    """Import what the workers will need; say from which files, and by which of them a fork is not safe any more."""
    from holdfast._worker.surroundings import take_over

    take_over(request["environ"], request["cwd"], request["sys_path"])
    files: dict[str, float] = {}
    with _for_good():
        for name in request["modules"]:
            try:
                path = getattr(importlib.import_module(name), "__file__", None)
                if path:
                    files[path] = modified(path)
            except BaseException:
                pass  # the worker will meet it again and tell it properly
            if _has_company():
                return {"files": files, "guilty": name}
    return {"files": files, "guilty": None}


@contextmanager
def _for_good() -> Iterator[None]:
    """What is imported now stays, so no collection goes through it: not meanwhile, and not in workers, where each
    object that one looks at would be copied."""
    with collector.at_rest():
        try:
            yield
        finally:
            gc.freeze()


def modified(path: str) -> float:
    """When this file was changed; 0 where there is none any more."""
    try:
        return os.stat(path).st_mtime
    except OSError:
        return 0.0


def _has_company() -> bool:
    """Whether there are other threads than this one, and than those of libraries that mind forks themselves."""
    try:
        names = [Path("/proc/self/task", task, "comm").read_text().strip() for task in os.listdir("/proc/self/task")]
    except OSError:
        return False
    return len(names) - sum(name in MINDS_FORKS for name in names) > 1


def main(control_fd: int, trainer: int) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    server = Server(socket.socket(fileno=control_fd), trainer)
    with _for_good():  # all that a worker needs that can do without torch, before the first fork
        import holdfast._worker.process
        import holdfast._worker.task_worker  # noqa: F401

    late.have_one_thread()
    sys.argv[:] = [""]
    try:
        server.run()
    except (EOFError, ConnectionResetError, BrokenPipeError):
        pass
    os._exit(0)  # the trainer is gone; the workers go with us
