"""Batches on their way: F26, F32, F33, F34, F42, and memory that runs out."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import torch
from trainers import Ends, run, script, wait_until

from holdfast import CannotSend, DataLoader, RemoteError, SharedMemoryFull
from holdfast.testing import DiesAt, Faulty, RaisesAt


def flat(loader) -> list[int]:
    return [int(number) for batch in loader for number in batch]


def stories(loader) -> tuple[list, dict[int, Exception]]:
    """The batches that come, and the errors in the places of those that do not."""
    iterator, got, errors = iter(loader), [], {}
    while True:
        try:
            got.append(next(iterator))
        except StopIteration:
            return got, errors
        except Exception as error:
            errors[len(got) + len(errors)] = error


# -- F26 ---------------------------------------------------------------------------------------


class Locked:
    """Sample 5 has a member that no pickle takes."""

    def __len__(self):
        return 12

    def __getitem__(self, index):
        return {"index": index, "meta": {"lock": threading.Lock() if index == 5 else None}}


def test_a_batch_that_cannot_be_pickled_is_an_error_that_names_the_member_and_the_others_arrive():
    got, errors = stories(DataLoader(Locked(), batch_size=2, num_workers=2, collate_fn=list, timeout=30))
    assert [sample["index"] for batch in got for sample in batch] == [0, 1, 2, 3, 6, 7, 8, 9, 10, 11]
    assert list(errors) == [2]
    assert isinstance(errors[2], CannotSend)
    assert (errors[2].path, errors[2].kind) == ("batch[1]['meta']['lock']", "_thread.lock")
    assert "batch[1]['meta']['lock'] (_thread.lock) cannot be sent" in str(errors[2])
    assert any("batch 2" in note for note in errors[2].__notes__)


@pytest.mark.slow  # what stock torch does, which the gauntlet shows too
def test_today_a_batch_that_cannot_be_pickled_is_waited_for_in_vain(tmp_path):
    path = script(
        tmp_path,
        """
        import threading, torch
        class Locked:
            def __len__(self):
                return 4
            def __getitem__(self, index):
                return threading.Lock()
        list(torch.utils.data.DataLoader(Locked(), num_workers=1, collate_fn=list, multiprocessing_context="fork"))
        """,
    )
    assert run(path, limit=6).hung


class HoldsALock(Exception):
    def __init__(self, text, number):
        super().__init__(text)
        self.lock, self.number = threading.Lock(), number


def test_an_exception_that_cannot_be_pickled_is_told_with_its_text_and_attributes():
    dataset = Faulty(range(8), RaisesAt(3, lambda: HoldsALock("rotten", 42)))
    got, errors = stories(DataLoader(dataset, batch_size=2, num_workers=2, timeout=30))
    assert flat(got) == [0, 1, 4, 5, 6, 7]
    assert list(errors) == [1]
    error = errors[1]
    assert isinstance(error, RemoteError)
    assert error.kind.endswith("HoldsALock")
    assert error.text == "rotten"
    assert error.attributes["number"] == 42
    assert "strike" in error.traceback


# -- F32, F33 ----------------------------------------------------------------------------------

SMALL_ROOM = """
    import os, resource
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))
    free = os.statvfs("/dev/shm")
    assert free.f_blocks * free.f_frsize <= 1 << 20, "this is the machine's own /dev/shm"
    import torch
    from holdfast import DataLoader

    def used():
        return len(os.listdir("/proc/self/fd")), len(open("/proc/self/maps").readlines())
"""

BIG = (
    SMALL_ROOM
    + """
    class Images:
        def __len__(self):
            return 256 * 3
        def __getitem__(self, index):
            return torch.full((1,), float(index)).expand(3 * 224 * 224).view(3, 224, 224), index

    count = 0
    for images, labels in DataLoader(Images(), batch_size=256, num_workers=2, prefetch_factor=1):
        assert images.shape == (256, 3, 224, 224) and images.is_contiguous()
        assert labels.tolist() == list(range(count, count + 256))
        assert bool((images.flatten(1).amin(1) == labels).all() and (images.flatten(1).amax(1) == labels).all())
        count += 256
    print(count)
"""
)

KEPT = (
    SMALL_ROOM
    + """
    class Mixed:
        def __len__(self):
            return 10_000
        def __getitem__(self, index):
            return torch.full((4096 if index % 2 else 256,), float(index))

    list(DataLoader(range(8), num_workers=2))
    before = used()
    iterator = iter(DataLoader(Mixed(), batch_size=None, num_workers=2))
    kept = []
    for number, batch in enumerate(iterator):
        kept.append(batch)
        if number in (2_000, 7_000):
            iterator._workers[0].kill()
        if number % 1000 == 0:
            now = used()
            assert now[0] - before[0] < 100 and now[1] - before[1] < 100, (before, now)
    assert iterator.restarts == 2
    del iterator
    now = used()
    assert now[0] - before[0] < 100 and now[1] - before[1] < 100, (before, now)
    assert len(kept) == 10_000
    for index, batch in enumerate(kept):
        assert batch.numel() == (4096 if index % 2 else 256)
        assert float(batch[0]) == float(batch[-1]) == index
    print(now[0] - before[0], now[1] - before[1])
"""
)


@pytest.fixture
def small_room(tmp_path):
    """Runs a program where /dev/shm has one megabyte, as in a container, and 256 descriptors are allowed."""
    unshare = shutil.which("unshare")
    if unshare is None or subprocess.run([unshare, "-m", "true"], capture_output=True).returncode:
        pytest.skip("no mount namespace can be made here (it takes root)")

    def within(source: str):
        path = script(tmp_path, source)
        mount = 'mount -t tmpfs -o size=1m tmpfs /dev/shm && exec "$@"'
        command = [unshare, "-m", "sh", "-c", mount, "sh", sys.executable, str(path)]
        return run("-c", f"import os; os.execv({unshare!r}, {command!r})")

    return within


def test_batches_of_154_mb_pass_with_one_megabyte_of_dev_shm(small_room):
    assert small_room(BIG).ok().lines == ["768"]


@pytest.mark.slow
def test_ten_thousand_kept_batches_need_no_descriptors(small_room):
    ran = small_room(KEPT).ok()
    print(f"descriptors and maps more than before: {ran.out}")


@pytest.mark.slow  # what stock torch does, which the gauntlet shows too
def test_today_kept_batches_need_a_descriptor_each(tmp_path):
    path = script(
        tmp_path,
        """
        import resource, torch
        resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))
        data = torch.zeros(1000, 300)
        kept = list(torch.utils.data.DataLoader(data, num_workers=2, multiprocessing_context="fork"))
        """,
    )
    ran = run(path, limit=10)
    assert ran.status != 0
    assert ran.hung or "Too many open files" in ran.err or "ancdata" in ran.err


# -- F34 ---------------------------------------------------------------------------------------


class Blocks:
    def __len__(self):
        return 16

    def __getitem__(self, index):
        return torch.full((1 << 16,), float(index))


class Logged(Blocks):
    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __getitem__(self, index):
        (self.folder / f"{index} in {os.getpid()}").touch()
        return super().__getitem__(index)


@pytest.mark.parametrize("start", ["zygote", "fork"])
def test_batches_that_were_announced_outlive_their_workers(start, tmp_path):
    """All workers are killed when they have announced all they were given, and most of it has not been looked at."""
    iterator = iter(DataLoader(Logged(tmp_path), batch_size=2, num_workers=2, prefetch_factor=2, start=start))
    got = [next(iterator)]
    pids = [worker.pid for worker in iterator._workers]
    wait_until(lambda: all("pipe" in Path(f"/proc/{pid}/wchan").read_text() for pid in pids))
    ends = Ends(pids)
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    assert ends.wait(5) == []
    got += list(iterator)
    assert iterator.restarts == 2
    for number, batch in enumerate(got):
        assert batch.shape == (2, 1 << 16)
        assert bool((batch[0] == 2 * number).all())
        assert bool((batch[1] == 2 * number + 1).all())
    assert sorted(int(name.split()[0]) for name in os.listdir(tmp_path)) == list(range(16))  # nothing was loaded twice


@pytest.mark.parametrize("start", ["zygote", "fork"])
def test_batches_in_hand_stay_right_after_their_workers_are_gone_and_replaced(start):
    faults = [DiesAt(index, once=True) for index in (3, 9, 14)]
    kept = list(DataLoader(Faulty(Blocks(), *faults), batch_size=2, num_workers=2, start=start, timeout=60))
    assert len(kept) == 8
    for number, batch in enumerate(kept):
        assert bool((batch[0] == 2 * number).all())
        assert bool((batch[1] == 2 * number + 1).all())
    kept[0].fill_(7)  # and they are the user's own
    assert bool((kept[0] == 7).all())
    assert bool((kept[1][0] == 2).all())


# -- memory that runs out ----------------------------------------------------------------------


class Sizes:
    """Samples of one megabyte, but for one that is as big as told."""

    def __init__(self, big: int, at: int) -> None:
        self.big, self.at = big, at

    def __len__(self):
        return 12

    def __getitem__(self, index):
        return torch.full((1,), float(index)).expand(self.big >> 2 if index == self.at else 1 << 18)


def test_a_batch_over_max_shared_memory_is_an_error_with_numbers_and_the_others_arrive():
    loader = DataLoader(Sizes(64 << 20, 5), batch_size=1, num_workers=2, max_shared_memory=48 << 20, timeout=30)
    got, errors = stories(loader)
    assert [float(batch[0, 0]) for batch in got] == [index for index in range(12) if index != 5]
    assert list(errors) == [5]
    error = errors[5]
    assert isinstance(error, SharedMemoryFull)
    assert (error.wanted, error.limit, error.reason) == (64 << 20, 24 << 20, "max_shared_memory")
    assert "no room for 64.0 MiB" in str(error)
    assert "24.0 MiB" in str(error)


def test_batches_that_are_kept_too_long_are_an_error_and_letting_go_of_them_helps():
    iterator = iter(DataLoader(Sizes(0, -1), num_workers=1, prefetch_factor=1, max_shared_memory=4 << 20, timeout=30))
    kept, errors = [], []
    for _ in range(8):
        try:
            kept.append(next(iterator))
        except SharedMemoryFull as error:
            errors.append(error)
    assert 2 <= len(kept) < 8
    assert errors
    kept.clear()
    last = [float(batch[0, 0]) for batch in _but_errors(iterator)]
    assert last[-1] == 11


def _but_errors(iterator):
    while True:
        try:
            yield next(iterator)
        except SharedMemoryFull:
            pass
        except StopIteration:
            return


CONTAINED = """
    import os
    with open(os.environ["GROUP"] + "/cgroup.procs", "w") as file:
        file.write(str(os.getpid()))
    import torch
    from holdfast import DataLoader, SharedMemoryFull

    class Sizes:
        def __len__(self):
            return 8
        def __getitem__(self, index):
            return torch.full((1,), float(index)).expand((400 << 18) if index == 3 else (1 << 18))

    iterator, got, errors = iter(DataLoader(Sizes(), num_workers=2, prefetch_factor=1)), [], []
    while True:
        try:
            got.append(float(next(iterator)[0, 0]))
        except SharedMemoryFull as error:
            errors.append(error)
        except StopIteration:
            break
    assert iterator.restarts == 0
    assert got == [0, 1, 2, 4, 5, 6, 7], got
    assert len(errors) == 1 and errors[0].wanted == 400 << 20 and errors[0].reason == "memory", errors
    print(str(errors[0]).splitlines()[0])
    print(errors[0].limit - errors[0].held)
"""


@pytest.fixture
def memory_group():
    """A memory limit as a container has it: 600 MiB, of which the trainer and its workers take about half."""
    group = Path("/sys/fs/cgroup/memory") / f"holdfast-test-{os.getpid()}"
    try:
        group.mkdir()
        (group / "memory.limit_in_bytes").write_text(str(600 << 20))
    except OSError as error:
        pytest.skip(f"no memory group can be made here: {error}")
    inner = group / "inner"  # the limit is that of an outer group, as systemd and Kubernetes do it
    inner.mkdir()
    yield inner
    wait_until(lambda: not (inner / "cgroup.procs").read_text())
    inner.rmdir()
    group.rmdir()


def test_a_batch_over_the_limit_of_the_container_is_an_error_with_numbers(memory_group, tmp_path):
    ran = run(script(tmp_path, CONTAINED), GROUP=str(memory_group)).ok()
    assert ran.lines[0] == "no room for 400.0 MiB of shared memory [HF301]"
    assert 0 <= int(ran.lines[1]) < 400 << 20


ADDRESS_SPACE = """
    import os, resource
    import torch
    from holdfast import DataLoader, SharedMemoryFull

    class Sizes:
        def __len__(self):
            return 8
        def __getitem__(self, index):
            return torch.full((1,), float(index)).expand((1 << 30) if index == 3 else (1 << 18))

    def limit(worker):
        size = int(open("/proc/self/statm").read().split()[0]) * 4096
        resource.setrlimit(resource.RLIMIT_AS, (size + (1 << 30), resource.RLIM_INFINITY))

    iterator, got, errors = iter(DataLoader(Sizes(), num_workers=2, worker_init_fn=limit)), [], []
    while True:
        try:
            got.append(float(next(iterator)[0, 0]))
        except SharedMemoryFull as error:
            errors.append(error)
        except StopIteration:
            break
    assert got == [0, 1, 2, 4, 5, 6, 7], got
    assert len(errors) == 1, errors
    print(str(errors[0]).splitlines()[0])
"""


@pytest.mark.slow
def test_a_batch_over_the_address_space_of_its_worker_is_an_error_with_numbers(tmp_path):
    ran = run(script(tmp_path, ADDRESS_SPACE)).ok()
    assert ran.lines == ["no room for 4.0 GiB of shared memory [HF301]"]


# -- F42 ---------------------------------------------------------------------------------------


class SlowFirst:
    """Sample 0 is not done before the others have loaded ``count`` samples: if they idle behind it, that is never."""

    def __init__(self, folder: Path, count: int) -> None:
        self.folder, self.count = folder, count

    def __len__(self):
        return 100

    def __getitem__(self, index):
        if index == 0:
            wait_until(lambda: len(os.listdir(self.folder)) >= self.count, 20)
        else:
            (self.folder / str(index)).touch()
        return index


@pytest.mark.parametrize("workers", [2, 3])
def test_a_slow_sample_does_not_idle_the_others_and_the_order_is_kept(tmp_path, workers):
    dataset = SlowFirst(tmp_path, 50)  # more than any prefetch would have given them
    assert flat(DataLoader(dataset, num_workers=workers, timeout=30)) == list(range(100))


@pytest.mark.slow  # what stock torch does, which the gauntlet shows too
def test_today_a_slow_sample_idles_the_others(tmp_path):
    folder = tmp_path / "done"
    folder.mkdir()
    path = script(
        tmp_path,
        f"""
        import os, time, torch
        class SlowFirst:
            def __len__(self):
                return 100
            def __getitem__(self, index):
                if index == 0:
                    time.sleep(2)
                    print(len(os.listdir({str(folder)!r})), flush=True)
                else:
                    open({str(folder)!r} + f"/{{index}}", "w").close()
                return index
        list(torch.utils.data.DataLoader(SlowFirst(), num_workers=2, multiprocessing_context="fork"))
        """,
    )
    ran = run(path, limit=20)
    assert ran.status == 0
    assert int(ran.lines[0]) < 5
