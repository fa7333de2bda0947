"""In shipments, batches and arguments what is shared goes by reference, and nothing else becomes shared by going."""

from __future__ import annotations

import gc
import multiprocessing
import os
import pickle

import numpy
import pytest
import torch

from holdfast import DataLoader, share
from holdfast._transport.packer import Packer, Taken, describe, put_together
from holdfast.errors import SharedGone
from holdfast.sharing import SharedTensor, flight
from holdfast.sharing.arguments import Arguments

BIG = 1 << 20


def take_apart(value, packer=Packer):
    taken = Taken()
    packer(taken).dump(value)
    return taken.getvalue(), *describe(taken.found)


def carried(parts) -> tuple[bytes, list, list[bytes]]:
    """What goes to another process; the regions as they would lie there."""
    skeleton, leaves, regions = parts
    return skeleton, leaves, [region.bytes() for region in regions]


def put(skeleton, leaves, regions):
    buffers = [bytearray(region) for region in regions]
    return put_together(skeleton, [leaf.rebuild(buffers, [0] * len(buffers)) for leaf in leaves])


def size(parts) -> int:
    return len(parts[0]) + sum(region.size for region in parts[2])


def worker(connection) -> None:
    """Puts arguments together, adds one to all of them, and says what it has."""
    kept = []
    while sent := connection.recv():
        try:
            values = put(*sent)
            for value in values:
                value += 1
            kept.append(values)
            connection.send([value.tolist() for value in values])
        except SharedGone as error:
            connection.send(str(error))


@pytest.fixture
def elsewhere():
    """A process that was there before anything was shared, so it has inherited nothing."""
    gc.collect()
    ours, theirs = multiprocessing.get_context("fork").Pipe()
    process = multiprocessing.get_context("fork").Process(target=worker, args=(theirs,))
    process.start()
    yield lambda parts: (ours.send(carried(parts)), ours.recv())[1]
    ours.send(None)
    process.join()
    process.close()
    ours.close()
    theirs.close()


@pytest.fixture(scope="session")
def manager():
    """A process that stays, by design of torch: here before a test looks around."""
    before = torch.multiprocessing.get_sharing_strategy()
    torch.multiprocessing.set_sharing_strategy("file_system")
    torch.zeros(1).share_memory_()
    torch.multiprocessing.set_sharing_strategy(before)


@pytest.fixture(params=["file_descriptor", "file_system"])
def strategy(request, manager):
    before = torch.multiprocessing.get_sharing_strategy()
    torch.multiprocessing.set_sharing_strategy(request.param)
    yield request.param
    torch.multiprocessing.set_sharing_strategy(before)


MAKE = {
    "tensor": lambda: share(torch.zeros(BIG)),
    "array": lambda: share(numpy.zeros(BIG)),
    "view by a function": lambda: torch.narrow(share(torch.zeros(BIG)), 0, 5, BIG - 5),
    "parameter": lambda: share(torch.nn.Linear(1000, 1000)).weight.requires_grad_(False),
}


@pytest.mark.parametrize("packer", [Packer, Arguments])
@pytest.mark.parametrize("name", MAKE)
def test_what_is_shared_goes_by_reference(name, packer, elsewhere):
    x = MAKE[name]()
    x -= x
    parts = take_apart([x[:3]], packer)
    assert size(parts) < 2000
    assert elsewhere(parts) == [x[:3].tolist()]
    assert x.sum() == x[:3].sum() > 0


def test_a_read_only_view_by_a_function_goes_by_reference():
    x = share(torch.arange(4.0), readonly=True)
    assert put(*carried(take_apart(torch.narrow(x, 0, 1, 2)))).tolist() == [1, 2]


def test_a_conjugate_view_goes_as_its_values():
    x = share(torch.tensor([1 + 2j]))
    assert put(*carried(take_apart(x.conj()))).tolist() == [1 - 2j]
    assert pickle.loads(pickle.dumps(share(x.conj()))).tolist() == [1 - 2j]


@pytest.mark.parametrize("packer", [Packer, Arguments])
def test_a_plain_tensor_is_copied_and_stays_plain(packer, elsewhere):
    x, array = torch.zeros(3), numpy.zeros(3)
    assert elsewhere(take_apart([x, array], packer)) == [[1] * 3] * 2
    assert not x.is_shared()
    assert x.tolist() == array.tolist() == [0] * 3


@pytest.mark.parametrize("packer", [Packer, Arguments])
def test_a_slice_of_a_plain_tensor_carries_only_itself(packer):
    x = torch.zeros(BIG)
    assert size(take_apart([x[5:8], {"rows": x.view(-1, 4)[:, :2][:7]}], packer)) < 2000


def test_a_tensor_that_torch_shares_stays_shared_as_an_argument(strategy, elsewhere):
    x = torch.zeros(BIG).share_memory_()
    parts = take_apart([x[2:4], x.view(-1, 2)[2]], Arguments)
    assert size(parts) < 2000
    assert elsewhere(parts) == [[1, 1], [1, 1]]
    assert x[:7].tolist() == [0, 0, 1, 1, 1, 1, 0]


def test_a_module_that_torch_shares_stays_shared_as_an_argument(elsewhere):
    model = torch.nn.Linear(100, 100).requires_grad_(False).share_memory()
    torch.nn.init.zeros_(model.bias)
    parts = take_apart([model.weight, model.bias], Arguments)
    assert size(parts) < 2000
    elsewhere(parts)
    assert model.bias.tolist() == [1] * 100


def test_it_comes_back_as_the_same_memory(strategy):
    x = torch.zeros(3).share_memory_()
    back = put(*carried(take_apart(x, Arguments)))
    assert back.untyped_storage().data_ptr() == x.untyped_storage().data_ptr()


def test_in_a_batch_it_is_copied():
    x = torch.zeros(BIG).share_memory_()
    assert size(take_apart([x])) > x.nbytes


def test_what_is_under_way_is_held_and_then_let_go(elsewhere):
    before = len(os.listdir("/proc/self/fd"))
    parts = carried(take_apart([torch.zeros(3).share_memory_()], Arguments))
    assert elsewhere((parts[0], parts[1], [])) == [[1] * 3]
    gc.collect()
    assert not flight._sent
    assert len(os.listdir("/proc/self/fd")) <= before + 1  # the log, until nothing that was sent lives


@pytest.mark.parametrize("make", [lambda: share(torch.zeros(3)), lambda: torch.zeros(3).share_memory_()])
def test_who_may_send_it_again_keeps_it_until_then(make, elsewhere):
    """What has arrived is held no longer by the way that it took."""
    x = [make()]
    parts = take_apart(x, Arguments)
    assert elsewhere(parts) == [[1] * 3]
    gc.collect()
    assert not flight._sent
    assert put(*carried(parts))[0].tolist() == [1] * 3
    x.clear()
    gc.collect()
    with pytest.raises(SharedGone):
        put(*carried(parts))


def test_a_number_that_was_given_to_another_file_is_not_taken_for_it(elsewhere):
    x = torch.zeros(3).share_memory_()
    parts = take_apart([x], Arguments)
    fd, _ = x.untyped_storage()._share_fd_cpu_()
    kept = os.dup(fd)
    with open("/dev/null") as other:
        os.dup2(other.fileno(), fd)
    assert "something else is there" in elsewhere(parts)
    os.dup2(kept, fd)
    os.close(kept)
    assert elsewhere(parts) == [[1] * 3]


class Rows(torch.utils.data.Dataset):
    def __init__(self) -> None:
        self.tensor, self.array = torch.arange(4000.0).view(4, 1000), numpy.arange(4000).reshape(4, 1000)

    def __len__(self) -> int:
        return 4

    def __getitem__(self, index: int):
        return self.tensor[index], {"row": self.array[index]}, self.array[index, :3]


@pytest.mark.parametrize("readonly", [False, True])
@pytest.mark.filterwarnings("error")
def test_rows_of_shared_ones_are_collated_as_plain_ones(readonly, capfd):
    plain = torch.utils.data.DataLoader(Rows(), batch_size=2)
    shared = DataLoader(share(Rows(), readonly=readonly), batch_size=2, num_workers=1, timeout=60)
    for (row, named, small), (its_row, its_named, its_small) in zip(plain, shared, strict=True):
        assert type(its_row) is type(its_named["row"]) is torch.Tensor
        for one, other in ((row, its_row), (named["row"], its_named["row"]), (small, its_small)):
            assert one.dtype == other.dtype
            assert torch.equal(one, other)
    assert "not writable" not in capfd.readouterr().err


def test_a_shared_row_that_is_the_batch_comes_as_the_same_memory():
    dataset = share(Rows())
    for number, (row, _, _) in enumerate(DataLoader(dataset, batch_size=None, num_workers=1, timeout=60)):
        assert isinstance(row, SharedTensor)
        row += 1
        assert dataset.tensor[number, 0] == 1000 * number + 1
