"""Messages through pipes: whole, in order, and never in the trainer's way."""

from __future__ import annotations

import math
import os
import random
import threading
from collections.abc import Callable, Iterator
from multiprocessing import Pipe

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast._system.waiting import WRITE, Waiter
from holdfast._transport.channel import ConnectionChannel, PipeChannel

Ends = tuple[PipeChannel, PipeChannel]


def ends(*, worker_blocks: bool = True) -> Ends:
    """The trainer's and the worker's."""
    (worker_reads, trainer_writes), (trainer_reads, worker_writes) = os.pipe(), os.pipe()
    trainer = PipeChannel(trainer_reads, trainer_writes, blocking=False)
    return trainer, PipeChannel(worker_reads, worker_writes, blocking=worker_blocks)


@pytest.fixture
def pair() -> Iterator[Ends]:
    both = ends()
    yield both
    for channel in both:
        channel.close()


def messages(seed: int, count: int, largest: int) -> list[bytes]:
    chance = random.Random(seed)
    return [chance.randbytes(int(largest ** chance.random())) for _ in range(count)]


def drain(channel: PipeChannel) -> Iterator[bytes]:
    """All messages, waiting in between, until the other end closes."""
    waiter = Waiter()
    waiter.watch(channel.fileno())
    while True:
        waiter.wait(10)
        try:
            yield from channel.receive()
        except EOFError:
            return


def in_thread(work: Callable[[], None]) -> threading.Thread:
    thread = threading.Thread(target=work)
    thread.start()
    return thread


@pytest.mark.parametrize("largest", [20, 5000, 1 << 20])
def test_messages_of_a_worker_arrive_whole_and_in_order(pair, largest):
    trainer, worker = pair
    sent = [b"", *messages(1, 100, largest), b"", bytes(largest), b"last"]

    def work() -> None:
        for message in sent:
            worker.send(message)
        worker.close()

    thread = in_thread(work)
    assert list(drain(trainer)) == sent
    thread.join()


@pytest.mark.parametrize("largest", [20, 5000, 1 << 20])
def test_messages_of_the_trainer_arrive_whole_and_in_order(pair, largest):
    trainer, worker = pair
    sent = [*messages(2, 100, largest), b"", bytes(largest)]
    got: list[bytes] = []
    thread = in_thread(lambda: got.extend(drain(worker)))
    for message in sent:
        trainer.send(message)
    waiter = Waiter()
    while (fd := trainer.backlog()) >= 0:
        waiter.watch(fd, WRITE)
        assert waiter.wait(10)
        trainer.flush()
    trainer.close()
    thread.join()
    assert got == sent


def test_the_trainer_is_never_held_up_by_a_worker_that_does_not_read(pair):
    trainer, worker = pair
    sent = [bytes([number]) * 50_000 for number in range(100)]
    for message in sent:
        trainer.send(message)
    assert trainer.backlog() >= 0
    trainer.flush()
    got: list[bytes] = []
    while len(got) < len(sent):
        got += worker.receive()
        trainer.flush()
    assert got == sent
    assert trainer.backlog() == -1


def test_the_trainer_is_never_held_up_by_a_message_that_is_not_complete(pair):
    trainer, worker = pair
    assert trainer.receive() == []
    os.write(worker._write_fd, (100_000).to_bytes(4, "little") + b"begin")
    assert trainer.receive() == []
    assert trainer.receive() == []


@settings(deadline=None, max_examples=50)
@given(
    sizes=st.lists(st.one_of(st.integers(0, 10), st.integers(0, 70_000)), min_size=1, max_size=12),
    cuts=st.lists(st.integers(1, 60_000), min_size=1, max_size=20),
)
def test_messages_arrive_however_the_bytes_are_cut(sizes, cuts):
    trainer, worker = ends(worker_blocks=False)
    sent = [random.Random(size).randbytes(size) for size in sizes]
    stream = b"".join(len(message).to_bytes(4, "little") + message for message in sent)
    got: list[bytes] = []
    turn = 0
    while stream:
        written = os.write(worker._write_fd, stream[: cuts[turn % len(cuts)]])
        stream, turn = stream[written:], turn + 1
        got += trainer.receive()
    worker.close()
    got += drain(trainer)
    assert got == sent
    trainer.close()


def test_the_end_is_told_after_the_last_message(pair):
    trainer, worker = pair
    worker.send(b"one")
    worker.send(bytes(200))
    worker.close()
    assert list(drain(trainer)) == [b"one", bytes(200)]
    with pytest.raises(EOFError):
        trainer.receive()


def test_to_send_to_someone_who_is_gone_is_harmless(pair):
    trainer, worker = pair
    worker.close()
    for _ in range(3):
        trainer.send(bytes(200_000))
    trainer.flush()
    assert trainer.backlog() == -1


def test_to_close_twice_is_harmless(pair):
    for channel in pair:
        channel.close()
        channel.close()


def test_the_portable_channel_does_the_same():
    ours, theirs = Pipe()
    trainer, worker = ConnectionChannel(ours), ConnectionChannel(theirs)
    sent = [b"one", *messages(3, 50, 1 << 20)]

    def work() -> None:
        for message in sent:
            worker.send(message)
        worker.close()

    thread = in_thread(work)
    assert list(drain(trainer)) == sent
    thread.join()
    trainer.close()


def test_a_moment_awake_ends_with_what_comes_or_with_sleep():
    waiter, (reads, writes) = Waiter(), os.pipe()
    waiter.watch(reads)
    assert waiter.wait_awake(0.01) == []
    os.write(writes, b"x")
    assert waiter.wait_awake(math.inf) == [reads]
    os.read(reads, 1)
    later = threading.Timer(0.05, os.write, (writes, b"x"))  # long after that moment
    later.start()
    assert waiter.wait_awake(math.inf) == [reads]
    later.join()
    os.close(reads)
    os.close(writes)
