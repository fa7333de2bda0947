"""Failures before the first batch."""

from __future__ import annotations

from .failure import Failure

STARTING = (
    Failure(
        "F01",
        "the loop never starts after a fork beside threads",
        today="The first `next()` never returns and nothing is printed; or `Cannot re-initialize CUDA in forked "
        "subprocess`.",
        cause="`fork` copies one thread only. A lock that another thread held at that moment stays locked for ever in "
        "the worker; OpenMP's and CUDA's state is copied without the threads it relies on.",
        promise="Workers are forked from a clean process with one thread, not from the trainer: it works. With "
        '`start="fork"` asked for, a warning before the fork names the threads and the lock.',
        remedy='Use `multiprocessing_context="spawn"` or `"forkserver"`, or make the workers before other threads, '
        "OpenMP or CUDA are used. Keep CUDA out of the data set.",
        patterns=(
            r"This process .{0,30}is multi-threaded, use of fork\(\) may lead to deadlocks",
            r"Cannot re-initialize CUDA in forked subprocess",
            r"CUDA error: initialization error",
            r"(loop|loader|epoch) never starts",
            r"hangs? (at|on|before) the first batch",
        ),
    ),
    Failure(
        "F02",
        "a lambda, closure or local class cannot be pickled",
        today="`Can't pickle local object 'main.<locals>.<lambda>'` for a transform, `collate_fn`, `worker_init_fn` "
        "or data set, under spawn and forkserver; from Python 3.14 on by default.",
        cause="`pickle` stores functions and classes by name. A lambda or something defined inside a function has "
        "none.",
        promise="Functions and classes are shipped by value: lambdas, closures and local classes work.",
        remedy="Move it to the top level of a module and use `functools.partial` for its arguments.",
        patterns=(
            r"Can't (pickle|get) local object '?[\w.]+\.<locals>",
            r"Can't pickle <(function|class)[^\n]*(attribute lookup|not found as|it's not the same object)",
            r"Can't pickle[^\n]{0,60}<lambda>",
        ),
    ),
    Failure(
        "F03",
        "a class of a notebook or script is not found in the worker",
        today="`Can't get attribute 'MyDataset' on <module '__main__' (built-in)>`; when it is the class of a "
        "*result*, the loader waits for ever.",
        cause="The worker's `__main__` is not your notebook or script, so a class that is stored by name cannot be "
        "found there.",
        promise="Classes of `__main__` are shipped by value, in both directions; `isinstance` holds.",
        remedy="Put the class into a module file that both processes import.",
        patterns=(
            r"Can't get attribute '?[\w.<>]+'? on <module '__main__'",
            r"Can't get attribute '?[\w.<>]+'? on <module",
        ),
    ),
    Failure(
        "F04",
        "a script without a main guard starts itself again",
        today="`An attempt has been made to start a new process before the current process has finished its "
        "bootstrapping phase`, a broken pipe, or the script's output again and again.",
        cause="Under spawn and forkserver, Python runs the script again in every worker to find its functions; the "
        "script then makes workers of its own.",
        promise="`__main__` is never run again: no guard is needed.",
        remedy='Put the code that trains under `if __name__ == "__main__":`.',
        patterns=(
            r"An attempt has been made to start a new process before the\s+current process",
            r"freeze_support\(\)",
            r"BrokenPipeError: \[Errno 32\]",
        ),
    ),
    Failure(
        "F05",
        "a member of the data set cannot be pickled",
        today="`TypeError: cannot pickle '_io.BufferedReader' object` (or `sqlite3.Connection`, `generator`, `h5py "
        "objects cannot be pickled`), without the member's name; the worker adds `EOFError: Ran out of input`.",
        cause="An open file, database, generator or lock has no meaning in another process.",
        promise="`CannotShip` names the path, such as `dataset.store.env (lmdb.Environment)`, and how to make it per "
        "worker; or the workers are forked with that warning, when that is safe at that moment.",
        remedy="Open it on first use in `__getitem__` or in `worker_init_fn`, and leave it out in `__getstate__`.",
        patterns=(
            r"cannot pickle(?= '[\w.]+' object)",
            r"(h5py objects|generator objects?|\w+ objects?) can(no|')t be pickled",
            r"no default __reduce__ due to non-trivial __cinit__",
            r"EOFError: Ran out of input",
            r"pickle data was truncated",
        ),
        codes=("HF101", "HF405"),
    ),
    Failure(
        "F06",
        "seconds to the first batch, every epoch, with spawn",
        today="10 to 14 seconds to the first batch of every epoch with spawn, where fork takes 0.2; forkserver is no "
        "faster.",
        cause="Each worker is a new interpreter that imports torch and your modules again, and is sent the data set "
        "again.",
        promise="Workers are forked from a process that has torch and your modules imported: as fast as fork.",
        remedy="`persistent_workers=True` pays once instead of every epoch; fewer imports at the top of the script.",
        patterns=(
            r"(slow|seconds|long)[^\n]{0,40}(first batch|start[^\n]{0,20}workers?|each epoch|every epoch)",
            r"spawn[^\n]{0,40}slow",
            r"slow[^\n]{0,40}spawn",
        ),
    ),
    Failure(
        "F07",
        "set_start_method: context has already been set",
        today="`RuntimeError: context has already been set`.",
        cause="`set_start_method` is global and may be called once; another library or an earlier cell was first.",
        promise="The global start method is neither read nor set: `start=` belongs to one loader.",
        remedy="Pass `multiprocessing_context=` to the loader and `multiprocessing.get_context(...)` to the rest; "
        "never `set_start_method` in a library.",
        patterns=(r"context has already been set",),
    ),
    Failure(
        "F08",
        "forkserver does not exist on Windows",
        today="`ValueError: cannot find context for 'forkserver'`.",
        cause="Windows has no fork, so only `spawn` exists there; nothing emulates the others.",
        promise='`start="auto"` uses workers that are spawned ahead of need where there is no fork; `"forkserver"` is '
        "refused with what exists and what to use.",
        remedy='Use `"spawn"` there: `"forkserver" if sys.platform != "win32" else "spawn"`.',
        patterns=(r"cannot find context for '?(forkserver|fork)'?",),
    ),
    Failure(
        "F09",
        "a call of multiprocessing that does not exist",
        today="`Pool() got an unexpected keyword argument 'mp_context'`, `module 'multiprocessing' has no attribute "
        "'shared_memory'`.",
        cause="`mp_context` is an argument of `ProcessPoolExecutor`; `multiprocessing.Pool` takes its context from "
        "`get_context`. `shared_memory` is a submodule that must be imported by name.",
        promise="`holdfast lint` finds it before it runs (HL112), and names the right call.",
        remedy='Write `multiprocessing.get_context("spawn").Pool(4)`, `ProcessPoolExecutor(4, '
        'mp_context=get_context("spawn"))` and `from multiprocessing import shared_memory`.',
        patterns=(
            r"unexpected keyword argument '(mp_context|context)'",
            r"has no attribute '(shared_memory|managers|sharedctypes)'",
        ),
    ),
    Failure(
        "F10",
        "a loader inside a pool's worker",
        today="`AssertionError: daemonic processes are not allowed to have children`.",
        cause="Workers of `multiprocessing.Pool` are daemons, and Python forbids those to start processes.",
        promise="Works: the workers are not Python's daemons, and still end with their parent.",
        remedy="Use `ProcessPoolExecutor`, whose workers are not daemons, or `num_workers=0` inside the pool.",
        patterns=(r"daemonic processes are not allowed to have children",),
    ),
    Failure(
        "F11",
        "the data set is copied into every worker",
        today="With spawn, memory and starting time grow with `num_workers`: a data set of 100 MB takes 240 MB more "
        "in 2 workers.",
        cause="It is pickled for each worker and unpacked into memory of its own.",
        promise="It is serialised once; arrays and tensors lie in one shared segment that all workers map.",
        remedy="Keep large arrays in a file and open it with `numpy.memmap`, or use `tensor.share_memory_()`.",
        patterns=(
            r"(cop(y|ies)|pickled) (of the data ?set )?(in|for|per|to) (each|every) worker",
            r"cannot serialize a bytes object larger than 4 ?GiB",
            r"memory[^\n]{0,40}(times|multipl)[^\n]{0,20}num_workers",
        ),
    ),
    Failure(
        "F12",
        "a generator or a temporary tensor as an argument ends spawned children",
        today="`cannot pickle 'torch._C.Generator' object`, or the child ends with a missing shared-memory file.",
        cause="`torch.Generator` does not pickle in every version; the memory of a temporary tensor is gone before "
        "the child has opened it.",
        promise="Both travel with the data set.",
        remedy="Pass the seed and make the generator in the worker; keep a reference to the tensor until the child has "
        "started.",
        patterns=(r"cannot pickle '?torch\.(_C\.)?Generator'?[^\n]*", r"torch\.Generator[^\n]{0,40}pickle"),
    ),
    Failure(
        "F13",
        "workers see another directory or environment",
        today="`FileNotFoundError` for a relative path in the workers only; an environment variable that was set late "
        "is not seen.",
        cause="A fork server keeps the environment of its own start; persistent workers keep the directory of theirs.",
        promise="Workers get the directory, import path and environment that the trainer has when the crew starts.",
        remedy="Use absolute paths; set environment variables before the first worker or fork server exists.",
        patterns=(
            r"No such file or directory: '(?![/\\]|\w:)[^'\n]+'",
            r"environment variable[^\n]{0,40}(worker|forkserver)",
            r"relative path",
        ),
    ),
    Failure(
        "F14",
        "worker_init_fn or unpacking the data set fails",
        today="A long traceback of `multiprocessing.spawn`, or silence, when `worker_init_fn` raises or the data set "
        "cannot be unpacked in the worker.",
        cause="The error happens before the worker has anything to answer with.",
        promise="That error itself, with the worker's number, at once.",
        remedy="Run `worker_init_fn(0)` and `pickle.loads(pickle.dumps(dataset))` in the trainer to see it.",
        patterns=(
            r"worker_init_fn",
            r"multiprocessing.{1,3}spawn\.py[^\n]*\n[^\n]*\n[^\n]*in _main[\s\S]{0,400}?reduction\.pickle\.load",
        ),
    ),
)
