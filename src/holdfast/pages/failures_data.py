"""Failures of data, randomness, storage and the end of a run."""

from __future__ import annotations

from .failure import Failure

DATA = (
    Failure(
        "F38",
        "a random generator in the data set repeats itself",
        today="The same augmentations in all workers and in every epoch.",
        cause="A generator *object* on the data set is copied into each worker in the same state. torch seeds its own "
        "and Python's global generators per worker, and numpy's in recent versions; objects it does not know.",
        promise="An object whose state moved in a worker is named in a warning. Global `random`, numpy and torch state "
        "is set for each batch, and is the same for any number of workers.",
        remedy="Make the generator at use: `numpy.random.default_rng(torch.initial_seed() + index)`; or seed it in "
        "`worker_init_fn`.",
        patterns=(
            r"same random (numbers?|augmentations?)",
            r"(identical|repeated|duplicate) (augmentations?|random numbers?)",
            r"default_rng[^\n]{0,60}(worker|same|repeat)",
        ),
        codes=("HF404",),
    ),
    Failure(
        "F39",
        "random numbers repeat in a process pool",
        today="`np.random` gives the same numbers in several tasks of a `multiprocessing.Pool`.",
        cause="Forked pool workers inherit numpy's global state, and nothing seeds it per task.",
        promise="`holdfast.Pool` and `Executor`: each call has random numbers of its own in torch, numpy and `random`, "
        "the same for any number of workers and after a retry. `seed=` chooses them, `seed=False` leaves them alone.",
        remedy="Pass a seed with each task: `numpy.random.default_rng([seed, task])`.",
        patterns=(r"(np|numpy)\.random[^\n]{0,60}\bpool\b", r"\bpool\b[^\n]{0,60}(same|repeat)[^\n]{0,20}random"),
    ),
    Failure(
        "F40",
        "an iterable data set gives every item once per worker",
        today="Twice as many samples with 2 workers; `Length of IterableDataset ... was reported to be 100 (when "
        "accessing len(dataloader)), but 101 samples have been fetched`.",
        cause="Each worker has the whole iterable data set and yields all of it, unless it takes its share by "
        "`get_worker_info()`.",
        promise='Equal items of several workers are noticed and said (HF403). `shard="auto"` gives each worker, and '
        "each rank, its share.",
        remedy="In `__iter__`: `info = get_worker_info(); yield from itertools.islice(items, info.id, None, "
        "info.num_workers)`.",
        patterns=(
            r"Length of IterableDataset[^\n]*was reported to be[^\n]*",
            r"(samples?|items?|data) (is|are )?(duplicated|repeated|twice)[^\n]{0,40}",
            r"every (item|sample) (once per|twice|\d times)",
        ),
        codes=("HF403",),
    ),
    Failure(
        "F41",
        "a change in the trainer does not reach persistent workers",
        today="`dataset.set_epoch(3)` has no effect with `persistent_workers=True`.",
        cause="Persistent workers keep the copy of the data set that they started with.",
        promise="Plain public attributes that changed, and `set_epoch`, reach persistent workers with the next epoch; "
        "`loader.broadcast(name=value)` carries anything else.",
        remedy="Keep such a value in shared memory: `self.epoch = torch.tensor(0).share_memory_()` and `fill_`; or do "
        "without `persistent_workers`.",
        patterns=(r"set_epoch", r"persistent_workers[^\n]{0,60}(stale|old|not (see|reach|updat)|no effect)"),
    ),
    Failure(
        "F42",
        "one slow sample idles all workers",
        today="Throughput drops to that of the slowest sample, although the other workers are idle.",
        cause="Batches are handed out in turns and given in order; behind a slow one nothing is handed out beyond the "
        "window.",
        promise="Work goes to whoever is free, and order is restored before you see it.",
        remedy="`in_order=False` (torch 2.6 and later) gives up the order; a larger `prefetch_factor` helps a little.",
        patterns=(r"(one|a single) slow (sample|worker|batch)", r"workers? (are |is )?idle", r"head.of.line"),
    ),
    Failure(
        "F43",
        "two workers read through one file handle",
        today="Wrong records without an error (786 of 1000 seen), `Bad magic number for file header`, `database disk "
        "image is malformed`, or a hang in a shared socket.",
        cause="Forked workers share the position of an inherited file, and the bytes of an inherited socket.",
        promise="An open handle in the data set is named before workers start (HF405, or HF101 where it cannot be "
        'shipped). `holdfast.per_worker(open, path, "rb")` opens one in each worker.',
        remedy="Open the file on first use and remember the process: `if self.pid != os.getpid(): self.file, self.pid "
        "= open(path), os.getpid()`.",
        patterns=(
            r"Bad magic number for file header",
            r"database disk image is malformed",
            r"Error -3 while decompressing data",
            r"(file|handle|socket)[^\n]{0,30}shared (by|between|among)[^\n]{0,20}workers",
            r"wrong records",
        ),
        codes=("HF405", "HF101"),
    ),
    Failure(
        "F44",
        "a counter changed in workers stays 0 in the trainer",
        today="A global or an attribute that `__getitem__` increments is unchanged in the trainer.",
        cause="Each worker has a copy of its own.",
        promise="`holdfast.Counter` adds up over all workers, exactly.",
        remedy="`multiprocessing.Value` with its lock, or return the number with the sample.",
        patterns=(
            r"(global|counter|variable|attribute)[^\n]{0,60}(stays?|is (still )?|remains) (0|zero|unchanged)",
            r"(global|counter)[^\n]{0,40}not (updated|changed|visible)",
        ),
    ),
    Failure(
        "F45",
        "a global set in the trainer is None in the worker",
        today="`'NoneType' object has no attribute ...` or `NameError` in spawned workers only.",
        cause="A spawned worker imports the module anew: what the trainer assigned to its globals afterwards is not "
        "there.",
        promise="Globals of code that is shipped by value (a script, a notebook) travel with it. Otherwise a note on "
        "the error names the global and why.",
        remedy="Pass it to the data set's constructor, or set it in `worker_init_fn`.",
        patterns=(
            r"'NoneType' object (has no attribute|is not (subscriptable|callable|iterable))",
            r"global[^\n]{0,40}(is )?None[^\n]{0,40}worker",
            r"NameError",
        ),
    ),
    Failure(
        "F46",
        "the storage is not there yet, or empty",
        today="`FileNotFoundError`, `num_samples should be a positive integer value, but got num_samples=0`, or an "
        "epoch of no batches without any error.",
        cause="The mount came later than the program; an unmounted mount point is an empty folder.",
        promise="`wait_for(path, non_empty=True, timeout=...)` waits for it; an empty data set, or a stream without an "
        "item, is an error unless `allow_empty=True`.",
        remedy="Check `len(dataset) > 0`, and wait for a file that is known to be there.",
        patterns=(
            r"num_samples should be a positive integer value, but got num_samples=0",
            r"No such file or directory: '[/\\][^'\n]*'",
            r"(empty|0 batches|no batches)[^\n]{0,40}(epoch|data ?set|mount)",
        ),
        codes=("HF401", "HF402"),
    ),
    Failure(
        "F47",
        "ranks see different files",
        today="20 files on one rank and 21 on another; one rank waits in a collective at the end of the epoch.",
        cause="Each rank lists the folder itself, in the file system's order, at another moment.",
        promise="`manifest(path)` is one frozen, sorted list for all ranks and workers.",
        remedy="List on rank 0, sort, and `torch.distributed.broadcast_object_list`.",
        patterns=(
            r"ranks?[^\n]{0,60}different (number|files|lengths?|data)",
            r"(listdir|glob)[^\n]{0,60}(order|ranks?)",
        ),
    ),
    Failure(
        "F48",
        "storage fails for a moment",
        today="`OSError: [Errno 5] Input/output error`, `Stale file handle`, `Read timed out`, a 503 from S3, once in "
        "a million reads.",
        cause="Network storage fails now and then, and succeeds when asked again.",
        promise="`on_error=Retry(3, on=OSError)`: with growing pauses, while other workers go on.",
        remedy="Retry in `__getitem__` with a pause; for S3 set the client's retries.",
        patterns=(
            r"\[Errno 5\] Input/output error",
            r"\[Errno 116\] Stale file handle",
            r"Read timed out|Connection aborted|Remote end closed connection",
            r"SlowDown|503 Service Unavailable|EndpointConnectionError|Temporary failure in name resolution",
        ),
    ),
    Failure(
        "F49",
        "the pin-memory thread dies",
        today="`RuntimeError: Pin memory thread exited unexpectedly`.",
        cause="torch pins batches in a thread of the trainer; its error is printed at best, and the loader learns "
        "only that it is gone.",
        promise="the error of pinning itself is raised.",
        remedy="`pin_memory=False` shows whether pinning is the cause; then `batch.pin_memory()` in the trainer shows "
        "the error.",
        patterns=(r"Pin memory thread exited unexpectedly", r"Caught \w+ in pin memory thread"),
        available=False,
    ),
    Failure(
        "F50",
        "a dead worker is not noticed: SIGCHLD is ignored",
        today="The loader waits for ever for a worker that has died.",
        cause="The program, or a library, ignores SIGCHLD or replaced torch's handler, which is how torch learns of "
        "deaths.",
        promise="Each worker has a sentinel of its own: SIGCHLD is neither used nor touched.",
        remedy="`signal.signal(signal.SIGCHLD, signal.SIG_DFL)` before the loader is made.",
        patterns=(r"SIGCHLD", r"No child processes"),
    ),
    Failure(
        "F51",
        "workers outlive a killed trainer",
        today="After `kill -9` of the trainer its workers hold memory for half a minute and longer.",
        cause="torch's workers look for their parent only between batches.",
        promise="Workers end within a second of the trainer, also when they are busy.",
        remedy="End them by pid (`ps --ppid 1` shows who has lost its parent); `prctl(PR_SET_PDEATHSIG)` in "
        "`worker_init_fn`.",
        patterns=(r"orphan(ed)? (workers?|process(es)?)", r"workers? (live on|outlive|survive|remain|still running)"),
    ),
    Failure(
        "F52",
        "a pause and noise at the end of an epoch",
        today="Five seconds after `break` or at exit; `AssertionError: can only test a child process`; zombies.",
        cause="torch joins busy workers for up to 5 seconds each, in `__del__`, at a moment that the garbage "
        "collector chooses.",
        promise="Closing takes at most half a second with busy workers, and is silent.",
        remedy="`del iterator` right after `break`; `persistent_workers=True` saves the joins between epochs.",
        patterns=(
            r"can only test a child process",
            r"_MultiProcessingDataLoaderIter\.__del__",
            r"<defunct>|zombies?",
            r"(pause|seconds|slow)[^\n]{0,40}(end of (the |an )?epoch|at exit|after break)",
        ),
    ),
    Failure(
        "F53",
        "Ctrl-C prints a traceback for every worker",
        today="As many `KeyboardInterrupt` tracebacks as workers, and processes that stay.",
        cause="The terminal signals the whole group: each worker is interrupted by itself.",
        promise="One traceback, the trainer's: workers ignore SIGINT and are ended by it.",
        remedy="`signal.signal(signal.SIGINT, signal.SIG_IGN)` in `worker_init_fn`.",
        patterns=(r"Process \w*Process-\d+:[\s\S]{0,4000}?KeyboardInterrupt", r"KeyboardInterrupt", r"ctrl.?c"),
    ),
    Failure(
        "F54",
        "next(iter(loader)) in the loop",
        today="Each step takes as long as starting all workers: 237 ms.",
        cause="`iter(loader)` begins an epoch: workers are started, fill their queues, and are thrown away after one "
        "batch.",
        promise="Said once (HF406), and the same workers are used again as long as nothing about them has changed.",
        remedy="Make the iterator once: `batches = iter(loader)`, then `next(batches)`.",
        patterns=(r"next\(iter\(\w*\)\)",),
        codes=("HF406",),
    ),
    Failure(
        "F55",
        "workers crowd each other out",
        today="`libgomp: Thread creation failed: Resource temporarily unavailable`; 16 workers on one core; OpenMP "
        "threads times workers.",
        cause="A library pinned the process to one core, and workers inherit that; each worker starts as many threads "
        "as there are cores.",
        promise="Workers may use all cores that the container allows, and have one thread each for numeric libraries.",
        remedy="`torch.set_num_threads(1)` and `os.sched_setaffinity(0, range(os.cpu_count()))` in `worker_init_fn`; "
        "`OMP_NUM_THREADS=1`.",
        patterns=(
            r"libgomp: Thread creation failed[^\n]*",
            r"pthread_create failed[^\n]*",
            r"OMP: Error #\d+",
            r"can't start new thread",
            r"(all )?workers (on|pinned to) one (core|cpu)",
        ),
    ),
)
