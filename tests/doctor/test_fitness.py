"""An environment that will hurt a loader is told of, and one that is nearly as bad is not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from holdfast._system.allowances import Allowances
from holdfast._system.cpus import Cpus
from holdfast._system.leftovers import File, Leftovers, Orphan
from holdfast._system.mounts import Place
from holdfast._system.signals import Signals
from holdfast._system.visibility import Visibility
from holdfast.audit.finding import Severity
from holdfast.doctor.environment import Environment, Memory, Room, Torch, symptoms_of
from holdfast.doctor.needs import Needs, needs_of
from holdfast.targets.target import Target

MIB, GIB = 1 << 20, 1 << 30
ERROR, WARNING, NOTE = Severity

HEALTHY = Environment(
    versions={"python": "3.11.7"},
    system="Linux",
    cpus=Cpus(machine=16, affinity=16),
    memory=Memory(available=32 * GIB, machine=64 * GIB),
    shared_memory=Room(32 * GIB, 32 * GIB),
    allowances=Allowances(descriptors=1024, descriptors_open=20, maps=65530, maps_used=900),
    signals=Signals(),
    visibility=Visibility(py_spy=True),
    start_method="fork",
    local_ranks=1,
    thread_settings={},
    torch=Torch(threads=16, sharing="file_descriptor", cuda_is_initialized=False),
    places=(Place("/data/a.jpg", True, "ext4", "/data", 0.0001),),
    leftovers=Leftovers(),
)
STOCK = Needs(workers=8, prefetch=2, batch_bytes=40 * MIB)
OURS = replace(STOCK, stock=False, start="zygote")


def found(needs: Needs = STOCK, **changes: Any) -> list[tuple[str, Severity]]:
    return [(symptom.check, symptom.severity) for symptom in symptoms_of(replace(HEALTHY, **changes), needs)]


def the_one(needs: Needs = STOCK, **changes: Any):
    (symptom,) = symptoms_of(replace(HEALTHY, **changes), needs)
    return symptom


@pytest.mark.parametrize("needs", [STOCK, OURS, Needs(), Needs(workers=0), None])
def test_of_a_healthy_environment_nothing_is_told(needs: Needs | None):
    assert not symptoms_of(HEALTHY, needs)


def test_every_symptom_says_what_where_and_what_to_do():
    bad = replace(
        HEALTHY,
        cpus=Cpus(16, 2, 0.5, 1000, 500),
        memory=Memory(50 * MIB, GIB, 100 * MIB, 3),
        shared_memory=Room(64 * MIB, 64 * MIB),
        allowances=Allowances(64, 4096, 60, GIB, GIB - 1, 1000, 999, 1),
        signals=Signals("ignored", ("SIGTERM",)),
        visibility=Visibility(2),
        torch=Torch(16, "file_descriptor", True),
        places=(Place("/data/a", None, "nfs4", "/data", 1.0), Place("/n/b", True, "nfs", "/n", 0.1)),
        leftovers=Leftovers((File("/dev/shm/torch_1_2", 8 * MIB),), (Orphan(7, "pt_data_worker", GIB),)),
    )
    symptoms = symptoms_of(bad, STOCK)
    told = {symptom.check for symptom in symptoms}
    assert told == {"HD04", "HD12", "HD13", "HD14", "HD15", "HD21", "HD22", "HD23", "HD24"}
    for symptom in symptoms:
        assert (
            symptom.what[0].islower() or symptom.what[0].isdigit() or symptom.what.startswith(("CUDA", "SIG", "/dev"))
        )
        assert not symptom.what.endswith(".")
        assert symptom.where, symptom
        assert symptom.fix, symptom


# HD04


def test_cuda_in_the_trainer_is_worth_a_note_where_workers_are_forks():
    torch = Torch(16, "file_descriptor", True)
    assert found(torch=torch) == [("HD04", NOTE)]
    assert not found(replace(STOCK, start="spawn"), torch=torch)
    assert not found(replace(STOCK, workers=0), torch=torch)


# HD12


def test_shared_memory_that_the_batches_in_flight_do_not_fit_into():
    need = 40 * MIB * (2 * 8 + 2)
    assert not found(shared_memory=Room(need, need))
    symptom = the_one(shared_memory=Room(need, need - 1))
    assert (symptom.check, symptom.severity) == ("HD12", ERROR)
    assert "720.0 MiB" in symptom.what
    assert symptom.fix.startswith("docker run --shm-size=1g")
    assert not found(OURS, shared_memory=Room(0, 0))  # it does not use it


def test_the_shared_memory_of_a_container_is_worth_a_note_before_a_batch_was_seen():
    unseen = replace(STOCK, batch_bytes=None)
    assert found(unseen, shared_memory=Room(64 * MIB, 64 * MIB)) == [("HD12", NOTE)]
    assert found(Needs(), shared_memory=Room(64 * MIB, 64 * MIB)) == [("HD12", NOTE)]
    assert not found(unseen, shared_memory=Room(64 * MIB + 1, MIB))
    assert not found(replace(unseen, workers=0), shared_memory=Room(64 * MIB, 64 * MIB))
    assert not found(shared_memory=None)


# HD13


def test_descriptors_are_counted_by_tensor_for_torch_and_by_worker_for_ours():
    many = replace(STOCK, batch_tensors=60)  # × 18 batches in flight, + 8 × 8, + 20 open
    assert not found(many, allowances=Allowances(descriptors=1164, descriptors_open=20))
    symptom = the_one(many, allowances=Allowances(descriptors=1163, descriptors_open=20))
    assert (symptom.check, symptom.severity, symptom.fix) == ("HD13", ERROR, "ulimit -n 4096")
    assert not found(
        replace(many, stock=False, start="zygote"), allowances=Allowances(descriptors=84, descriptors_open=20)
    )
    files = Torch(16, "file_system", False)
    assert not found(many, allowances=Allowances(descriptors=84, descriptors_open=20), torch=files)


def test_a_limit_that_only_root_can_raise_is_said_to_be_one():
    symptom = the_one(allowances=Allowances(descriptors=50, descriptors_at_most=60, descriptors_open=20))
    assert "as root" in symptom.fix


def test_maps_and_processes_that_are_too_few():
    assert found(allowances=Allowances(maps=1000, maps_used=990)) == [("HD13", ERROR)]
    assert not found(allowances=Allowances(maps=1000, maps_used=900))
    assert found(allowances=Allowances(processes_left=15)) == [("HD13", ERROR)]
    assert not found(allowances=Allowances(processes_left=16))


# HD14


@pytest.mark.parametrize(
    ("cpus", "ranks", "told"),
    [
        (Cpus(16, 8), 1, []),
        (Cpus(16, 16), 2, []),
        (Cpus(16, 4), 1, [("HD14", NOTE)]),
        (Cpus(16, 16), 4, [("HD14", NOTE)]),
        (Cpus(16, 3), 1, [("HD14", WARNING)]),
        (Cpus(64, 64, 2.0), 1, [("HD14", WARNING)]),
        (Cpus(16, 16), 8, [("HD14", WARNING)]),
    ],
)
def test_more_workers_than_cpus(cpus: Cpus, ranks: int, told: list[Any]):
    quiet = Torch(1, "file_descriptor", False)
    assert found(cpus=cpus, local_ranks=ranks, torch=quiet) == told


def test_the_message_says_where_the_cpus_go():
    symptom = the_one(cpus=Cpus(64, 32, 4.0), local_ranks=2, torch=Torch(1, "", False))
    assert symptom.what == "this process has 2 CPUs, and 8 workers are asked for"
    assert symptom.evidence == (
        "64 in the machine, this process may run on 32 of them, the container may use 4, 2 ranks share them"
    )
    assert symptom.fix.startswith("DataLoader(dataset, num_workers=2)")


def test_a_container_that_was_held_back_often():
    few = replace(STOCK, workers=1)
    quiet = Torch(2, "", False)
    assert found(few, cpus=Cpus(16, 16, 2.0, 1000, 51), torch=quiet) == [("HD14", WARNING)]
    assert not found(few, cpus=Cpus(16, 16, 2.0, 1000, 50), torch=quiet)
    assert not found(few, cpus=Cpus(16, 16, 2.0, 0, 0), torch=quiet)


def test_threads_of_torch_that_do_not_know_of_the_quota():
    few = replace(STOCK, workers=1)
    symptom = the_one(few, cpus=Cpus(64, 64, 2.0), torch=Torch(64, "", False))
    assert (symptom.check, symptom.severity) == ("HD14", WARNING)
    assert symptom.fix.startswith("export OMP_NUM_THREADS=2")
    assert not found(few, cpus=Cpus(64, 64, 2.0), torch=Torch(4, "", False))
    assert not found(few, cpus=Cpus(64, 64, 2.0), torch=None)


# HD15


def test_memory_for_workers_and_batches():
    need = 8 * 15 * MIB + 40 * MIB * 18
    assert not found(memory=Memory(need, 64 * GIB))
    symptom = the_one(memory=Memory(need // 2, 64 * GIB, GIB))
    assert (symptom.check, symptom.severity) == ("HD15", ERROR)
    assert "the container's limit is 1.0 GiB" in symptom.evidence
    assert symptom.fix == "DataLoader(dataset, num_workers=4)"
    assert found(replace(STOCK, start="spawn"), memory=Memory(need, 64 * GIB)) == [("HD15", ERROR)]
    assert not found(replace(STOCK, workers=0), memory=Memory(MIB, 64 * GIB))


def test_an_address_space_that_is_nearly_used_up():
    assert found(allowances=Allowances(address_space=4 * GIB, address_space_used=3 * GIB + 1)) == [("HD15", WARNING)]
    assert not found(allowances=Allowances(address_space=4 * GIB, address_space_used=3 * GIB))


def test_that_the_kernel_had_to_kill_before_is_worth_a_note():
    assert found(memory=Memory(32 * GIB, 64 * GIB, 40 * GIB, 2)) == [("HD15", NOTE)]
    assert not found(memory=Memory(32 * GIB, 64 * GIB, 40 * GIB, 0))
    assert not found(memory=Memory(32 * GIB, 64 * GIB, None, 2))  # of the whole machine, for years perhaps


# HD21


def test_sigchld_that_nobody_hears():
    assert found(signals=Signals("ignored")) == [("HD21", ERROR)]
    assert found(signals=Signals("default", ("SIGCHLD",))) == [("HD21", ERROR)]
    assert not found(OURS, signals=Signals("ignored"))
    assert not found(signals=Signals("_handle_sigchld"))


def test_blocked_signals_are_inherited_by_workers_of_torch():
    assert found(signals=Signals("default", ("SIGTERM",))) == [("HD21", WARNING)]
    assert not found(OURS, signals=Signals("default", ("SIGINT",)))


# HD22


@pytest.mark.parametrize(
    "kind", ["nfs", "nfs4", "cifs", "smb3", "lustre", "ceph", "9p", "fuse.s3fs", "fuse.gcsfuse", "fuse.sshfs"]
)
def test_storage_far_away_is_worth_one_note_for_each_mount(kind: str):
    places = [Place(f"/mnt/{i}.jpg", True, kind, "/mnt", 0.002) for i in range(3)]
    symptom = the_one(places=(*HEALTHY.places, *places))
    assert (symptom.check, symptom.severity, symptom.where) == ("HD22", NOTE, "/mnt/0.jpg")
    assert "2.0 ms" in symptom.evidence


@pytest.mark.parametrize(
    "kind", ["ext4", "xfs", "btrfs", "overlay", "tmpfs", "zfs", "fuse.fuse-overlayfs", "fuseblk", ""]
)
def test_storage_of_this_machine_is_not(kind: str):
    assert not found(places=(Place("/mnt/a", True, kind, "/mnt", 0.002),))


def test_storage_that_does_not_answer_is_an_error():
    symptom = the_one(places=(Place("/mnt/a", None, "nfs", "/mnt", 1.0),))
    assert (symptom.check, symptom.severity, symptom.evidence) == ("HD22", ERROR, "nfs at /mnt")


# HD23


def test_leftovers_are_named_with_the_command_that_removes_them():
    files = tuple(File(f"/dev/shm/torch_1_{i}", MIB) for i in range(7))
    symptom = the_one(leftovers=Leftovers(files))
    assert (symptom.check, symptom.severity) == ("HD23", NOTE)
    assert symptom.what == "earlier runs left 7 pieces of shared memory behind, 7.0 MiB"
    assert symptom.fix.startswith("rm /dev/shm/torch_1_0 /dev/shm/torch_1_1 ")
    assert symptom.fix.endswith("and 2 more")
    assert found(leftovers=Leftovers((File("/dev/shm/psm_1", 4 * GIB),))) == [("HD23", WARNING)]


def test_workers_without_a_trainer_are_named_by_pid():
    symptom = the_one(leftovers=Leftovers((), (Orphan(41, "pt_data_worker", GIB), Orphan(42, "holdfast 1", GIB))))
    assert (symptom.severity, symptom.fix) == (NOTE, "kill 41 42")
    assert found(leftovers=Leftovers((), (Orphan(41, "pt_data_worker", 7 * GIB),))) == [("HD23", WARNING)]
    assert "2.0 GiB" in symptom.what


# HD24


@pytest.mark.parametrize(
    ("seeing", "told"),
    [
        (Visibility(None, False, True), 0),
        (Visibility(0, False, True), 0),
        (Visibility(1, True, True), 0),
        (Visibility(1, False, True), 1),
        (Visibility(3, False, False), 2),
        (Visibility(None, False, False), 1),
    ],
)
def test_what_will_not_be_visible_is_worth_a_note(seeing: Visibility, told: int):
    assert found(visibility=seeing) == [("HD24", NOTE)] * told


# Needs


def test_needs_are_those_of_the_loader():
    import torch.utils.data

    import holdfast

    loader = torch.utils.data.DataLoader([1], num_workers=3, prefetch_factor=4)
    assert needs_of(Target("", [1], loader)) == Needs(3, 4, start="fork")
    loader = torch.utils.data.DataLoader([1], num_workers=3, multiprocessing_context="spawn")
    assert needs_of(Target("", [1], loader)) == Needs(3, 2, start="spawn")
    loader = holdfast.DataLoader([1], num_workers=2)
    assert needs_of(Target("", [1], loader)) == Needs(2, 2, stock=False, start="zygote", falls_back=True)
    loader = holdfast.DataLoader([1], num_workers=2, start="fork")
    assert needs_of(Target("", [1], loader)) == Needs(2, 2, stock=False, start="fork")
    assert needs_of(Target("", [1])) == Needs()
