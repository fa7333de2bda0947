"""Storage that comes late, and lists of files that are the same for everybody."""

from __future__ import annotations

import ctypes
import logging
import os
import pickle
import struct
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import psutil
import pytest
from torch.utils.data import Dataset

from holdfast import DataLoader, storage
from holdfast.errors import NotThere
from holdfast.inventory import Manifest, manifest
from holdfast.storage import wait_for

# -- wait_for ----------------------------------------------------------------------------------


def test_what_is_there_is_returned(tmp_path):
    file = tmp_path / "weights.bin"
    file.write_bytes(b"1")
    assert wait_for(str(file)) == file
    assert wait_for(tmp_path) == tmp_path


class When(logging.Handler):
    """Does something when it is said that we wait: so the test knows that the waiting has begun."""

    def __init__(self, act) -> None:
        super().__init__(logging.INFO)
        self.act, self.said = act, []

    def emit(self, record: logging.LogRecord) -> None:
        self.said.append(record.getMessage())
        self.act()


@pytest.fixture
def when(monkeypatch):
    monkeypatch.setattr(storage, "QUIET", 0.3)
    logger, handlers = logging.getLogger("holdfast"), []

    def add(act) -> When:
        handlers.append(When(act))
        logger.addHandler(handlers[-1])
        logger.setLevel(logging.INFO)
        return handlers[-1]

    yield add
    logger.setLevel(logging.NOTSET)
    for handler in handlers:
        logger.removeHandler(handler)


def test_a_mount_that_comes_late_is_waited_for_and_that_is_said_once(tmp_path, when):
    handler = when(lambda: (tmp_path / "sample.jpg").write_bytes(b"1"))
    assert wait_for(tmp_path, timeout=60, poll=0.05) == tmp_path
    assert handler.said == [f"waiting for {tmp_path}, up to 60 s"]


@pytest.mark.parametrize(
    ("make", "found"),
    [
        (lambda path: None, "nothing"),
        (Path.mkdir, "an empty folder"),
        (Path.touch, "an empty file"),
        (lambda path: path.symlink_to("/nowhere/at/all"), "a link that leads nowhere"),
    ],
)
def test_what_does_not_come_is_an_error_that_says_what_is_there_instead(tmp_path, make, found):
    path = tmp_path / "data"
    make(path)
    with pytest.raises(FileNotFoundError, match=f"there is {found}") as refusal:
        wait_for(path, timeout=0.2, poll=0.05)
    assert isinstance(refusal.value, NotThere)
    assert (refusal.value.path, refusal.value.seconds, refusal.value.found) == (str(path), 0.2, found)


def test_empty_will_do_where_that_is_said(tmp_path):
    (tmp_path / "empty").touch()
    assert wait_for(tmp_path / "empty", non_empty=False, timeout=0) == tmp_path / "empty"


class DeadMount:
    """A real file system whose server has stopped to answer: it takes the requests, and nothing can kill who waits."""

    def __init__(self, at: Path) -> None:
        self.at, self._libc = at, ctypes.CDLL(None, use_errno=True)
        self.asked = threading.Event()

    def __enter__(self) -> DeadMount:
        self._fd = os.open("/dev/fuse", os.O_RDWR)
        options = f"fd={self._fd},rootmode=40000,user_id=0,group_id=0".encode()
        if self._libc.mount(b"dead", os.fsencode(self.at), b"fuse", 0, options):
            os.close(self._fd)
            pytest.skip("may not mount here")
        self._server = threading.Thread(target=self._serve)
        self._server.start()
        return self

    def _serve(self) -> None:
        hello = os.read(self._fd, 1 << 17)
        unique = struct.unpack_from("<Q", hello, 8)[0]
        answer = struct.pack("<IIIIHHII32x", 7, 31, 0, 0, 0, 0, 4096, 1)
        os.write(self._fd, struct.pack("<IiQ", 16 + len(answer), 0, unique) + answer)
        os.read(self._fd, 1 << 17)  # the look, taken and never answered
        self.asked.set()

    def __exit__(self, *error: object) -> None:
        self._libc.umount2(os.fsencode(self.at), 2)  # lets go of who waits, and of the server if nobody asked
        os.close(self._fd)
        self._server.join()


@pytest.mark.skipif(not os.access("/dev/fuse", os.W_OK), reason="no /dev/fuse, or not ours")
def test_a_mount_whose_server_is_gone_does_not_hang_the_waiter(tmp_path, monkeypatch):
    monkeypatch.setattr(storage, "PATIENCE", 1.0)
    monkeypatch.setattr(storage, "QUIET", 0.3)
    before = set(psutil.Process().children())
    with DeadMount(tmp_path) as mount:
        with pytest.raises(NotThere, match="does not answer"):
            wait_for(tmp_path, timeout=1.0)
        assert mount.asked.is_set()
    psutil.wait_procs(set(psutil.Process().children()) - before, timeout=10)  # beyond the reach of SIGKILL until now


# -- manifest ----------------------------------------------------------------------------------


def fill(root: Path, *names: str) -> Path:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(b"1")
    return root


def relative(found: Manifest) -> list[str]:
    return [os.path.relpath(path, found.root) for path in found]


def test_files_are_sorted_by_bytes_and_hidden_ones_left_out(tmp_path):
    fill(tmp_path, "b/2", "b/10", "a.jpg", "B.jpg", "é.jpg", ".a.jpg.Xy12", ".cache/c.jpg", "b/.part")
    assert relative(manifest(tmp_path)) == ["B.jpg", "a.jpg", "b/10", "b/2", "é.jpg"]


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("*.jpg", ["a.jpg"]),
        ("**/*.jpg", ["a.jpg", "x/b.jpg", "x/y/c.jpg"]),
        ("x/**", ["x/b.jpg", "x/y/c.jpg", "x/y/d[1].png"]),
        ("x/**/y/?.jpg", ["x/y/c.jpg"]),
        ("**/[!a-b].*", ["x/y/c.jpg"]),
        ("**/d[[]1].png", ["x/y/d[1].png"]),
        ("**/.*", [".h"]),
    ],
)
def test_patterns_mean_what_they_mean_in_a_shell(tmp_path, pattern, names):
    fill(tmp_path, "a.jpg", "x/b.jpg", "x/y/c.jpg", "x/y/d[1].png", ".h")
    assert relative(manifest(tmp_path, pattern)) == names


def test_links_are_followed_but_not_in_circles(tmp_path):
    data = fill(tmp_path / "data", "a/1", "b/2")
    fill(tmp_path / "elsewhere", "3")
    (data / "c").symlink_to(tmp_path / "elsewhere")
    (data / "4").symlink_to(data / "a/1")
    (data / "gone").symlink_to("/nowhere/at/all")
    (data / "a/back").symlink_to(data)
    (data / "a/over").symlink_to(data / "b")
    (data / "b/over").symlink_to(data / "a")
    found = relative(manifest(data))
    assert {"4", "a/1", "b/2", "c/3"} <= set(found)
    assert "gone" not in found
    assert len(found) == len(set(found)) < 20


@pytest.mark.parametrize("pattern", ["", "/data/*", "../*", "a//b"])
def test_a_pattern_that_leads_out_of_the_folder_is_refused(tmp_path, pattern):
    with pytest.raises(ValueError, match="pattern"):
        manifest(fill(tmp_path, "a"), pattern)


def test_no_file_at_all_is_an_error(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no file under .* that matches '\*\*/\*.jpg'"):
        manifest(fill(tmp_path, "a.png"), "**/*.jpg")
    with pytest.raises(FileNotFoundError):
        manifest(tmp_path / "not there")


def test_a_name_that_would_break_the_list_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"b'a\\nb'"):
        manifest(fill(tmp_path, "a\nb", "c"))


def test_it_is_a_sequence_of_full_paths(tmp_path):
    found = manifest(fill(tmp_path, "a", "b", "c", "d", os.fsdecode(b"\xff")))
    assert list(found) == [f"{tmp_path}/{name}" for name in ("a", "b", "c", "d", os.fsdecode(b"\xff"))]
    assert (found[-5], len(found), found.root) == (f"{tmp_path}/a", 5, str(tmp_path))
    assert list(found[1::2]) == [found[1], found[3]]
    assert (len(found[5:]), list(found[5:])) == (0, [])
    assert f"{tmp_path}/b" in found
    with pytest.raises(IndexError, match="5 files"):
        found[5]


def test_equal_lists_are_equal_and_a_digest_knows_the_files_wherever_they_lie(tmp_path):
    one, other = (manifest(fill(tmp_path / name, "a", "b")) for name in ("one", "other"))
    assert pickle.loads(pickle.dumps(one)) == one == manifest(tmp_path / "one")
    assert {one: 1}[manifest(tmp_path / "one")] == 1
    assert one != other
    assert one.digest == other.digest != one[:1].digest
    assert one != list(one)


class Paths(Dataset):
    def __init__(self, files: Manifest) -> None:
        self.files = files

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, index: int) -> str:
        return self.files[index]


@pytest.mark.parametrize("start", ["zygote", "standby"])
def test_workers_have_the_list_of_the_trainer_whatever_is_on_disk_by_then(tmp_path, start):
    found = manifest(fill(tmp_path, *map(str, range(20))))
    loader = DataLoader(Paths(found), batch_size=4, num_workers=2, start=start, timeout=60)
    fill(tmp_path, "new")
    assert [path for batch in loader for path in batch] == list(found)


# -- kept in a file


def test_a_saved_list_is_used_again_and_new_files_are_left_out(tmp_path, caplog):
    data, save = fill(tmp_path / "data", "a", "b"), tmp_path / "train.manifest"
    first = manifest(data, save=save)
    fill(data, "c")
    assert manifest(data, save=save) == first
    assert "has 1 files that are not in" in caplog.text
    assert set(tmp_path.iterdir()) == {data, save}


def test_a_saved_list_travels_with_the_data(tmp_path):
    save = tmp_path / "train.manifest"
    first = manifest(fill(tmp_path / "data", "a", "b"), save=save)
    (tmp_path / "data").rename(tmp_path / "moved")
    assert list(manifest(tmp_path / "moved", save=save)) == [f"{tmp_path}/moved/a", f"{tmp_path}/moved/b"]
    assert first.digest in save.read_text()


def test_files_that_went_missing_are_named(tmp_path):
    data, save = fill(tmp_path / "data", "a", "b", "c"), tmp_path / "train.manifest"
    manifest(data, save=save)
    (data / "b").unlink()
    with pytest.raises(FileNotFoundError, match=r"1 of the 3 files .*: b$"):
        manifest(data, save=save)
    assert len(manifest(data, save=save, check=False)) == 3


@pytest.mark.parametrize(
    ("damage", "text"),
    [
        (lambda lines: lines[:-1], "damaged"),
        (lambda lines: [*lines[:-1], "x"], "damaged"),
        (lambda lines: lines[1:], "not a manifest"),
        (lambda lines: ["[]"], "not a manifest"),
    ],
)
def test_a_saved_list_that_was_cut_or_edited_is_refused(tmp_path, damage, text):
    data, save = fill(tmp_path / "data", "a", "b"), tmp_path / "train.manifest"
    manifest(data, save=save)
    save.write_text("\n".join(damage(save.read_text().splitlines())) + "\n")
    with pytest.raises(ValueError, match=text):
        manifest(data, save=save)


def test_a_saved_list_of_another_pattern_is_refused(tmp_path):
    data, save = fill(tmp_path / "data", "a.jpg"), tmp_path / "train.manifest"
    manifest(data, save=save)
    with pytest.raises(ValueError, match=r"a list of '\*\*/\*', not of '\*.jpg'"):
        manifest(data, "*.jpg", save=save)


# -- the same for all ranks

LISTS = """
    import sys
    from pathlib import Path
    from holdfast.inventory import manifest

    root = Path(sys.argv[1]) / sys.argv[2]
    print("ready", flush=True)
    sys.stdin.readline()
    print(manifest(root, save=sys.argv[1] + "/list", check=False).digest)
"""


def test_processes_that_know_nothing_of_each_other_agree_through_the_file(tmp_path):
    for number in range(4):
        fill(tmp_path / str(number), *map(str, range(20 + number)))
    line = [sys.executable, "-c", textwrap.dedent(LISTS), str(tmp_path)]
    processes = [
        subprocess.Popen([*line, str(number)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for number in range(4)
    ]
    assert [process.stdout.readline() for process in processes] == ["ready\n"] * 4
    for process in processes:
        process.stdin.write("go\n")
        process.stdin.flush()
    digests = {process.communicate(timeout=60)[0] for process in processes}
    assert len(digests) == 1
    assert len(digests.pop().strip()) == 64
    assert not list(tmp_path.glob("list.*"))


RANK = """
    import os, sys
    import torch.distributed as dist
    from holdfast.inventory import manifest

    dist.init_process_group("gloo")
    root = os.path.join(sys.argv[1], os.environ["RANK"])
    found = manifest(root)
    assert found.root == root and all(path.startswith(root) for path in found)
    try:
        manifest(os.path.join(root, "not there"))
    except FileNotFoundError:
        failed = True
    with open(os.path.join(sys.argv[1], "said-" + os.environ["RANK"]), "w") as file:
        print(len(found), found.digest, failed, file=file)
    dist.barrier()
    dist.destroy_process_group()
"""


@pytest.mark.slow
def test_ranks_whose_folders_differ_get_the_list_of_rank_0(tmp_path):
    for rank, files in enumerate((20, 21)):
        fill(tmp_path / str(rank), *map(str, range(files)))
    script = tmp_path / "train.py"
    script.write_text(textwrap.dedent(RANK))
    line = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    done = subprocess.run([*line, str(script), str(tmp_path)], capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    said = [(tmp_path / f"said-{rank}").read_text() for rank in range(2)]
    assert said[0] == said[1] == f"20 {manifest(tmp_path / '0').digest} True\n"
