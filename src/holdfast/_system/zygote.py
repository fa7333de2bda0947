"""The trainer's end of the zygote: one for the whole process, started early, asked for forks.

Thread-safe: loaders in several threads share it. A fork of the trainer forgets it and starts its own when it needs one.
"""

from __future__ import annotations

import atexit
import os
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress

from .interpreter import command, current_directory, deaf_to_interrupts, worker_environ
from .process import Process
from .remains import FORMAT, Remains
from .zygote_server import STATUS, modified, receive, send


class ZygoteDied(RuntimeError):
    """The zygote ended although the trainer lives."""


class ZygoteProcess(Process):
    """A worker forked by the zygote, or about to be: asking for it does not wait for it.

    The sentinel is the socket on which the zygote tells of this one worker: first its pid, with a pidfd, and the
    status, with what else remains, when it has reaped it. It says how, not only that, and it speaks too, without a
    status, when the zygote itself is gone.
    """

    def __init__(self, told: socket.socket) -> None:
        # As a number: a socket object that is collected in a cycle closes itself, perhaps before the crew could use it.
        super().__init__(None, told.detach())
        self._pidfd: int | None = None

    @property
    def pid(self) -> int:
        with self._reading:
            if self._pid is None:
                self._hear_of_start()
        return self._pid or 0

    def heard(self) -> bool:
        with self._reading:
            if self._pid is None and not self._ended:
                return not self._hear_of_start()
            if not self._ended and not _is_readable(self.sentinel):
                return False  # it was the start, and another thread has heard of it
            return super().heard()

    def _hear_of_start(self) -> bool:
        """Whether there is a process."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM, fileno=os.dup(self.sentinel)) as source:
            told, pidfds, _, _ = socket.recv_fds(source, STATUS.size, 1)
        self._pidfd = pidfds[0] if pidfds else None
        number = int(STATUS.unpack(told)[0]) if len(told) == STATUS.size else 0
        if number > 0:
            self._pid = number
            return True
        self.failure = f"it could not be forked: {os.strerror(-number)}" if number else "the zygote had ended"
        self._ended, self._pid = True, 0
        return False

    def _collect(self) -> int | None:
        told = os.read(self.sentinel, STATUS.size + FORMAT.size)
        if len(told) < STATUS.size + FORMAT.size:
            return None
        self.remains = Remains(*FORMAT.unpack_from(told, STATUS.size))
        return int(STATUS.unpack_from(told)[0])

    def send_signal(self, number: int) -> None:
        if self._ended or not self.pid:
            return
        try:
            if self._pidfd is not None:
                signal.pidfd_send_signal(self._pidfd, number)
            else:
                os.kill(self.pid, number)
        except ProcessLookupError:
            pass

    def _release(self) -> None:
        os.close(self.sentinel)
        if self._pidfd is not None:
            os.close(self._pidfd)


def _is_readable(fd: int) -> bool:
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    return bool(poll.poll(0))


class Zygote:
    """Owns the zygote process and the control socket. Started without waiting for it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._in_step = True  # every request so far was answered
        self._control, theirs = socket.socketpair()
        with theirs, deaf_to_interrupts():
            self._popen = subprocess.Popen(
                command(f"from holdfast._system.zygote_server import main; main({theirs.fileno()}, {os.getpid()})"),
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                env=worker_environ(),
            )
        self._owed: list[list[str]] = []  # modules asked for, of which we have not heard yet
        self._files: dict[str, float] = {}  # of what it has imported, and when each was changed
        self.preloaded: set[str] = set()  # modules that it has imported, or has been asked to

    def fork(self, fds: list[int], stderr: int) -> ZygoteProcess:
        """A new worker that will hold ``fds`` and say what it has to say to ``stderr``; the caller keeps its copies."""
        ours, theirs = socket.socketpair()
        with theirs, self._lock:
            try:
                with self._out_of_step():
                    send(self._control, {}, [theirs.fileno(), stderr, *fds])
            except ZygoteDied:
                ours.close()
                raise
        return ZygoteProcess(ours)

    def ask_for(self, modules: Iterable[str]) -> None:
        """Have it import these, as soon as it comes to it. Whoever forks hears first what came of it: ``settle``."""
        names = list(modules)
        request = {
            "modules": names,
            "environ": dict(os.environ),
            "cwd": current_directory(),
            "sys_path": sys.path,
        }
        with self._lock, self._out_of_step():
            send(self._control, request, [])
            self._owed.append(names)
        self.preloaded.update(names)

    def settle(self) -> list[str]:
        """Wait until it has imported what it was asked for. If one of these has made it unfit for forks: the modules of
        that request which are of the same package."""
        while self._owed:
            with self._lock, self._out_of_step():
                answer, _ = receive(self._control)
                asked = self._owed.pop(0)
            self._files.update(answer["files"])
            if answer["guilty"] is not None:
                package = answer["guilty"].partition(".")[0]
                return [name for name in asked if name.partition(".")[0] == package]
        return []

    @contextmanager
    def _out_of_step(self) -> Iterator[None]:
        """An interrupt in here leaves half a request, or an answer that would be taken for that to the next one."""
        self._in_step = False
        try:
            yield
        except (OSError, EOFError) as error:
            raise ZygoteDied("the process that workers are forked from has ended") from error
        self._in_step = True

    def _ended(self) -> bool:
        return self._popen.poll() is not None

    def _stale(self) -> bool:
        """A module was changed on disk after it was imported there."""
        return any(modified(path) != when for path, when in self._files.items())

    def usable(self) -> bool:
        with self._lock:  # while another thread waits for its answer we are not in step, and that is no fault
            in_step = self._in_step
        return in_step and not self._ended() and not self._stale()

    def retire(self) -> bool:
        """No more forks. Its workers, which may be anybody's, live on, and it ends after the last of them.

        True when it has ended.
        """
        with self._lock:
            if self._control.fileno() >= 0:
                with suppress(OSError):
                    self._control.shutdown(socket.SHUT_RDWR)
                self._control.close()
        return self._ended()

    def disown(self) -> None:
        """In a fork of the trainer: it is the parent's."""
        self._control.close()
        self._popen.returncode = 0  # or subprocess would complain that it still runs

    def close(self) -> None:
        """End it; its workers go with it."""
        with self._lock:
            self._control.close()
            self._popen.kill()
            self._popen.wait()


_current: Zygote | None = None
_starting = threading.Lock()


def zygote(modules: Iterable[str] = ()) -> Zygote:
    """The zygote of this process, with ``modules`` imported; a new one where there is none that can be used."""
    with _starting:
        try:
            return _settled(modules)
        except ZygoteDied:
            return _settled(modules)  # somebody killed it a moment ago


def begin(modules: Iterable[str] = (), *, to_be_awaited: bool = False) -> None:
    """Start it, and have it import ``modules``, without waiting for any of that.

    ``to_be_awaited``: who asks for it next waits until it is ready.
    """
    with _starting:
        current = _usable()
        missing = _missing(modules, current)
        if missing or to_be_awaited:
            with suppress(ZygoteDied):  # whoever needs one will have a new one
                current.ask_for(missing)


def is_preloaded(module: str) -> bool:
    """Whether the zygote that there is has imported this, or was asked to."""
    with _starting:
        return _current is not None and module in _current.preloaded


def _settled(modules: Iterable[str]) -> Zygote:
    while True:
        current = _usable()
        if unsafe := current.settle():
            # One of them started a thread when it was imported: a fork of this one would not be clean.
            _unsafe.update(unsafe)
            _retire()
        elif missing := _missing(modules, current):
            current.ask_for(missing)
        else:
            return current


def _usable() -> Zygote:
    global _current
    _retired[:] = [old for old in _retired if not old.retire()]
    if _current is not None and not _current.usable():
        _retire()
    if _current is None:
        _current = Zygote()
    return _current


def _retire() -> None:
    global _current
    assert _current is not None
    _current.retire()
    _retired.append(_current)
    _current = None


def _missing(modules: Iterable[str], current: Zygote) -> list[str]:
    return [name for name in modules if name not in current.preloaded and name not in _unsafe]


_unsafe: set[str] = set()  # modules that are left to each worker
_retired: list[Zygote] = []  # not used any more, and not known to have ended


def forget() -> None:
    """In a fork of the trainer: the zygote belongs to the parent."""
    global _current, _starting
    for inherited in (*_retired, *([_current] if _current else [])):
        inherited.disown()
    _retired.clear()
    _current, _starting = None, threading.Lock()


def shut_down() -> None:
    global _current
    for running in (*_retired, *([_current] if _current else [])):
        running.close()
    _retired.clear()
    _current = None


atexit.register(shut_down)  # it would end by itself; this way no descriptor is left for a ResourceWarning to tell of
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=forget)
