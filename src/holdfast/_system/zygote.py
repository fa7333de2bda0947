"""The trainer's end of the zygote: one for the whole process, started early, asked for forks.

Thread-safe: loaders in several threads share it. A fork of the trainer forgets it and starts its own when it needs one.
"""

from __future__ import annotations

import atexit
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterable
from typing import Any

from .interpreter import command, current_directory, worker_environ
from .process import Process
from .zygote_server import STATUS, receive, send


class ZygoteDied(RuntimeError):
    """The zygote ended although the trainer lives."""


class ZygoteProcess(Process):
    """A worker forked by the zygote. The sentinel is the pipe on which the zygote tells the status when it has reaped
    it: it says how, not only that, and it speaks too (without a status) when the zygote itself is gone."""

    def __init__(self, pid: int, status_pipe: int, pidfd: int | None) -> None:
        super().__init__(pid, status_pipe)
        self._pidfd = pidfd

    def _collect(self) -> int | None:
        told = os.read(self.sentinel, STATUS.size)
        return int(STATUS.unpack(told)[0]) if len(told) == STATUS.size else None

    def send_signal(self, number: int) -> None:
        if self._ended:
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


class Zygote:
    """Owns the zygote process and the control socket. Started without waiting for it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._control, theirs = socket.socketpair()
        with theirs:
            self._popen = subprocess.Popen(
                command(f"from holdfast._system.zygote_server import main; main({theirs.fileno()}, {os.getpid()})"),
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                env=worker_environ(),
            )
        self.preloaded: dict[str, float] = {}  # module -> modification time of its file

    def fork(self, fds: list[int]) -> ZygoteProcess:
        """A new worker that holds ``fds``; the caller keeps its own copies."""
        status_read, status_write = os.pipe()
        try:
            pid, pidfds = self._ask({}, [status_write, *fds])
        except BaseException:
            os.close(status_read)
            raise
        finally:
            os.close(status_write)
        return ZygoteProcess(pid, status_read, pidfds[0] if pidfds else None)

    def preload(self, modules: Iterable[str]) -> dict[str, Any]:
        request = {
            "modules": list(modules),
            "environ": dict(os.environ),
            "cwd": current_directory(),
            "sys_path": sys.path,
        }
        answer, _ = self._ask(request, [])
        self.preloaded.update({name: _modified(name) for name in request["modules"]})
        return dict(answer)

    def stale(self) -> bool:
        """A module was changed on disk after it was imported there."""
        return any(_modified(name) != when for name, when in self.preloaded.items())

    def alive(self) -> bool:
        return self._popen.poll() is None

    def close(self) -> None:
        """End it; its workers go with it."""
        with self._lock:
            self._control.close()
            self._popen.kill()
            self._popen.wait()

    def _ask(self, request: dict[str, Any], fds: list[int]) -> tuple[Any, list[int]]:
        with self._lock:
            try:
                send(self._control, request, fds)
                return receive(self._control)
            except (OSError, EOFError) as error:
                raise ZygoteDied("the process that workers are forked from has ended") from error


_current: Zygote | None = None
_starting = threading.Lock()


def zygote(modules: Iterable[str] = ()) -> Zygote:
    """The zygote of this process, with ``modules`` imported; a new one where there is none that can be used."""
    global _current
    with _starting:
        if _current is not None and (not _current.alive() or _current.stale()):
            _current.close()
            _current = None
        if _current is None:
            _current = Zygote()
        missing = [name for name in modules if name not in _current.preloaded and name not in _unsafe]
        if missing and _current.preload(missing)["threads"] > 1:
            # Something started a thread when it was imported: a fork of this one would not be clean.
            _unsafe.update(missing)
            _current.close()
            _current = Zygote()
        return _current


_unsafe: set[str] = set()  # modules that are left to each worker


def _modified(module: str) -> float:
    path = getattr(sys.modules.get(module), "__file__", None)
    try:
        return os.stat(path).st_mtime if path else 0.0
    except OSError:
        return 0.0


def forget() -> None:
    """In a fork of the trainer: the zygote belongs to the parent."""
    global _current, _starting
    _current, _starting = None, threading.Lock()


def shut_down() -> None:
    global _current
    if _current is not None:
        _current.close()
        _current = None


atexit.register(shut_down)  # it would end by itself; this way no descriptor is left for a ResourceWarning to tell of
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=forget)
