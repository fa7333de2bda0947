"""What is shared goes to tasks of a pool and comes back as the same memory, and nothing becomes shared by going."""

from __future__ import annotations

import gc
import os
import signal

import numpy
import pytest
import torch

from holdfast import Pool, TaskDied, share


def add(x, place, times):
    for _ in range(times):
        with x.lock:
            x[place] += 1


def add_and_die(x):
    with x.lock:
        x += 1
        os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.parametrize("make", [torch.zeros, numpy.zeros], ids=["tensor", "array"])
def test_two_workers_add_to_one_cell_and_the_total_is_exact(make):
    x = share(make(3))
    with Pool(2) as pool:
        pool.starmap(add, [(x, 1, 100)] * 8)
        pool.starmap(add, [(x[2:], 0, 1)] * 8)
    assert x.tolist() == [0, 800, 8]


def test_a_result_that_is_shared_is_the_same_memory():
    x = share(torch.zeros(4))
    with Pool(1) as pool:
        (part,) = pool.map(lambda x: x[1:3], [x])
    part += 1
    assert x.tolist() == [0, 1, 1, 0]


def test_a_result_that_was_shared_by_the_task_outlives_its_worker():
    with Pool(1) as pool:
        x = pool.apply(lambda: share(torch.ones(4)))
    pool.join()
    x += 1
    assert x.tolist() == [2] * 4


def test_it_may_be_dropped_as_soon_as_it_was_given():
    with Pool(1) as pool:
        results = [pool.apply_async(torch.sum, (share(torch.full((4,), float(i))),)) for i in range(20)]
        gc.collect()
        assert [result.get(60) for result in results] == [4.0 * i for i in range(20)]


def test_who_dies_with_the_lock_does_not_stop_the_others():
    x = share(torch.zeros(1))
    with Pool(2) as pool:
        with pytest.raises(TaskDied):
            pool.apply(add_and_die, (x,))
        pool.starmap(add, [(x, 0, 1)] * 4)
    assert x.item() == 5


def test_a_model_and_a_packed_list_are_arguments():
    model, paths = share(torch.nn.Linear(3, 1)), share([f"/data/{i}" for i in range(3000)])
    with Pool(1) as pool:
        assert pool.starmap(lambda model, x: model(x).tolist(), [(model, torch.ones(3))]) == [
            model(torch.ones(3)).tolist()
        ]
        assert pool.map(lambda i: paths[i], [5, 7]) == ["/data/5", "/data/7"]


def test_a_plain_tensor_is_a_copy_for_the_worker_and_stays_plain():
    tensor, array = torch.zeros(1000), numpy.zeros(1000)
    with Pool(1) as pool:
        assert pool.map(lambda x: float(x.__iadd__(1).sum()), [tensor, array, tensor[:3]]) == [1000, 1000, 3]
    assert not tensor.is_shared()
    assert tensor.sum() == array.sum() == 0


def test_what_torch_itself_has_shared_stays_shared():
    x = torch.zeros(4).share_memory_()
    with Pool(1) as pool:
        pool.map(lambda x: x.add_(1), [x[:2]])
    assert x.tolist() == [1, 1, 0, 0]


def die_once(x, mark):
    if not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return x.sum().item()


def test_a_task_that_is_tried_again_finds_what_was_dropped_meanwhile(tmp_path):
    with Pool(1, retries=1) as pool:
        result = pool.apply_async(die_once, (share(torch.ones(3)), tmp_path / "mark"))
        while not (tmp_path / "mark").exists():
            gc.collect()  # which is when it is noticed that the first worker has it
        gc.collect()
        assert result.get(60) == 3
