"""Failures of samples, workers and memory while batches are loaded."""

from __future__ import annotations

from .failure import Failure

LOADING = (
    Failure(
        "F20",
        "one bad file ends the training",
        today="`Caught OSError in DataLoader worker process 0.` after days, for one truncated image.",
        cause="torch's loader raises the first error of any sample, and a worker's error ends the iteration.",
        promise="`on_error=` says what happens: raise (the default), `Retry`, `Skip`, `Replace`, with a limit. "
        "`loader.faults` has index, path and reason of each.",
        remedy="Catch the error in `__getitem__`, log the index, and return another sample. Returning None fails in "
        "collate.",
        patterns=(
            r"Caught(?= \w+ in DataLoader worker process)",
            r"image file is truncated",
            r"cannot identify image file",
            r"broken data stream when reading image file",
        ),
        codes=("HF206",),
    ),
    Failure(
        "F21",
        "a sample that is None",
        today="`default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found <class "
        "'NoneType'>`.",
        cause="`__getitem__` returned None, as a rule from an `except` that was meant to skip the sample.",
        promise="`NoneSample` names the index and the member. With a policy the `except` is not needed: let it raise.",
        remedy="A `collate_fn` that drops None: `default_collate([s for s in batch if s is not None])`; batches are "
        "then unequal.",
        patterns=(r"default_collate: batch must contain[^\n]*(NoneType[^\n]*)?",),
        codes=("HF303",),
    ),
    Failure(
        "F22",
        "a programming error is taken for bad data",
        today="Every sample is reported bad, or the epoch is empty, without any error.",
        cause="`except Exception` around the loading of a sample also catches `NameError`, `ImportError` and typing "
        "errors.",
        promise="Programming errors are never treated as bad data: they are raised at once, whatever the policy.",
        remedy="Catch what reading really raises, such as `(OSError, ValueError)`, and nothing wider.",
        patterns=(r"NameError: name '\w+' is not defined", r"(all|every) samples? (is|are|were) (bad|skipped)"),
    ),
    Failure(
        "F23",
        "samples that cannot be stacked, or a batch that is all bad",
        today="`stack expects each tensor to be equal size, but got [3, 20, 20] at entry 0 and [3, 21, 20] at entry "
        "1`.",
        cause="`default_collate` stacks; images of unequal size, lists of unequal length or different keys cannot be "
        "stacked.",
        promise="`UnequalSamples` has both indices, shapes and paths. With `Skip` the batch is filled up with other "
        "samples.",
        remedy="Resize or pad in the data set, or pass a `collate_fn` that pads (`torch.nn.utils.rnn.pad_sequence`).",
        patterns=(
            r"stack expects each tensor to be equal size[^\n]*",
            r"each element in list of batch should be of equal size",
            r"Trying to resize storage that is not resizable",
        ),
        codes=("HF304", "HF207"),
    ),
    Failure(
        "F24",
        "a transform fails: which one, on what?",
        today="A traceback deep inside a transform, without the position in `Compose`, the input or the file.",
        cause="The exception knows neither the list of transforms nor the sample it was given.",
        promise="A note on the error has the transform's name and position, the type and shape of its input, index and "
        "path.",
        remedy="Call `dataset[index]` in the trainer under a debugger; the index is not in torch's message.",
        patterns=(
            r'File "[^"\n]*(torchvision|albumentations)[^"\n]*transforms?[^"\n]*"',
            r"which transform",
            r"in Compose",
        ),
    ),
    Failure(
        "F25",
        "an exception arrives as another one",
        today="`RuntimeError: Caught MyError in DataLoader worker process 0.`; `errno`, `filename` and own attributes "
        "are gone.",
        cause="torch builds the exception anew from one string. A type that takes other arguments becomes a "
        "RuntimeError.",
        promise="The original type, attributes and traceback arrive.",
        remedy="Give the exception class a constructor that one string is enough for, and read its text.",
        patterns=(
            r"RuntimeError: Caught (?!RuntimeError)\w+ in DataLoader worker process \d+\.?",
            r"__init__\(\) missing \d+ required positional arguments?",
        ),
        codes=("HF204",),
    ),
    Failure(
        "F26",
        "a batch or an exception that cannot be pickled: silence",
        today="The loader waits for ever; perhaps a `PicklingError` from `queues.py`, `in _feed`, on stderr.",
        cause="torch's workers pickle in a thread behind a queue. When that fails the batch is dropped and nobody is "
        "told.",
        promise="`CannotSend` within seconds: which member of which batch, which samples.",
        remedy="`pickle.dumps(collate_fn([dataset[i] for i in indices]))` in the trainer; return tensors, arrays and "
        "plain types.",
        patterns=(r'multiprocessing.{1,3}queues\.py"?, line \d+, in _feed', r"Could not pickle object"),
        codes=("HF302", "HF204"),
    ),
    Failure(
        "F27",
        "StopIteration in a sample ends the epoch early",
        today="An epoch of 1 instead of 25 batches, without an error.",
        cause="`next()` on an exhausted iterator in `__getitem__` raises StopIteration, which torch takes for the end.",
        promise="`StopInItem` with the index; the count of every epoch is checked.",
        remedy="`next(iterator, default)`, or turn it into an IndexError.",
        patterns=(r"StopIteration", r"epoch (ends|ended|stops) (too )?early", r"fewer batches"),
        codes=("HF305", "HF209"),
    ),
    Failure(
        "F28",
        "a worker is killed",
        today="By chance one of: `DataLoader worker (pid(s) 123) exited unexpectedly`, `is killed by signal: Killed`, "
        "`ConnectionResetError: [Errno 104] Connection reset by peer`, an empty `EOFError`.",
        cause="Something sent SIGKILL: the kernel when memory ran out, a supervisor, a person. Which message is "
        "raised depends on which part of the loader notices first; none says why.",
        promise="The batch is loaded again by a new worker and the run goes on. The ledger says SIGKILL; when it was "
        "the kernel's OOM killer, it says so with the limit.",
        remedy="`dmesg -T | grep -i oom`, and `memory.events` of the cgroup, tell whether memory ran out: then fewer "
        "workers, a smaller `prefetch_factor`. Restart from a checkpoint.",
        patterns=(
            r"DataLoader worker \(pid\(s\) [\d, ]+\) exited unexpectedly",
            r"DataLoader worker \(pid \d+\) is killed by signal: (Killed|Terminated|Hangup)",
            r"ConnectionResetError: \[Errno 104\] Connection reset by peer",
            r"Connection reset by peer",
            r"EOFError",
            r"oom.?kill",
        ),
        codes=("HF201", "HF202"),
    ),
    Failure(
        "F29",
        "a decoder crashes",
        today="`DataLoader worker (pid 123) is killed by signal: Segmentation fault.` or *exited unexpectedly*.",
        cause="C code met data it cannot take, or two libraries in one process do not agree.",
        promise="The sample, the signal and the Python stack of the dying worker are named. The same sample twice is "
        "poison: an error in its turn, or under the policy.",
        remedy="`num_workers=0` with `python -X faulthandler` shows the line; print the index to find the file.",
        patterns=(
            r"DataLoader worker \(pid \d+\) is killed by signal: "
            r"(Segmentation fault|Aborted|Floating point exception|Illegal instruction)",
            r"Fatal Python error: (Segmentation fault|Aborted|Floating point exception|Illegal instruction)",
            r"exited unexpectedly",
            r"segfault|SIGSEGV|SIGABRT",
        ),
        codes=("HF201",),
    ),
    Failure(
        "F30",
        "a worker exits by itself",
        today="Five seconds of silence and *exited unexpectedly*, an EOFError, or nothing at all: the epoch counts as "
        "complete.",
        cause="`os._exit`, `sys.exit` or a KeyboardInterrupt in a sample ends the worker without an error to send.",
        promise="Noticed at once, with the exit status and where `sys.exit` was called; the sample is tried again, "
        "then an error.",
        remedy="Look for `exit` in the data set and in libraries it calls; raise an exception instead.",
        patterns=(
            r"Caught (SystemExit|KeyboardInterrupt) in DataLoader worker process",
            r"exited unexpectedly with exit code \d+",
            r"SystemExit: \d*",
        ),
        codes=("HF201",),
    ),
    Failure(
        "F31",
        "a worker hangs",
        today="Silence for ever; with `timeout=3`: `DataLoader timed out after 3 seconds`.",
        cause="A sample waits for a socket, a lock, a dead NFS mount, or runs in an endless loop. torch does not look.",
        promise="`WorkerStalled` in time, with worker, index, since when, Python stack, and what it waits for; then "
        "the policy. Healthy workers go on meanwhile.",
        remedy="`py-spy dump --pid PID` of the worker shows the line; give network calls a timeout.",
        patterns=(
            r"DataLoader timed out after [\d.]+ seconds",
            r"(worker|loader|training) (hangs|is stuck|freezes|stalls)",
        ),
        codes=("HF205", "HF203"),
    ),
    Failure(
        "F32",
        "/dev/shm is too small",
        today="`DataLoader worker (pid 123) is killed by signal: Bus error. It is possible that dataloader's workers "
        "are out of shared memory`, or `No space left on device`.",
        cause="torch's batches lie in `/dev/shm`, which has 64 MB in a container by default. Writing beyond it is "
        "SIGBUS.",
        promise="`/dev/shm` is not used. Memory is reserved before it is written: running out is `SharedMemoryFull` "
        "with numbers.",
        remedy="`docker run --shm-size=8g` or `--ipc=host`; in Kubernetes an `emptyDir` with `medium: Memory` at "
        "`/dev/shm`.",
        patterns=(
            r"killed by signal: Bus error[^\n]*",
            r"insufficient shared memory \(shm\)",
            r"unable to (write to|allocate shared memory\(shm\) for) file <[^>\n]*>[^\n]*",
            r"No space left on device",
            r"out of shared memory",
        ),
        codes=("HF301",),
    ),
    Failure(
        "F33",
        "too many descriptors or maps",
        today="`received 0 items of ancdata`, `OSError: [Errno 24] Too many open files`, `unable to mmap 67108864 "
        "bytes from file <...>: Cannot allocate memory (12)`.",
        cause="Each tensor of each batch that you keep holds a descriptor (or a map, with `file_system`); the limits "
        "are `ulimit -n` and `vm.max_map_count`.",
        promise="Descriptors and maps depend on the number of workers, not of batches: 10,000 kept batches with 256 "
        "descriptors.",
        remedy="`ulimit -n 65536`; keep `tensor.clone()` instead of the batch; `vm.max_map_count` for the mmap "
        "message.",
        patterns=(
            r"received \d+ items of ancdata",
            r"Too many open files",
            r"unable to mmap \d+ bytes from file[^\n]*Cannot allocate memory[^\n]*",
            r"unable to open shared memory object <[^>\n]*>[^\n]*Too many open files[^\n]*",
        ),
    ),
    Failure(
        "F34",
        "the sender of a tensor is gone before it is read",
        today="`ConnectionRefusedError`, `FileNotFoundError: ... /tmp/pymp-...` or `unable to open shared memory "
        "object </torch_...> in read-write mode: No such file or directory`.",
        cause="A tensor in a queue is only a ticket: its memory is fetched from the sender, which has ended.",
        promise="A batch that was announced outlives its worker: the trainer has its memory mapped from the start.",
        remedy="Keep the sender alive until the receiver has read (an Event); or send numpy arrays, which are copied.",
        patterns=(
            r"unable to open shared memory object <[^>\n]*>[^\n]*No such file[^\n]*",
            r"ConnectionRefusedError: \[Errno 111\]",
            r"No such file or directory: '[^'\n]*pymp-[^'\n]*'",
            r"rebuild_storage_fd[\s\S]{0,600}?(ConnectionResetError|FileNotFoundError|ConnectionRefusedError)",
        ),
    ),
    Failure(
        "F35",
        "memory grows as workers touch Python lists",
        today="587 MB of private memory in 2 workers for 3 million paths, growing during the first epoch.",
        cause="A forked worker shares pages until they are written; counting references writes to every Python object "
        "it reads.",
        promise="`share(dataset)` packs its long lists, dicts and strings, which read as before: one copy for all "
        "workers.",
        remedy="Keep paths in one numpy array of fixed-width strings, or in one bytes object with offsets.",
        patterns=(
            r"copy.on.write",
            r"memory (grows|growing|increases|keeps growing)[^\n]{0,60}(workers?|epoch)",
            r"refcount[^\n]{0,40}pages?",
        ),
    ),
    Failure(
        "F36",
        "a large trainer cannot fork",
        today="`OSError: [Errno 12] Cannot allocate memory` when workers start.",
        cause="`fork` of a process with much memory is refused when the system does not overcommit, although nothing "
        "is copied.",
        promise="The trainer is not forked: workers come from a small process.",
        remedy='Start workers before memory is filled, or use `"forkserver"`; `vm.overcommit_memory=1`.',
        patterns=(r"\[Errno 12\] Cannot allocate memory",),
    ),
    Failure(
        "F37",
        "a decoder leaks until memory is full",
        today="A worker's memory grows for days until the kernel kills it.",
        cause="A library leaks or fragments a little with each sample.",
        promise="A worker is replaced at the edge of a batch, after a number of batches or beyond a memory limit; no "
        "batch is lost.",
        remedy="End and begin the epoch anew now and then, without `persistent_workers`.",
        patterns=(r"memory leak", r"(leak|RSS|resident)[^\n]{0,40}(worker|grows|days)"),
    ),
)
