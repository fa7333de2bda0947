"""Failures of pools, shared memory, ranks and resumed runs. Not all of their promises are kept in this version."""

from __future__ import annotations

from .failure import Failure

BEYOND = (
    Failure(
        "F60",
        "Pool.map waits for ever when a worker is killed",
        today="`Pool.map` never returns after a worker was killed.",
        cause="`multiprocessing.Pool` starts a new worker and forgets the task that the old one had.",
        promise="`holdfast.Pool`: that task is tried again in a new worker (`retries=1`), or fails alone with the "
        "reason; the rest complete.",
        remedy="`concurrent.futures.ProcessPoolExecutor` notices, and fails as a whole (F61).",
        patterns=(
            r"Pool\.(map|imap|starmap|apply)[^\n]{0,60}(hang|wait|stuck|never returns)",
            r"(hang|wait|stuck)[^\n]{0,60}Pool\.(map|imap|starmap)",
        ),
        codes=("HF901",),
    ),
    Failure(
        "F61",
        "BrokenProcessPool: everything is lost",
        today="`BrokenProcessPool: A process in the process pool was terminated abruptly while the future was running "
        "or pending.`",
        cause="One worker ended; `ProcessPoolExecutor` cannot tell whose task it had and fails all of them.",
        promise="`holdfast.Executor`: that task is tried again in a new worker (`retries=1`), or fails alone with "
        "the reason; all others complete, and it takes more.",
        remedy="Keep the list of tasks, make a new executor, and submit what is not done.",
        patterns=(r"BrokenProcessPool", r"A process in the process pool was terminated abruptly[^\n]*"),
        codes=("HF901", "HF903"),
    ),
    Failure(
        "F62",
        "a shared array cannot be passed to a pool",
        today="`RuntimeError: SynchronizedArray objects should only be shared between processes through inheritance`.",
        cause="`mp.Array`, `Value` and `Lock` travel only while a process is being started.",
        promise="What `share` made passes as an argument, as often as one likes. `x.lock` is given back by the kernel "
        "when its holder is killed.",
        remedy="Hand it over once: `Pool(initializer=set_array, initargs=(array,))`.",
        patterns=(r"should only be shared (between processes )?through inheritance",),
    ),
    Failure(
        "F63",
        "a tensor passed to a pool becomes shared",
        today="A worker of `torch.multiprocessing.Pool` writes to a tensor, and the trainer's tensor changes.",
        cause="torch's pickling moves the memory of a tensor into shared memory, silently.",
        promise="A worker of `holdfast.Pool` has a copy, of a slice no more than that. Sharing is asked for: "
        "`share(x)`, or torch's `x.share_memory_()`.",
        remedy="Pass `tensor.clone()` or a numpy array.",
        patterns=(
            r"tensor[^\n]{0,60}(silently|becomes?|becoming) (a )?shared",
            r"(pool|worker) (changes|modifies|overwrites)[^\n]{0,40}tensor",
        ),
    ),
    Failure(
        "F64",
        "SharedMemory leaks, or is read after it was closed",
        today="`resource_tracker: There appear to be 1 leaked shared_memory objects to clean up at shutdown`, a "
        "segfault after `close()`, or memory left in `/dev/shm`.",
        cause="The name outlives its makers until somebody unlinks it; a numpy view does not keep the mapping.",
        promise="`share(x)`: every view keeps the memory, so nothing can be used after it was closed, and nothing is "
        "left when everybody was killed. A data set that holds it is one copy however workers are started.",
        remedy="One owner that unlinks in `finally`; copy out of the array before `close()`.",
        patterns=(
            r"leaked shared_memory objects?[^\n]*",
            r"resource_tracker[^\n]{0,80}leaked",
            r"SharedMemory[^\n]{0,60}(leak|segfault|unlink|close)",
        ),
        codes=("HF701",),
    ),
    Failure(
        "F65",
        "a model cannot be loaded in ranks, and the run looks successful",
        today="`Weights only load failed`, swallowed in a child; exit status 0.",
        cause="`torch.load` refuses whole models since torch 2.6, and the error of a child is not looked at.",
        promise="`holdfast.spawn` raises what a rank raised. `share(model)` moves the weights into memory that all "
        "processes map, and the model is an argument: `spawn(label, (model,), nprocs=4)`.",
        remedy="Save and load a `state_dict`; check `exitcode` of every process.",
        patterns=(r"Weights only load failed[^\n]*", r"weights_only"),
        codes=("HF801",),
    ),
    Failure(
        "F66",
        "spawn reports success for a rank that ended early",
        today="`torch.multiprocessing.spawn` returns although a rank left with status 0, or was interrupted, before "
        "its work was done; or `ProcessExitedException: process 1 terminated with signal SIGKILL`; or the error of a "
        "rank that failed because of another.",
        cause="Status 0 counts as success, whatever was done before; and processes are waited for, not failures.",
        promise="`holdfast.spawn`: whoever did not return has failed. The error is that of the rank that failed first, "
        "as itself or with the evidence of its death; the others are ended, and none outlives its parent.",
        remedy="Let each rank write a mark when it is done, and look for all of them.",
        patterns=(
            r"ProcessExitedException[^\n]*",
            r"process \d+ terminated with (exit code|signal)[^\n]*",
            r"ProcessRaisedException",
        ),
        codes=("HF801", "HF802"),
    ),
    Failure(
        "F67",
        "hundreds of tensors as results of a pool hit the descriptor limit",
        today="`Too many open files` from a pool that returns tensors, then silence.",
        cause="Each tensor in flight holds a descriptor.",
        promise="Results of `holdfast.Pool` travel through memory that needs no descriptor each, however many are "
        "kept.",
        remedy='Return numpy arrays, or `torch.multiprocessing.set_sharing_strategy("file_system")`.',
        patterns=(r"\bpool\b[\s\S]{0,4000}?Too many open files[^\n]*",),
    ),
    Failure(
        "F68",
        "a function under the main guard is not found by a pool",
        today="`Process SpawnPoolWorker-1: ... Can't get attribute 'work' on <module '__mp_main__'>`, again and "
        "again, and `map` never returns.",
        cause="The worker imports the script without what is under the guard, fails, and is replaced for ever.",
        promise="`holdfast.Pool` sends the function itself: under the guard, without a guard, lambdas and "
        "closures too.",
        remedy='Define the function above `if __name__ == "__main__":`.',
        patterns=(
            r"SpawnPoolWorker-\d+[\s\S]{0,4000}?Can't get attribute '?[\w.<>]+'? on <module[^\n]*",
            r"Can't get attribute '?[\w.<>]+'? on <module '__mp_main__'",
        ),
    ),
    Failure(
        "F69",
        "a pool's task without end",
        today="`multiprocessing.context.TimeoutError` from `get(timeout=...)`; the worker stays busy for ever.",
        cause="`get` stops waiting; nobody ends the task.",
        promise="`Pool(task_timeout=60)`, or `timeout=` of a call: it is stopped, or ended with its worker where that "
        "does not help, and fails with the place it was at. The worker is free, or replaced.",
        remedy="`pool.terminate()` ends all; a limit inside the task needs `signal.alarm`.",
        patterns=(
            r"multiprocessing\.context\.TimeoutError",
            r"(task|future)[^\n]{0,40}(never ends|without end|runs for ?ever)",
        ),
        codes=("HF902",),
    ),
    Failure(
        "F80",
        "no resume in the middle of an epoch",
        today="After a restart the epoch begins anew, or skips through hours of data: `'DataLoader' object has no "
        "attribute 'state_dict'`. torchdata: `AssertionError`, without a word, with another number of workers; "
        "`naively fast-forwarding your dataset by 90000 steps`.",
        cause="torch's loader has no state. torchdata's `StatefulDataLoader` keeps one per worker, and ignores a load "
        "after `iter()`.",
        promise="`loader.state_dict()` and `load_state_dict()`, and the very next batch comes with the same random "
        "numbers: for any number of workers, and of ranks with holdfast's `DistributedSampler`. At once with "
        "`shuffle=`; other samplers take up their own state, or are asked again for their indices, and nothing is "
        "fetched. An iterable data set takes up its own state, or is read again and compared: with as many workers as "
        "before or, divided by `shard=`, with any number. What cannot be exact is an error that says so, and so is a "
        "load after `iter()`.",
        remedy="Save the number of batches and skip them with the same seed; or `torchdata.stateful_dataloader` with "
        "the same `num_workers`, loaded before `iter()`.",
        patterns=(
            r"'DataLoader' object has no attribute '(load_)?state_dict'",
            r"(stateful_dataloader\.py\", line [\s\S]{0,4000}?)?assert self\._num_workers == state_dict[^\n]*",
            r"State doesn't contain key '\w+' expected for (multi|single )process dataloader",
            r"Neither dataset nor iter\(dataset\) defines state_dict[^\n]*",
            r"naively fast-forwarding your dataset[^\n]*",
            r"last_yielded_worker_id does not match[^\n]*",
            r"resuming from a checkpoint that ended before the epoch ended[^\n]*",
            r"Will skip the first \d+ (epochs|batches)[^\n]*",
            r"resum(e|ing)[^\n]{0,60}(epoch|loader|training)",
            r"continu(e|ing) (the )?training[^\n]{0,40}(batch|epoch|left off|stopped)",
            r"(sav|restor|checkpoint)(e|ing)?\b[^\n]{0,30}\b(data ?loader|sampler)\b",
            r"state_dict[^\n]{0,30}\b(data ?loader|sampler)\b",
            r"StatefulDataLoader",
            r"skip_first_batches",
            r"mid.epoch",
        ),
        codes=("HF602", "HF603", "HF604"),
    ),
    Failure(
        "F81",
        "a resumed run repeats or drops samples",
        today="Some samples come twice, or not at all, after a restart.",
        cause="Workers were ahead of the training loop when the state was saved: what was prefetched counts as seen. "
        "Or they have copies of the data set, and the trainer's own has not moved.",
        promise="`loader.state_dict()` is that of the last batch that was given, wherever sampler and workers are. A "
        "loop that fetches ahead says how many it has trained on: `state_dict(at=steps)`.",
        remedy="Count batches in the training loop, not in the sampler or the data set.",
        patterns=(
            r"(resum|restart|checkpoint)[^\n]{0,80}(repeats?|drops?|twice|skips?|duplicat)[^\n]{0,30}(samples?|batch)",
            r"(samples?|batch(es)?)[^\n]{0,40}(repeated|dropped|twice|missing|skipped|duplicat)[^\n]{0,40}"
            r"(resum|restart|checkpoint)",
            r"prefetch[^\n]{0,60}(lost|dropped|skipped|missing)",
        ),
        codes=("HF604",),
    ),
    Failure(
        "F82",
        "accelerate and HF Trainer replace the loader",
        today="Options of a loader of your own have no effect after `accelerator.prepare(loader)`.",
        cause="They make a plain torch DataLoader from its attributes.",
        promise="an adapter keeps the loader, and a warning says when it was replaced.",
        remedy="Look at `type(loader)` after `prepare`; `accelerator.prepare_data_loader` with "
        "`dispatch_batches=False`.",
        patterns=(r"accelerat(e|or)[^\n]{0,80}(loader|prepare)",),
        available=False,
    ),
    Failure(
        "F83",
        "Lightning makes the loader anew",
        today="`Trying to inject custom DistributedSampler into the loader ... fails`, or private options are lost.",
        cause="Lightning rebuilds loaders from their attributes to change the sampler; it saves the state of rank 0 "
        "only.",
        promise="options survive, and state is the same on all ranks.",
        remedy="`Trainer(use_distributed_sampler=False)` and a sampler of your own.",
        patterns=(r"Trying to inject (custom|parameters)[^\n]*", r"lightning[^\n]{0,60}(loader|sampler)"),
        available=False,
    ),
    Failure(
        "F84",
        "ranks have unequal shares",
        today="`Watchdog caught collective operation timeout`, or with gloo `Timed out waiting 1800000ms for recv "
        "operation to complete`: one rank waits for another at the end. Or tail samples come twice, or never.",
        cause="`DistributedSampler` repeats or drops samples to make shares equal; shares that are cut otherwise are "
        "unequal, and so are shards of an iterable data set.",
        promise='holdfast\'s `DistributedSampler(dataset, tail="exact")`: each sample once, and equal numbers of '
        "steps. An iterable data set has no length to deal by: there it is up to the data set.",
        remedy="`drop_last=True`, or `torch.distributed.algorithms.join.Join` for unequal ends.",
        patterns=(
            r"Watchdog caught collective operation timeout[^\n]*",
            r"Timed out waiting \d+ ?ms for (recv|send) operation to complete",
            r"(uneven|unequal|different)[^\n]{0,30}(lengths?|batches|steps|shards|inputs)[^\n]{0,30}\branks?\b",
            r"DistributedSampler",
            r"uneven (shards|inputs)",
        ),
    ),
    Failure(
        "F85",
        "which num_workers?",
        today="`This DataLoader will create 16 worker processes in total. Our suggested max number of worker in "
        "current system is 2`.",
        cause="torch compares with the cores this process may use; what is best depends on the data set.",
        promise='`num_workers="auto"` measures.',
        remedy="`holdfast doctor train.py` loads the same samples with 0, 1, 2, 4 … workers and says how many to use, "
        "and why; torch's loader or ours. By hand: begin with the number of cores you may use "
        "(`len(os.sched_getaffinity(0))`) divided by the ranks on the machine, and measure.",
        patterns=(
            r"This DataLoader will create \d+ worker processes[^\n]*",
            r"suggested max number of worker[^\n]*",
            r"(how many|which|best) num_workers",
        ),
        available=False,
    ),
    Failure(
        "F86",
        "is the accelerator waiting for data?",
        today="Low utilisation; Lightning: `does not have many workers which may be a bottleneck`.",
        cause="Nothing in torch tells time in the loader from time in the model.",
        promise="numbers and a verdict from the loader itself.",
        remedy="`holdfast run train.py` says at the end how much of its time the program waited for data, `holdfast "
        "doctor train.py` what holds loading back. By hand: time `next(batches)` in the loop; compare with a run on "
        "one batch that is used again and again.",
        patterns=(
            r"does not have many workers which may be a bottleneck[^\n]*",
            r"Consider increasing the value of the `?num_workers`?[^\n]*",
            r"(GPU|accelerator)[^\n]{0,40}(waiting|idle|utili[sz]ation|starv)",
        ),
        available=False,
    ),
    Failure(
        "F87",
        "breakpoint() in a worker",
        today="`bdb.BdbQuit`, at once.",
        cause="A worker's standard input is `/dev/null`: the debugger reads an end of file.",
        promise="A prompt on the trainer's terminal, for one worker at a time; the others go on. Without a terminal it "
        "is explained, and the program goes on. `holdfast replay TARGET INDEX --pdb` stops in one sample, with the "
        'random numbers that it had; `on_error="debug"` stops where one raises.',
        remedy="`num_workers=0`, or `dataset[index]` in the trainer.",
        patterns=(r"bdb\.BdbQuit|BdbQuit", r"breakpoint\(\)|set_trace\(\)"),
        codes=("HF210",),
    ),
)
