"""Interpreters spawned ahead of need, for systems without fork and for those who ask.

A spare calls back at once, imports what a worker needs, and waits to be handed work. It inherits nothing: it is told
where to call through its stdin and finds everything else by name. Thread-safe; a fork of the trainer forgets the
spares of its parent.
"""

from __future__ import annotations

import atexit
import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client, Connection, Listener, Pipe, wait

from .interpreter import command, deaf_to_interrupts, worker_environ
from .process import ChildProcess, Process
from .stderr import Stderr
from .windows_job import adopt

REAP = 5.0  # seconds to wait for the kernel to end a process that was killed


class StandbyDied(RuntimeError):
    """A new interpreter ended before it could be handed work."""


class WatchedChild(Process):
    """A direct child where there are no pidfds. Its end is told by its handle (Windows), or by a pipe that it holds."""

    def __init__(self, popen: subprocess.Popen[bytes], sentinel: int) -> None:
        super().__init__(popen.pid, sentinel)
        self._popen = popen

    def _collect(self) -> int | None:
        return self._popen.wait()

    def send_signal(self, number: int) -> None:
        if not self._ended:
            self._popen.send_signal(number)

    def _release(self) -> None:
        if sys.platform != "win32":  # there it belongs to the Popen
            os.close(self.sentinel)


class Spare:
    """An interpreter that has not been handed work. Owns its process and the address on which it calls back."""

    def __init__(self) -> None:
        key = os.urandom(32)
        self._listener = _listener(key)
        from_main = threading.current_thread() is threading.main_thread()
        self.process = _start(pickle.dumps((self._listener.address, key, os.getpid(), from_main)))

    def connect(self) -> Connection:
        """Wait until it has called back, no longer than Python needs to start; `StandbyDied` when it ended instead."""
        stop, stopped = Pipe(duplex=False)
        watch = threading.Thread(target=self._watch, args=(stop,), name="holdfast-standby-start", daemon=True)
        watch.start()
        try:
            return self._accept()
        finally:
            stopped.close()
            watch.join()
            stop.close()
            self._listener.close()

    def _accept(self) -> Connection:
        while True:
            try:
                return self._listener.accept()
            except (AuthenticationError, EOFError, OSError) as error:
                if not self.process.is_alive():
                    raise self._dead() from error

    def _watch(self, stop: Connection) -> None:
        """Ends the wait for a call that will not come, by a call of our own: nothing else ends it on every system."""
        if self.process.sentinel in wait([self.process.sentinel, stop]):
            with suppress(OSError):
                Client(self._listener.address).close()

    def _dead(self) -> StandbyDied:
        text = f"a new interpreter ended with status {self.process.exitcode} before it had work"
        said = self.process.last_words()
        self.process.close()
        return StandbyDied(f"{text}\n{said}".rstrip())

    def close(self) -> None:
        self.process.kill()
        self.process.join(REAP)
        self.process.last_words()
        self.let_go()

    def let_go(self) -> None:
        """Without ending it: in a fork of the trainer it belongs to the parent."""
        self.process.close()
        self._listener.close()


def _listener(key: bytes) -> Listener:
    try:
        return Listener(authkey=key)
    except OSError:  # the path of the temporary directory is too long for a socket in it
        return Listener(("127.0.0.1", 0), authkey=key)


def _start(errand: bytes) -> Process:
    stderr, theirs = Stderr.pipe() if sys.platform != "win32" else (None, None)  # there it simply has ours
    try:
        with deaf_to_interrupts():
            popen, process = _interpreter(theirs)
    except BaseException:
        if stderr is not None:
            stderr.close()
        raise
    finally:
        if theirs is not None:
            os.close(theirs)
    process.stderr = stderr
    assert popen.stdin is not None
    with suppress(OSError):  # it has ended already; its sentinel tells
        popen.stdin.write(errand)
        popen.stdin.close()
    return process


def _interpreter(stderr: int | None) -> tuple[subprocess.Popen[bytes], Process]:
    line, environ = command("from holdfast._worker.standby import main; main()"), worker_environ()
    if sys.platform == "win32" or hasattr(os, "pidfd_open"):
        popen = subprocess.Popen(line, stdin=subprocess.PIPE, stderr=stderr, env=environ)
        return popen, _watched(popen)
    end, held = os.pipe()
    popen = subprocess.Popen(line, stdin=subprocess.PIPE, stderr=stderr, env=environ, pass_fds=[held])
    os.close(held)
    return popen, WatchedChild(popen, end)


def _watched(popen: subprocess.Popen[bytes]) -> Process:
    if sys.platform == "win32":
        handle = int(popen._handle)  # type: ignore[attr-defined]
        adopt(handle)
        return WatchedChild(popen, handle)
    process = ChildProcess(popen.pid)
    popen.returncode = 0  # the pidfd tells; subprocess must not wait for it as well
    return process


_spares: list[Spare] = []
_lock = threading.Lock()
_exiting = False


def reserve(count: int) -> None:
    """Have that many spares, on their way or ready. Waits for none of them."""
    with _lock:
        _drop_dead()
        while len(_spares) < count and not _exiting:
            _spares.append(Spare())


def take() -> tuple[Process, Connection]:
    """A spare, or a new interpreter where there is none, and the connection on which it waits for its first message."""
    with _lock:
        _drop_dead()
        spare = _spares.pop(0) if _spares else Spare()
    try:
        return spare.process, spare.connect()
    except StandbyDied:
        spare = Spare()  # whoever killed that one may leave the next alone
        return spare.process, spare.connect()


def _drop_dead() -> None:
    for spare in [spare for spare in _spares if not spare.process.is_alive()]:
        spare.close()
        _spares.remove(spare)


def shut_down() -> None:
    """End all spares."""
    with _lock:
        _each(Spare.close)


def _at_exit() -> None:
    global _exiting
    _exiting = True
    shut_down()


def forget() -> None:
    """In a fork of the trainer: the spares belong to the parent."""
    global _lock
    _lock = threading.Lock()
    _each(Spare.let_go)


def _each(do: Callable[[Spare], None]) -> None:
    while _spares:
        do(_spares.pop())


atexit.register(_at_exit)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=forget)
