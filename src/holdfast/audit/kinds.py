"""What each kind of handle does in a worker, and what to write instead. A table; (top package, class) finds the row."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .anatomy import anatomy, attributes
from .finding import Severity
from .graph import walk

ERROR, WARNING, NOTE = Severity


@dataclass(frozen=True)
class Kind:
    """``is_live(base, value)`` tells whether it matters now; ``base`` is the class of the row, so that its methods can
    be called and no method of a class that derives from it."""

    why: str
    fix: str
    severity: Severity = ERROR
    is_live: Callable[[Any, Any], bool] = lambda base, value: True


HELD = "somebody holds it now: a forked worker that asks for it waits for ever"


def is_held(value: object) -> bool:
    """Whether a lock, or one inside a condition, event or queue, is held now; waiters' own locks always are."""
    return any(
        repr(inner).startswith("<locked")
        for path, inner in walk(value, "")
        if "._waiters" not in path
        if anatomy(inner).name in ("_thread.lock", "_thread.RLock")
    )


def _runs_in_threads(base: Any, value: Any) -> bool:
    own = attributes(value)
    has_ended = own.get("_shutdown") or own.get("_shutdown_thread")
    return not has_ended and bool(own.get("_threads") or own.get("_processes"))


def _is_connected(base: Any, value: Any) -> bool:
    try:
        base.__dict__["total_changes"].__get__(value)  # raises when closed; sqlite3 has no other way to ask
    except Exception:
        return False
    return True


def _is_writable(base: Any, value: Any) -> bool:
    with memoryview(value) as view:  # ValueError when closed
        return not view.readonly


LOCK = Kind(
    "each process has its own, so it guards nothing between workers",
    "{target} = multiprocessing.Lock()  # when workers are to exclude each other",
    NOTE,
)
_GONE = "its threads do not exist in a forked worker: whoever waits for them there waits for ever"
_HDF5 = Kind(
    "forked workers share the library's one position in the file and its cache: reads fail, or give wrong data",
    '{target} = holdfast.per_worker(h5py.File, path, "r")',
    is_live=lambda base, value: bool(getattr(attributes(value).get("_id"), "valid", True)),
)
_LMDB = Kind(
    "an LMDB environment works only in the process that opened it: forked workers crash, or run out of reader slots",
    "{target} = holdfast.per_worker(lmdb.open, path, readonly=True, lock=False)",
)
_DATABASE = "forked workers share one connection: answers reach the wrong worker, and one that ends closes it for all"
_CLIENT = "forked workers share the connections that it has open: answers reach the wrong worker"

KINDS: dict[tuple[str, str], Kind] = {
    ("sqlite3", "Connection"): Kind(
        "SQLite forbids the use of a connection after fork: wrong rows, or a damaged file",
        "{target} = holdfast.per_worker(sqlite3.connect, path)",
        is_live=_is_connected,
    ),
    ("h5py", "File"): _HDF5,
    ("h5py", "Group"): _HDF5,
    ("h5py", "Dataset"): _HDF5,
    ("lmdb", "Environment"): _LMDB,
    ("builtins", "Environment"): _LMDB,  # lmdb's class in C does not name its module
    ("psycopg2", "connection"): Kind(_DATABASE, "{target} = holdfast.per_worker(psycopg2.connect, url)"),
    ("psycopg", "Connection"): Kind(_DATABASE, "{target} = holdfast.per_worker(psycopg.connect, url)"),
    ("pymongo", "MongoClient"): Kind(
        "MongoClient is not safe after fork: its monitor threads are gone, and locks may be held for ever",
        "{target} = holdfast.per_worker(pymongo.MongoClient, url)",
    ),
    ("grpc", "Channel"): Kind(
        "gRPC has threads of its own, which do not exist in a forked worker: calls hang",
        "{target} = holdfast.per_worker(grpc.insecure_channel, address)",
    ),
    ("zmq", "Context"): Kind(
        "its threads do not exist in a forked worker: sockets made from it hang",
        "{target} = holdfast.per_worker(zmq.Context)",
    ),
    ("zmq", "Socket"): Kind(
        "a socket of ZeroMQ belongs to one thread of one process: used in a fork it hangs or crashes",
        "{target} = holdfast.per_worker(connect)  # a function that makes context and socket",
    ),
    ("redis", "Redis"): Kind(_CLIENT, "{target} = holdfast.per_worker(redis.Redis, host)", NOTE),  # looks at its pid
    ("botocore", "BaseClient"): Kind(_CLIENT, '{target} = holdfast.per_worker(boto3.client, "s3")', WARNING),
    ("boto3", "ServiceResource"): Kind(_CLIENT, '{target} = holdfast.per_worker(boto3.resource, "s3")', WARNING),
    ("requests", "Session"): Kind(_CLIENT, "{target} = holdfast.per_worker(requests.Session)", WARNING),
    ("subprocess", "Popen"): Kind(
        "forked workers share its pipes, and only the process that started it can wait for it",
        "{target} = holdfast.per_worker(subprocess.Popen, command)",
        is_live=lambda base, value: attributes(value).get("returncode", 0) is None,
    ),
    ("threading", "Thread"): Kind(
        "it does not exist in a forked worker: whoever waits for it there waits for ever",
        "{target} = holdfast.per_worker(start_thread)  # a function that starts it",
        is_live=lambda base, value: bool(base.is_alive(value)),
    ),
    ("concurrent", "Executor"): Kind(
        _GONE,
        "{target} = holdfast.per_worker(concurrent.futures.ThreadPoolExecutor)",
        is_live=_runs_in_threads,
    ),
    ("multiprocessing", "Pool"): Kind(
        _GONE,
        "{target} = holdfast.per_worker(multiprocessing.pool.ThreadPool)",
        is_live=lambda base, value: attributes(value).get("_state") == "RUN",
    ),
    ("builtins", "generator"): Kind(
        "each worker goes on with a copy of it: all of them yield the same items",
        "{target} = function  # instead of function(), and call it in __iter__",
        is_live=lambda base, value: value.gi_frame is not None,
    ),
    ("mmap", "mmap"): Kind(
        "what one forked worker writes, all see",
        "{target} = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)",
        NOTE,
        _is_writable,
    ),
    ("_thread", "lock"): LOCK,
    ("_thread", "RLock"): LOCK,
    ("threading", "Condition"): LOCK,
    ("threading", "Event"): LOCK,
    ("threading", "Semaphore"): LOCK,
    ("threading", "Barrier"): LOCK,
    ("queue", "Queue"): LOCK,
    ("_queue", "SimpleQueue"): LOCK,
}
