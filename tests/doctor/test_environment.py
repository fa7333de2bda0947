"""The environment is described as it is: real groups, limits, signals, mounts and leftovers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from holdfast._system import leftovers, mounts
from holdfast._system.cpus import cpus
from holdfast._system.trial import tried
from holdfast.doctor.environment import environment
from holdfast.targets.target import Target

TOLD = "import json\nfrom holdfast.doctor.environment import environment\nprint(json.dumps(environment().to_dict()))"
V1 = Path("/sys/fs/cgroup")


def told(before: str = "", *, prefix: tuple[str, ...] = (), **environ: str) -> dict[str, Any]:
    """What a process says of itself that has run ``before`` first."""
    command = [*prefix, sys.executable, "-c", f"{before}\n{TOLD}"]
    ran = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60, env=os.environ | environ)
    found: dict[str, Any] = json.loads(ran.stdout)
    return found


@pytest.fixture
def group(request: pytest.FixtureRequest) -> Iterator[Path]:
    """A cgroup of version 1, of the controller that is asked for, to move a process into."""
    folder = V1 / request.param / f"holdfast-test-{os.getpid()}"
    if not (V1 / request.param / "cgroup.procs").exists():
        pytest.skip(f"there is no {request.param} controller of cgroup v1 here")
    try:
        folder.mkdir()
    except OSError as error:
        pytest.skip(f"no cgroup can be made: {error}")
    yield folder
    deadline = time.monotonic() + 10
    while (folder / "cgroup.procs").read_text() and time.monotonic() < deadline:
        time.sleep(0.01)
    folder.rmdir()


def moved_into(folder: Path) -> str:
    return f"import os\nopen({str(folder / 'cgroup.procs')!r}, 'w').write(str(os.getpid()))"


# CPUs


@pytest.mark.parametrize("group", ["cpu"], indirect=True)
def test_the_quota_of_a_real_group_and_that_it_was_used_up(group: Path):
    (group / "cpu.cfs_period_us").write_text("20000")
    (group / "cpu.cfs_quota_us").write_text("5000")
    until = f"while 'nr_throttled 0\\n' in open({str(group / 'cpu.stat')!r}).read(): pass"
    found = told(f"{moved_into(group)}\n{until}")
    assert found["cpus"]["quota"] == 0.25
    assert found["cpu_budget"] == 0.25
    assert found["cpus"]["periods"] >= found["cpus"]["throttled"] > 0


@pytest.mark.parametrize("group", ["cpu"], indirect=True)
def test_a_group_without_a_quota_limits_nothing(group: Path):
    found = told(moved_into(group))
    assert found["cpus"]["quota"] is None


def v2(folder: Path, files: dict[str, str]) -> tuple[Path, Path]:
    """Groups of version 2, as the kernel shows them."""
    (folder / "ours").write_text("0::/outer/inner\n")
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder / "ours", folder


@pytest.mark.parametrize(
    ("files", "quota", "throttled"),
    [
        ({"outer/inner/cpu.max": "max 100000\n"}, None, 0),
        ({"outer/inner/cpu.max": "150000 100000\n"}, 1.5, 0),
        ({"outer/inner/cpu.max": "400000 100000\n", "outer/cpu.max": "200000 100000\n"}, 2.0, 0),
        (
            {"outer/cpu.max": "50000 100000\n", "outer/cpu.stat": "usage_usec 9\nnr_periods 100\nnr_throttled 7\n"},
            0.5,
            7,
        ),
        ({}, None, 0),
    ],
)
def test_version_2_is_read_with_the_groups_around(files, quota, throttled, tmp_path: Path):
    found = cpus(*v2(tmp_path, files))
    assert (found.quota, found.throttled) == (quota, throttled)
    assert found.allowed == min(found.affinity, quota or found.affinity)


def test_ranks_and_affinity_share_the_budget():
    found = told("import os\nos.sched_setaffinity(0, {min(os.sched_getaffinity(0))})", LOCAL_WORLD_SIZE="2")
    assert (found["cpus"]["affinity"], found["local_ranks"], found["cpu_budget"]) == (1, 2, 0.5)
    assert told(LOCAL_WORLD_SIZE="two")["local_ranks"] == 1


# Limits, signals, settings


def test_limits_are_those_of_the_process():
    limits = (
        "import resource as r\nr.setrlimit(r.RLIMIT_NOFILE, (300, 400))\nr.setrlimit(r.RLIMIT_AS, (2 << 30, 3 << 30))"
    )
    found = told(limits)["allowances"]
    assert (found["descriptors"], found["descriptors_at_most"]) == (300, 400)
    assert found["address_space"] == 2 << 30 > found["address_space_used"] > 1 << 20
    assert 3 <= found["descriptors_open"] < 50
    assert found["maps_used"] > 20


@pytest.mark.parametrize("group", ["pids"], indirect=True)
def test_the_processes_that_a_container_may_still_start(group: Path):
    (group / "pids.max").write_text("20")
    assert told(moved_into(group))["allowances"]["processes_left"] == 19


@pytest.mark.parametrize(
    ("before", "child_ended", "blocked"),
    [
        ("", "default", []),
        ("import signal as s\ns.signal(s.SIGCHLD, s.SIG_IGN)", "ignored", []),
        ("import signal as s\ndef reap(*_): pass\ns.signal(s.SIGCHLD, reap)", "reap", []),
        ("import signal as s\ns.pthread_sigmask(s.SIG_BLOCK, [s.SIGTERM, s.SIGUSR1])", "default", ["SIGTERM"]),
    ],
)
def test_what_is_done_with_signals(before: str, child_ended: str, blocked: list[str]):
    assert told(before)["signals"] == {"child_ended": child_ended, "blocked": blocked}


def test_settings_of_threads_and_starts_are_told_and_not_settled():
    found = told("import multiprocessing", OMP_NUM_THREADS="3")
    assert found["thread_settings"]["OMP_NUM_THREADS"] == "3"
    assert found["start_method"] == "fork"
    assert found["torch"] is None  # nobody has imported it
    settled = f"{TOLD}\nimport multiprocessing\nmultiprocessing.set_start_method('spawn')\n{TOLD}"
    first, second = map(json.loads, subprocess.check_output([sys.executable, "-c", settled]).splitlines())
    assert (first["start_method"], second["start_method"]) == ("fork", "spawn")


def test_torch_is_asked_where_it_is_there():
    found = environment()
    assert found.torch is not None
    assert found.torch.threads == torch.get_num_threads()
    assert not found.torch.cuda_is_initialized
    assert found.versions["torch"].startswith(torch.__version__.split("+")[0])


# Mounts


def in_a_mount_namespace(*commands: str) -> tuple[str, ...]:
    try:
        subprocess.run(["unshare", "-m", "true"], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("no mount namespace can be made here")
    return ("unshare", "-m", "sh", "-c", f'{" && ".join(commands)} && exec "$0" "$@"')


def test_a_small_dev_shm_is_seen():
    found = told(prefix=in_a_mount_namespace("mount -t tmpfs -o size=64m none /dev/shm"))
    assert found["shared_memory"] == {"size": 64 << 20, "free": 64 << 20}


def test_the_kind_of_storage_is_that_of_the_innermost_mount(tmp_path: Path):
    (tmp_path / "in memory").mkdir()
    (tmp_path / "twice").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "in memory")
    program = f"""
import json
from holdfast._system.mounts import look_at
paths = [{str(tmp_path)!r} + end for end in ("/in memory/a", "/in memory", "/link", "/in memory beside", "", "/twice")]
print(json.dumps([place._asdict() for place in look_at(paths, 5)]))
"""
    twice = [f"mount -t {kind} none '{tmp_path}/twice'" for kind in ("tmpfs", "ramfs")]
    prefix = in_a_mount_namespace(f"mount -t tmpfs none '{tmp_path}/in memory'", *twice)
    found = json.loads(subprocess.check_output([*prefix, sys.executable, "-c", program]))
    assert [place["exists"] for place in found] == [False, True, True, False, True, True]
    assert [place["kind"] == "tmpfs" for place in found] == [True, True, True, False, False, False]
    assert found[5]["kind"] == "ramfs"  # which hides the other
    assert found[0]["mount"] == str(tmp_path / "in memory")
    assert not any(mounts.Place(**place).is_remote for place in found)


DEAD = """
import ctypes, json, os, sys, time
fuse = os.open("/dev/fuse", os.O_RDWR)
options = f"fd={fuse},rootmode=40000,user_id=0,group_id=0".encode()
if ctypes.CDLL(None, use_errno=True).mount(b"dead", sys.argv[1].encode(), b"fuse", 0, options):
    sys.exit(77)
from holdfast._system.mounts import look_at
began = time.monotonic()
places = look_at(["/", sys.argv[1] + "/data", "/tmp"], 0.5)
seconds = time.monotonic() - began
from holdfast.doctor.places import symptoms_of_paths
texts = [("dataset.root", sys.argv[1] + "/data"), ("dataset.paths[0]", "/no/such/file")]
print(json.dumps([[place._asdict() for place in places], seconds, [str(one) for one in symptoms_of_paths(texts, "")]]))
"""


def test_storage_that_does_not_answer_is_named_and_keeps_nobody(tmp_path: Path):
    """A file system whose server never says a word, as after an NFS server has gone."""
    prefix = in_a_mount_namespace("true")
    ran = subprocess.run(
        [*prefix, sys.executable, "-c", DEAD, str(tmp_path)], capture_output=True, timeout=30, check=False
    )
    if ran.returncode == 77 or b"/dev/fuse" in ran.stderr:
        pytest.skip("no file system in user space can be mounted here")
    places, seconds, symptoms = json.loads(ran.stdout)
    assert [place["exists"] for place in places] == [True, None]  # and what is behind it was not asked
    assert (places[1]["kind"], places[1]["mount"]) == ("fuse", str(tmp_path))
    assert mounts.Place(**places[1]).is_remote
    assert seconds < 3
    assert not symptoms  # of what did not answer nobody knows whether it exists


def test_the_places_of_a_data_set_are_looked_at(tmp_path: Path):
    class Folder:
        def __init__(self) -> None:
            self.root, self.missing, self.relative, self.pattern = (
                tmp_path,
                f"{tmp_path}/no",
                "data",
                f"{tmp_path}/*.jpg",
            )

    found = environment(Target("", Folder()))
    assert {place.path: place.exists for place in found.places} == {str(tmp_path): True, f"{tmp_path}/no": False}


# Leftovers


@pytest.fixture
def shared_memory(tmp_path: Path) -> Path:
    """A folder in place of /dev/shm, in which other tests leave and use things."""
    return tmp_path


def old(path: Path, size: int = 8192) -> Path:
    path.write_bytes(bytes(size))
    os.utime(path, (1e9, 1e9))
    return path


def gone() -> int:
    """The pid of a process that is no more."""
    with subprocess.Popen(["true"]) as process:
        return process.pid


def test_shared_memory_that_nobody_uses_is_left_over(shared_memory: Path):
    names = [f"torch_{gone()}_1_2", "psm_1a2b", "sem.mp-x1", f"holdfast-{gone()}-x"]
    for name in names:
        old(shared_memory / name)
    old(shared_memory / "of_somebody_else")
    found = leftovers.leftovers(str(shared_memory))
    assert sorted(Path(file.path).name for file in found.files) == sorted(names)
    assert all(file.size == 8192 for file in found.files)


def test_what_is_mapped_open_new_or_has_a_living_maker_is_not(shared_memory: Path):
    mapped, opened = old(shared_memory / "psm_mapped"), old(shared_memory / "psm_open")
    old(shared_memory / f"torch_{os.getpid()}_1_2")
    (shared_memory / "psm_new").write_bytes(b"x")
    mapping = torch.from_file(str(mapped), shared=True, size=8192, dtype=torch.uint8)  # and keeps no descriptor
    with opened.open():
        assert not leftovers.leftovers(str(shared_memory)).files
    del mapping
    assert {Path(file.path).name for file in leftovers.leftovers(str(shared_memory)).files} == {
        "psm_mapped",
        "psm_open",
    }


ORPHAN = """
import ctypes, os, sys, time
if os.fork(): os._exit(0)
if sys.argv[1]: ctypes.CDLL(None).prctl(15, sys.argv[1].encode())
while os.getppid() == int(sys.argv[2]): time.sleep(0.01)
print(os.getpid(), flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize(("name", "is_orphan"), [("pt_data_worker", True), ("holdfast 3", True), ("rsync", False)])
def test_workers_that_have_lost_their_trainer_are_found(name: str, is_orphan: bool):
    command = [sys.executable, "-c", "import os, sys\nsys.argv.append(str(os.getpid()))\n" + ORPHAN, name]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        pid = int(process.stdout.readline())
        found = {orphan.pid: orphan for orphan in leftovers.leftovers().orphans}
    assert (pid in found) == is_orphan
    if is_orphan:
        assert found[pid].name == name
        assert found[pid].memory > 1 << 20


# Something that is tried out


def test_a_trial_tells_and_changes_nothing_here(capfd: pytest.CaptureFixture[str]):
    here: list[int] = []

    def work(tell):
        here.append(1)
        print("not to be seen", flush=True)
        os.write(2, b"nor this")
        tell(here)
        tell({"a": bytes(1 << 20)})

    trial = tried(work, 10)
    assert trial.ended
    assert (trial.told[0], len(trial.told[1]["a"]), here) == ([1], 1 << 20, [])
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("end", [lambda: os._exit(0), lambda: os.abort(), lambda: time.sleep(60), lambda: 1 / 0])
def test_a_trial_that_dies_or_hangs_is_known_by_what_it_told(end):
    def work(tell):
        tell("began")
        end()

    began = time.monotonic()
    assert tried(work, 0.5) == (["began"], False)
    assert time.monotonic() - began < 10
