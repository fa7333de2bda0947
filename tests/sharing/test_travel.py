"""What is shared reaches every process, by whatever way, as the same memory."""

from __future__ import annotations

import gc
import multiprocessing
import pickle
import threading

import cloudpickle
import numpy
import pytest
import receivers
import torch
import torch.multiprocessing
from torch.utils.data import Dataset

from holdfast import DataLoader
from holdfast.sharing import SharedTensor, share

METHODS = ["fork", "spawn", "forkserver"]
MAKE = {"tensor": lambda: torch.ones(6), "array": lambda: numpy.ones(6)}


@pytest.fixture(params=MAKE)
def ones(request):
    return MAKE[request.param]


def finish(process) -> None:
    process.join(60)
    assert process.exitcode == 0
    process.close()


@pytest.mark.parametrize("method", METHODS)
def test_as_an_argument_of_a_process(kind, method, ones):
    x = share(ones())
    process = multiprocessing.get_context(method).Process(target=receivers.double, args=(x[2:],))
    process.start()
    finish(process)
    assert x.tolist() == [1, 1, 2, 2, 2, 2]


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_through_a_queue_and_a_pipe(kind, method, ones):
    x = share(ones())
    context = multiprocessing.get_context(method)
    ours, theirs = context.Pipe()
    queue = context.SimpleQueue()
    for source, put in ((queue, queue.put), (theirs, ours.send)):
        process = context.Process(target=receivers.double_what_comes, args=(source,))
        process.start()
        put(x[:3])
        finish(process)
    queue.close()
    ours.close()
    theirs.close()
    assert x.tolist() == [4, 4, 4, 1, 1, 1]


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_through_starmap_of_a_pool_two_workers_add_up_under_the_lock(method, ones):
    x = share(ones())
    total = share(numpy.zeros(1))
    with multiprocessing.get_context(method).Pool(2) as pool:
        pool.starmap(receivers.double_and_count, [(x[i : i + 1], total) for i in range(6)] * 3)
        pool.close()
        pool.join()
    assert total[0] == 18
    assert x.tolist() == [8] * 6


@pytest.mark.once
@pytest.mark.parametrize("dumps", [pickle.dumps, cloudpickle.dumps], ids=["pickle", "cloudpickle"])
def test_by_a_plain_pickle_to_a_process_that_is_no_relation(kind, dumps, ones):
    x = share(ones())
    assert receivers.in_new_interpreter(x[1:], "x += 1; print(type(x).__name__)", dumps) == type(x).__name__
    assert x.tolist() == [1, 2, 2, 2, 2, 2]


def test_an_inherited_one_needs_no_pickle(kind, ones):
    x = share(ones())
    process = multiprocessing.get_context("fork").Process(target=lambda: receivers.double(x))
    process.start()
    finish(process)
    assert x.tolist() == [2] * 6


def test_threads_share_it_anyway(ones):
    x = share(ones())
    thread = threading.Thread(target=receivers.double, args=(x,))
    thread.start()
    thread.join()
    assert x.tolist() == [2] * 6


@pytest.mark.slow
def test_a_view_that_a_function_made_goes_through_torchs_own_queue_as_the_same_memory():
    x = share(torch.ones(6))
    context = torch.multiprocessing.get_context("spawn")
    queue = context.SimpleQueue()
    process = context.Process(target=receivers.double_what_comes, args=(queue,))
    process.start()
    part = torch.narrow(x, 0, 3, 3)
    assert type(part) is torch.Tensor
    queue.put(part)
    finish(process)
    queue.close()
    from multiprocessing.resource_sharer import stop

    stop()  # multiprocessing's own thread
    assert x.tolist() == [1, 1, 1, 2, 2, 2]


def test_a_process_that_gets_it_twice_maps_it_once(ones):
    x = share(ones())
    first, second = pickle.loads(pickle.dumps((x[:2], x[2:])))
    again = pickle.loads(pickle.dumps(x))
    again[0] = again[2] = 9
    assert first[0] == second[0] == 9


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_it_may_be_dropped_as_soon_as_it_was_sent(kind, method):
    """The receivers are started first and wait, so they open it after it was dropped here."""
    context = multiprocessing.get_context(method)
    queues, answers = [context.Queue() for _ in range(3)], context.Queue()
    started = [context.Process(target=receivers.read_what_comes, args=(queue, answers)) for queue in queues]
    for queue in queues:
        queue.put(share(torch.arange(4)))
    x = share(torch.arange(4))
    for queue in queues:
        queue.put(x)
    del x
    gc.collect()
    for process in started:
        process.start()
    assert [answers.get(timeout=60) for _ in started] == ["tensor([0, 1])"] * 3
    for queue, process in zip(queues, started):
        finish(process)
        receivers.read_what_comes(queue, answers)
        assert answers.get(timeout=60) == "tensor([0, 1])"
    for queue in (*queues, answers):
        queue.close()
        queue.join_thread()


@pytest.mark.slow
def test_it_goes_on_from_a_process_that_ends(kind):
    """The third one finds it at the second one's, and else at the first one's."""
    x = share(torch.ones(4))
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=receivers.pass_on, args=(x, theirs))
    process.start()
    sent = ours.recv_bytes()
    ours.send(None)
    finish(process)
    ours.close()
    theirs.close()
    answer = receivers.in_new_interpreter(0, f"x = pickle.loads({bytes(sent)!r}); x += 1; print(len(x))")
    assert answer == "3"
    assert x.tolist() == [1, 2, 2, 2]


class Marks(Dataset):
    """Writes to its array, so that the trainer can see who was there."""

    def __init__(self) -> None:
        self.seen, self.paths = torch.zeros(32), [f"/data/{i}" for i in range(2000)]

    def __len__(self) -> int:
        return 32

    def __getitem__(self, index: int):
        self.seen[index] += 1
        return self.seen[index], self.paths[index]


STARTS = [{"start": start} for start in ("zygote", "standby", "fork", "spawn")]
STARTS += [{"multiprocessing_context": "forkserver"}, {"workers": "thread"}]


@pytest.mark.parametrize("how", STARTS, ids=lambda how: next(iter(how.values())))
def test_workers_of_a_loader_write_what_the_trainer_sees(how):
    dataset = share(Marks())
    loader = DataLoader(dataset, batch_size=4, num_workers=2, timeout=60, **how)
    for epoch in range(2):
        batches = list(loader)
        assert torch.cat([marks for marks, _ in batches]).tolist() == [epoch + 1] * 32
        assert [path for _, paths in batches for path in paths] == [f"/data/{i}" for i in range(32)]
    assert dataset.seen.tolist() == [2] * 32


@pytest.mark.parametrize("start", ["zygote", "fork"])
def test_workers_find_it_by_name(names, start):
    test_workers_of_a_loader_write_what_the_trainer_sees({"start": start})
    gc.collect()
    assert names() == []


def test_a_sample_that_is_a_view_comes_as_the_same_memory():
    dataset = share(Marks())
    loader = DataLoader(dataset, batch_size=None, num_workers=1, timeout=60, collate_fn=lambda sample: sample[0][None])
    for sample in loader:
        assert isinstance(sample, SharedTensor)
        sample += 10
    assert dataset.seen.tolist() == [11] * 32


@pytest.mark.slow
def test_a_model_is_one_for_all(kind):
    model = share(torch.nn.Sequential(torch.nn.Linear(4, 2)))
    context = multiprocessing.get_context("spawn")
    answers = context.Queue()
    for started in [context.Process(target=receivers.run_model, args=(model, answers)) for _ in range(2)]:
        started.start()
        with torch.no_grad():
            expected = model(torch.ones(1, 4)).sum().item()
        assert answers.get(timeout=60) == pytest.approx(expected)
        finish(started)
        with torch.no_grad():  # each adds one to the two elements of the bias
            assert model(torch.ones(1, 4)).sum().item() == pytest.approx(expected + 2)
    answers.close()
    answers.join_thread()
