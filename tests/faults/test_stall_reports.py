"""Processes that really hang, and what can be seen of them from outside."""

from __future__ import annotations

import asyncio
import fcntl
import itertools
import mmap
import multiprocessing
import os
import re
import select
import signal
import socket
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
import torch
from trainers import wait_until

import holdfast
from holdfast._engine.causes import Kind
from holdfast._engine.stalls import Stall, examine, examine_thread
from holdfast._system import posix_child, proc, stacks
from holdfast._transport.logbook import MEMORY, SIZE, Entry, Logbook, Phase
from holdfast.testing import Once

HERE = Path(__file__).name
LOCK = threading.Lock()
LIMIT = 2.7  # seconds that an examination may take, as it says


@contextmanager
def hanging(
    hang: Callable[[], object], state: str = "S", call: str = "", before: Callable[[], object] = int
) -> Iterator[int]:
    """A fork that answers as a worker does, at the moment in which it hangs: in this state, in this system call.

    ``before`` is for what has to be done first, and may wait as well.
    """
    reader, writer = os.pipe()
    pid = os.fork()
    if not pid:
        try:
            posix_child.die_with_parent(os.getppid())
            os.setpgid(0, 0)
            posix_child.answer_stack_requests()
            before()
            os.write(writer, b"!")
            hang()
        finally:
            os._exit(1)
    os.read(reader, 1)
    try:
        wait_until(lambda: proc.look(pid).state == state)
        wait_until(lambda: not call or is_in(pid, call))
        yield pid
    finally:
        os.killpg(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(reader)
        os.close(writer)


def is_in(pid: int, call: str) -> bool:
    now = proc.look(pid).call
    return now is not None and bool(re.fullmatch(call, now.name))


def seen(pid: int, **how: bool) -> Stall:
    began = time.monotonic()
    stall = examine(pid, **how)
    assert time.monotonic() - began < LIMIT
    return stall


def is_at(stall: Stall, function: str) -> bool:
    """Whether the innermost line of the user's code is in this function, of this file."""
    return bool(re.fullmatch(rf'File ".*{HERE}", line \d+ in {function}', stall.line))


# -- what hangs ------------------------------------------------------------------------------------


def take_a_lock() -> None:
    with LOCK:
        pass


def use_openmp() -> None:
    torch.set_num_threads(2)
    torch.ones(1 << 22).sum()


def backtrack() -> None:
    re.match(r"(a+)+$", "a" * 60 + "b")


def spin_in_c() -> None:
    sum(itertools.repeat(0))


def stop_itself() -> None:
    os.kill(os.getpid(), signal.SIGSTOP)


def sleep() -> None:
    time.sleep(600)


def wait_for_an_event() -> None:
    threading.Event().wait(600)


def wait_for_a_child() -> None:
    os.waitpid(subprocess.Popen(["sleep", "600"]).pid, 0)


def wait_for_the_output_of_a_child() -> None:
    subprocess.run(["sleep", "600"], capture_output=True, check=True)


def poll_a_pipe() -> None:
    reader, _ = os.pipe()
    poll = select.poll()
    poll.register(reader)
    poll.poll(600_000)


def poll_nothing() -> None:
    select.select([], [], [], 600)


# -- the ladder ------------------------------------------------------------------------------------


def test_a_lock_that_was_held_at_the_fork():
    with LOCK, hanging(take_a_lock) as pid:
        stall = seen(pid)
    assert stall.kind is Kind.LOCK
    assert "nobody else can release" in stall.why
    assert is_at(stall, "take_a_lock")
    assert stall.seen_by == ("/proc", "signal")


def test_a_lock_that_another_thread_holds_is_not_said_to_be_lost():
    other = threading.Thread(target=sleep, daemon=True)
    with LOCK, hanging(take_a_lock, call="futex", before=other.start) as pid:
        stall = seen(pid)
    assert stall.kind is Kind.LOCK
    assert stall.why == "waits for a lock or an event (futex); the other thread of the process waits too"


def test_a_lock_of_several_processes():
    lock = multiprocessing.Lock()

    def take() -> None:
        lock.acquire()

    with lock, hanging(take) as pid:
        stall = seen(pid)
    assert (stall.kind, stall.why) == (Kind.LOCK, "waits for a lock (futex) that is shared with other processes")


def test_a_file_lock_and_who_holds_it(tmp_path):
    path = tmp_path / "index.lock"

    def lock_file() -> None:
        with open(path, "w") as again:
            fcntl.flock(again, fcntl.LOCK_EX)

    with open(path, "w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with hanging(lock_file, call="flock") as pid:
            stall = seen(pid)
    assert stall.kind is Kind.LOCK
    assert f"waits in flock for a lock on {path} (file, descriptor " in stall.why
    assert f"which process {os.getpid()} (" in stall.why
    assert is_at(stall, "lock_file")


def test_openmp_that_was_used_before_the_fork():
    code = """
        import os, sys
        sys.path.insert(0, sys.argv[1])
        import torch
        from holdfast._engine.stalls import examine
        from test_stall_reports import hanging, use_openmp

        use_openmp()
        with hanging(use_openmp) as pid:
            stall = examine(pid)
        print(stall.kind.name, stall.why, stall.line, sep="\\n")
    """
    told = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code), str(Path(__file__).parent)],
        env={**os.environ, "OMP_NUM_THREADS": "2"},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert told.returncode == 0, told.stderr
    kind, why, line = told.stdout.splitlines()
    assert kind == "OPENMP"
    assert re.match(r"waits for a lock \(futex\) inside libgomp\S*: OpenMP was used before the fork", why)
    assert line.endswith("in use_openmp")


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server


def receive_with_poll(sock: socket.socket) -> None:
    sock.settimeout(600)
    sock.recv(1)


def receive_with_select(sock: socket.socket) -> None:
    select.select([sock], [], [])


def receive_with_epoll(sock: socket.socket) -> None:
    async def read() -> None:
        reader, _ = await asyncio.open_connection(sock=sock)
        await reader.read(1)

    asyncio.run(read())


@pytest.mark.parametrize(
    ("hang", "call"),
    [
        (lambda sock: sock.recv(1), "recvfrom"),
        (receive_with_poll, "poll"),
        (receive_with_select, "select|pselect6"),
        (receive_with_epoll, "epoll_wait|epoll_pwait"),
    ],
    ids=["recv", "poll", "select", "epoll"],
)
def test_a_connection_that_says_nothing(listener, hang, call):
    port = listener.getsockname()[1]
    with socket.create_connection(listener.getsockname()) as sock:

        def receive() -> None:
            hang(sock)

        with hanging(receive, call=call) as pid:
            stall = seen(pid)
        assert re.match(rf"waits in ({call}) for 127\.0\.0\.1:{port} \(TCP, descriptor {sock.fileno()}\)", stall.why)
    assert stall.kind is Kind.SOCKET
    assert f'{HERE}"' in stall.line


def test_a_connection_over_ipv6():
    with socket.create_server(("::1", 0), family=socket.AF_INET6) as server:
        address = server.getsockname()[:2]
        with socket.create_connection(address) as sock, hanging(lambda: sock.recv(1)) as pid:
            assert f"for [::1]:{address[1]} (TCP, descriptor {sock.fileno()})" in seen(pid).why
        server.accept()[0].close()
        with hanging(server.accept) as pid:
            stall = seen(pid)
    assert f"for anyone at [::1]:{address[1]} (TCP, descriptor " in stall.why


def test_a_socket_of_this_machine():
    ours, theirs = socket.socketpair()
    with ours, theirs, hanging(lambda: ours.recv(1)) as pid:
        stall = seen(pid)
        assert stall.why.endswith(f" for a process of this machine (unix socket, descriptor {ours.fileno()})")
    assert stall.kind is Kind.SOCKET


@pytest.mark.parametrize("hang", [backtrack, spin_in_c])
def test_a_loop_in_c_code_that_never_lets_go_of_the_gil(hang):
    with hanging(hang, "R") as pid:
        stall = seen(pid)
    assert stall.kind is Kind.LOOP
    assert stall.why.startswith("runs on the CPU (")
    assert is_at(stall, hang.__name__)
    assert stall.seen_by == ("/proc", "signal")


def test_a_process_that_was_stopped():
    with hanging(stop_itself, "T") as pid:
        stall = seen(pid)
        assert (stall.kind, stall.why) == (
            Kind.STOPPED,
            f"is stopped (SIGSTOP): kill -CONT {pid} lets it go on",
        )
        assert is_at(stall, "stop_itself")
        assert not proc.handles(pid, posix_child.ASK_STACK)  # nothing is left for it to answer when it goes on
    assert stall.seen_by == ("/proc", "py-spy")


def test_a_process_that_no_signal_reaches(tmp_path):
    """Between vfork and exec the parent is where a dead NFS would put it; a named pipe makes that last."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)

    def start_another() -> None:
        opened = [(os.POSIX_SPAWN_OPEN, 0, str(pipe), os.O_RDONLY, 0)]
        os.posix_spawn("/bin/true", ["true"], {}, file_actions=opened)

    with hanging(start_another, "D") as pid:
        stall = seen(pid)
    assert stall.kind is Kind.UNINTERRUPTIBLE
    assert re.fullmatch(r"waits in the kernel, where no signal reaches it \((clone\w*|vfork), \w+\)", stall.why)
    assert is_at(stall, "start_another")
    assert stall.seen_by == ("/proc", "py-spy")


def test_a_frozen_control_group():
    roots = [path for path in ("/sys/fs/cgroup", "/sys/fs/cgroup/unified") if os.path.exists(f"{path}/cgroup.procs")]
    group = Path(*roots[-1:], f"holdfast-test-{os.getpid()}")
    try:
        group.mkdir()
    except OSError:
        pytest.skip("needs the right to make a control group")
    with ExitStack() as stack:
        stack.callback(group.rmdir)
        stack.callback(lambda: wait_until(lambda: "populated 0" in (group / "cgroup.events").read_text()))
        pid = stack.enter_context(hanging(sleep))
        (group / "cgroup.procs").write_text(str(pid))
        (group / "cgroup.freeze").write_text("1")
        wait_until(lambda: "frozen 1" in (group / "cgroup.events").read_text())
        stall = seen(pid)
    assert (stall.kind, stall.why) == (Kind.STOPPED, "is frozen together with its control group, as by docker pause")
    assert is_at(stall, "sleep")


def test_a_process_that_sleeps():
    with hanging(sleep) as pid:
        stall = seen(pid)
    assert (stall.kind, stall.why) == (Kind.SLEEP, "sleeps (clock_nanosleep)")
    assert is_at(stall, "sleep")


def test_select_of_nothing_is_sleep():
    with hanging(poll_nothing) as pid:
        assert seen(pid).kind is Kind.SLEEP


@pytest.mark.parametrize(("hang", "call"), [(wait_for_an_event, "futex"), (poll_a_pipe, "poll"), (sleep, "clock_.*")])
def test_a_wait_with_a_limit_looks_the_same_after_it_was_interrupted(hang, call):
    with hanging(hang, call=call) as pid:
        first = seen(pid)
        os.kill(pid, signal.SIGSTOP)
        wait_until(lambda: proc.look(pid).state == "T")
        os.kill(pid, signal.SIGCONT)
        wait_until(lambda: proc.look(pid).state == "S")
        second = seen(pid)
    assert first == second
    assert is_at(first, hang.__name__)


def test_an_event_that_nobody_sets():
    with hanging(wait_for_an_event) as pid:
        stall = seen(pid)
    assert stall.kind is Kind.LOCK
    assert stall.why.endswith("with a time limit; the process has no other thread")


def test_a_child_that_does_not_end():
    with hanging(wait_for_a_child) as pid:
        wait_until(lambda: [name for name in proc.children(pid) if "sleep" in name])
        stall = seen(pid)
    assert stall.kind is Kind.CHILD
    assert re.fullmatch(r"waits in wait(4|id) for a process that it started: \d+ \(sleep\)", stall.why)
    assert is_at(stall, "wait_for_a_child")


def test_a_child_that_says_nothing():
    with hanging(wait_for_the_output_of_a_child) as pid:
        wait_until(lambda: [name for name in proc.children(pid) if "sleep" in name])
        stall = seen(pid)
    assert stall.kind is Kind.PIPE
    assert re.search(r"; it has started \d+ \(sleep\)$", stall.why)
    assert is_at(stall, "wait_for_the_output_of_a_child")


def test_pipes(tmp_path):
    reader, writer = os.pipe()
    with hanging(lambda: os.read(reader, 1)) as pid:
        stall = seen(pid)
    assert (stall.kind, stall.why) == (
        Kind.PIPE,
        f"waits in read for the other end of a pipe (pipe, descriptor {reader})",
    )
    os.close(reader)
    os.close(writer)
    os.mkfifo(tmp_path / "named")
    with hanging(lambda: open(tmp_path / "named").read()) as pid:
        stall = seen(pid)
    assert stall.kind is Kind.PIPE
    assert "named pipe" in stall.why


def test_a_process_that_has_ended():
    with hanging(sleep) as pid:
        os.kill(pid, signal.SIGKILL)
        wait_until(lambda: proc.look(pid).state == "Z")
        assert seen(pid).kind is Kind.GONE
    assert seen(pid).kind is Kind.GONE


# -- stacks ----------------------------------------------------------------------------------------


@pytest.fixture
def without_py_spy(monkeypatch):
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    monkeypatch.setattr(sys, "executable", os.path.realpath(sys.executable))
    with pytest.raises(stacks.Unseen, match="not installed"):
        stacks.py_spy(os.getpid())


@pytest.mark.parametrize("hang", [sleep, spin_in_c])
def test_a_worker_tells_its_stack_without_py_spy(without_py_spy, hang):
    with hanging(hang, "R" if hang is spin_in_c else "S") as pid:
        stall = seen(pid)
    assert is_at(stall, hang.__name__)
    assert stall.unseen == ()


def test_what_cannot_be_seen_is_said(without_py_spy):
    with hanging(stop_itself, "T") as pid:
        stall = seen(pid)
    assert stall.kind is Kind.STOPPED
    assert stall.stack == ()
    assert stall.unseen == ("Python stack, by signal: none reaches it now, py-spy is not installed",)


def test_a_py_spy_that_hangs_is_ended_and_said(tmp_path, monkeypatch):
    (tmp_path / "py-spy").write_text("#!/bin/sh\nexec sleep 600\n")
    (tmp_path / "py-spy").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setattr(stacks, "PY_SPY", 0.3)
    with hanging(stop_itself, "T") as pid:
        stall = seen(pid)
    assert stall.unseen == ("Python stack, by signal: none reaches it now, py-spy: no answer within 0.3 s",)


def test_the_answer_to_the_second_request_is_not_that_to_the_first():
    reader, writer = os.pipe()

    def read_then_sleep() -> None:
        os.read(reader, 1)
        sleep()

    with hanging(read_then_sleep, call="read") as pid:
        answers = [stacks.ask(pid) for _ in range(50)]
        os.write(writer, b"!")
        wait_until(lambda: is_in(pid, "clock_nanosleep"))
        (last,) = stacks.ask(pid)
    os.close(reader)
    os.close(writer)
    assert [len(answer) for answer in answers] == [1] * 50
    assert len({answer[0] for answer in answers}) == 1
    assert "in read_then_sleep" in answers[0][0].lines[0]
    assert "in sleep" in last.lines[0]


def test_other_threads_are_told_on_request():
    other = threading.Thread(target=wait_for_an_event, daemon=True)
    with hanging(sleep, call="clock_nanosleep", before=other.start) as pid:
        wait_until(lambda: all(is_in(thread, "futex|clock_nanosleep") for thread in proc.thread_states(pid)))
        stall, alone = seen(pid, threads=True), seen(pid)
    assert is_at(stall, "sleep")
    (told,) = stall.others
    assert any(line.endswith("in wait_for_an_event") for line in told.lines)
    assert alone.others == ()


def test_an_answer_is_complete():
    def hang() -> None:
        for _ in range(60):
            threading.Thread(target=wait_for_an_event, daemon=True).start()
        sleep()

    with hanging(hang, call="clock_nanosleep") as pid:
        answers = [stacks.ask(pid, threads=True) for _ in range(10)]
    assert [len(answer) for answer in answers] == [61] * 10


def test_a_process_that_is_none_of_ours_is_read_and_not_signalled(tmp_path):
    """The signal would kill it."""
    program = tmp_path / "train.py"
    program.write_text("import time\ndef main():\n    print(1, flush=True)\n    time.sleep(600)\nmain()\n")
    with subprocess.Popen([sys.executable, program], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        wait_until(lambda: is_in(process.pid, "clock_nanosleep"))
        stall = seen(process.pid)
        assert process.poll() is None
        process.kill()
    assert stall.kind is Kind.SLEEP
    assert stall.line == f'File "{program}", line 4 in main'
    assert stall.seen_by == ("/proc", "py-spy")


@pytest.mark.skipif(os.getuid() != 0, reason="needs another user's process: only root can become somebody else")
def test_a_process_of_another_user_and_what_may_not_be_seen_of_it():
    reader, writer = os.pipe()
    with hanging(sleep) as pid:
        asker = os.fork()
        if not asker:
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)
            os.write(writer, repr(examine(pid)).encode())
            os._exit(0)
        told = os.read(reader, 4096).decode()
        os.waitpid(asker, 0)
        assert proc.look(pid).state == "S"  # unharmed
    os.close(reader)
    os.close(writer)
    assert "Kind.UNKNOWN" in told
    assert f"/proc/{pid}/task/{pid}/syscall: Permission denied" in told
    assert "by signal: it does not answer to a signal" in told


def test_a_fork_of_a_worker_answers_for_itself():
    def fork_again() -> None:
        if os.fork():
            sleep()
        posix_child.answer_stack_requests()
        wait_for_an_event()

    with hanging(fork_again, call="clock_nanosleep") as pid:
        child = int(proc.children(pid)[0].split()[0])
        wait_until(lambda: is_in(child, "futex"))
        both = [stacks.ask(number)[0] for number in (pid, child)]
    assert both[0].lines[0].endswith("in sleep")
    assert any(line.endswith("in wait_for_an_event") for line in both[1].lines)


def test_a_process_that_is_no_python():
    with subprocess.Popen(["sleep", "600"]) as process:
        wait_until(lambda: proc.name(process.pid) == "sleep" and proc.look(process.pid).state == "S")
        stall = seen(process.pid)
        process.kill()
    assert stall.kind is Kind.SLEEP
    assert stall.stack == ()
    assert len(stall.unseen) == 1
    assert "py-spy: " in stall.unseen[0]


def test_a_thread_of_this_process(listener):
    with socket.create_connection(listener.getsockname()) as sock:

        def receive() -> None:
            sock.recv(1)

        thread = threading.Thread(target=receive)
        thread.start()
        wait_until(lambda: is_in(thread.native_id, "recvfrom"))
        stall = examine_thread(thread.ident)
        listener.accept()[0].close()
        thread.join()
    assert stall.kind is Kind.SOCKET
    assert is_at(stall, "receive")
    assert examine_thread(thread.ident).kind is Kind.GONE


def test_a_thread_of_this_process_that_runs():
    enough = threading.Event()

    def count() -> None:
        while not enough.is_set():
            sum(range(1000))

    thread = threading.Thread(target=count)
    thread.start()
    stall = examine_thread(thread.ident)
    enough.set()
    thread.join()
    assert stall.kind is Kind.LOOP
    assert is_at(stall, "count")


# -- workers ---------------------------------------------------------------------------------------


class HangsInInit:
    def __init__(self) -> None:
        self.once = Once()

    def __call__(self, _: int) -> None:
        self.once.first()
        self.hang()

    def hang(self) -> None:
        threading.Event().wait(600)


@pytest.mark.parametrize("start", ["zygote", "spawn", "fork", "standby"])
def test_workers_of_every_start_tell_their_stack(start):
    init = HangsInInit()
    loader = holdfast.DataLoader(range(8), num_workers=1, worker_init_fn=init, start=start)
    batches = iter(loader)
    try:
        (worker,) = batches._workers
        wait_until(init.once.struck)
        wait_until(lambda: proc.look(worker.pid).state == "S")
        stall = seen(worker.pid)
    finally:
        batches._shutdown_workers()
    assert stall.seen_by == ("/proc", "signal")
    assert stall.kind is Kind.LOCK
    assert stall.line.endswith("in hang")
    assert stall.stack[-1].endswith("in __call__")


# -- words -----------------------------------------------------------------------------------------


def test_the_logbook_in_words():
    def words(phase: Phase, batch: int = -1, sample: int = -1, indices: object = None) -> str:
        return Entry(phase, batch, sample, 0.0).words(indices)

    assert words(Phase.FETCHING, 3, 7) == "fetching sample 7 of batch 3"
    assert words(Phase.FETCHING, 3, 1, [40, 41]) == "fetching sample 41 of batch 3"
    assert words(Phase.FETCHING, 3, -1, [40, 41]) == "fetching batch 3"
    assert words(Phase.COLLATING, 3) == "collating batch 3"
    assert {words(phase) for phase in Phase} >= {"idle", "starting", "unpacking the data set", "running worker_init_fn"}


def test_a_batch_in_the_logbook():
    logbook, before = Logbook(mmap.mmap(-1, SIZE)), time.monotonic()

    def noted() -> tuple[Phase, int, int]:
        nonlocal before
        entry = logbook.read()
        assert before <= entry.since <= (before := time.monotonic())
        return entry.phase, entry.batch, entry.sample

    logbook.note_fetching(7)
    assert noted() == (Phase.FETCHING, 7, -1)
    logbook.place[()] = 3
    assert logbook.read().sample == 3
    logbook.note_collating()
    assert noted() == (Phase.COLLATING, 7, -1)
    logbook.note_sending()
    assert noted() == (Phase.SENDING, 7, -1)
    sent = logbook.read().since
    logbook.note_done()
    assert logbook.read() == Entry(Phase.IDLE, 7, -1, sent)


def test_notes_leave_the_memory_cell_alone():
    logbook = Logbook(mmap.mmap(-1, SIZE))
    logbook.numbers[MEMORY] = 12 << 30
    logbook.note(Phase.FETCHING, 1, 2)
    logbook.note_done()
    assert logbook.memory == 12 << 30
