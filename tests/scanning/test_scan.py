"""Every sample is read once, the bad ones are found with index and path, and a loader then leaves out exactly those."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from folders import (
    CORRUPT,
    CRASH,
    DEADLY,
    HANG,
    NAN,
    NONE,
    ODD,
    SHAPE,
    SLOW,
    Broken,
    Lazy,
    Numbers,
    Pictures,
    Spoilt,
    make_pictures,
    readings,
    spoil,
)
from torch.utils.data import DataLoader, Subset, SubsetRandomSampler

import holdfast
from holdfast.scanning.report import finished
from holdfast.scanning.scan import Options, scan
from holdfast.targets.mistake import Mistake
from holdfast.targets.target import Target

ALL = frozenset(("corrupt", "deadly", "odd", "slow"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("pictures")
    make_pictures(made, 60)
    spoil(made)
    return made


def report_of(dataset: Any, output: Path, loader: Any = None, **options: Any) -> dict[str, Any]:
    found = scan(Target("it", dataset, loader), Options(output, workers=2, **options), lambda survey: None)
    return json.loads(json.dumps(finished(found)))


def indices(report: dict[str, Any], kind: str) -> set[Any]:
    groups = [group for group in report["groups"] if group["kind"] == kind]
    return {one["index"] for group in groups for one in group["examples"]}


def lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def test_each_bad_sample_is_found_with_its_index_and_path_and_a_loader_skips_exactly_those(folder, tmp_path):
    dataset, file = Spoilt(folder), tmp_path / "bad.jsonl"
    report = report_of(dataset, file, timeout=3.0)
    assert (report["read"], report["samples"], report["stopped"]) == (60, 60, "")
    assert indices(report, "corrupt") == CORRUPT
    assert indices(report, "deadly") == DEADLY
    odd = {(one["examples"][0]["index"], one["count"], one["what"]) for one in report["oddities"]}
    assert odd == {
        (NAN, 1, "sample[0] has NaN"),
        (SHAPE, 1, "sample[0] is 3×8×16; the others are 3×16×16"),
        (NONE, 1, "sample[1] is None; the others are int"),
    }
    assert SLOW in [one["index"] for one in report["times"]["slow"]]
    reasons = {one["index"]: one["reason"] for group in report["groups"] for one in group["examples"]}
    assert reasons[CRASH] == "the process was killed by SIGSEGV"
    assert reasons[HANG].startswith("no end in 3")
    assert "it sleeps" in reasons[HANG]
    assert {line["index"]: line["where"] for line in lines(file)} == {
        index: str(folder / f"{index:04}.jpg") for index in CORRUPT | DEADLY
    }
    again = Spoilt(folder, tmp_path / "log")
    quarantine = holdfast.Quarantine(file, refill=False)
    list(holdfast.DataLoader(again, batch_size=20, num_workers=2, collate_fn=len, on_error=quarantine))
    assert readings(tmp_path / "log") == {str(index): 1 for index in range(60) if index not in CORRUPT | DEADLY}


def test_odd_and_slow_ones_are_listed_when_that_is_asked_for(folder, tmp_path):
    file = tmp_path / "bad.jsonl"
    dataset = Subset(Spoilt(folder), [0, 1, 2, SLOW, NAN, SHAPE, NONE, 4, 5, 6, 7])
    report_of(dataset, file, quarantine=ALL)
    assert {line["index"]: line["kind"] for line in lines(file)} == {3: "slow", 4: "odd", 5: "odd", 6: "odd"}
    assert {line["where"] for line in lines(file)} == {str(folder / f"{index:04}.jpg") for index in {SLOW, *ODD}}


def test_nothing_is_listed_of_a_clean_data_set(tmp_path):
    report = report_of(Numbers(500, tmp_path / "log"), tmp_path / "bad.jsonl", quarantine=frozenset(("corrupt", "odd")))
    assert not any(report[kind] for kind in ("corrupt", "deadly", "odd"))
    assert readings(tmp_path / "log") == {str(index): 1 for index in range(500)}
    assert [path.name for path in tmp_path.iterdir()] == ["log"]


def test_an_image_that_nobody_has_read_yet_is_read(folder, tmp_path):
    assert indices(report_of(Lazy(folder), tmp_path / "bad.jsonl"), "corrupt") == CORRUPT


def test_what_is_listed_already_stays_and_is_not_doubled(tmp_path):
    file, dataset = tmp_path / "bad.jsonl", Numbers(20, wrong={3: OSError("gone"), 9: OSError("gone")})
    file.write_text('{"index": 77, "where": "old", "kind": "death", "error": {}, "when": 0}\n')
    for _ in range(2):
        report = report_of(dataset, file)
        assert report["corrupt"] == 2
    assert sorted(line["index"] for line in lines(file)) == [3, 9, 77]


def test_what_fails_for_one_reason_is_one_group(tmp_path):
    wrong = {index: OSError(f"cannot read '/data/{index}.jpg': {index} bytes left") for index in range(5, 12)}
    report = report_of(Numbers(50, wrong=wrong), tmp_path / "bad.jsonl")
    (group,) = report["groups"]
    assert (group["count"], len(group["examples"])) == (7, 7)


# -- which samples -----------------------------------------------------------------------------


def test_the_samples_of_a_loader_are_those_of_its_sampler(tmp_path):
    dataset = Numbers(20, tmp_path / "log")
    loader = DataLoader(dataset, batch_size=4, sampler=SubsetRandomSampler([3, 5, 8]))
    assert report_of(dataset, tmp_path / "bad.jsonl", loader)["read"] == 3
    assert readings(tmp_path / "log") == {"3": 1, "5": 1, "8": 1}


def test_shuffling_and_dropping_take_no_sample_away(tmp_path):
    dataset = Numbers(10)
    loader = DataLoader(dataset, batch_size=4, shuffle=True, drop_last=True)
    assert report_of(dataset, tmp_path / "bad.jsonl", loader)["read"] == 10


def test_keys_that_are_not_numbers_come_from_the_sampler_and_are_listed_as_they_are(tmp_path):
    file, dataset = tmp_path / "bad.jsonl", Numbers(3, tmp_path / "log", wrong={"b": OSError("gone")})
    loader = DataLoader(dataset, batch_sampler=[["a", "b"], ["c", "a"]])
    report = report_of(dataset, file, loader)
    assert readings(tmp_path / "log") == {"a": 1, "b": 1, "c": 1}
    assert report["groups"][0]["examples"][0]["index"] == lines(file)[0]["index"] == "b"


def test_a_random_share_is_the_same_for_the_same_seed(tmp_path):
    logs = [tmp_path / name for name in "abc"]
    for log, seed in zip(logs, (1, 1, 2)):
        assert report_of(Numbers(200, log), tmp_path / "bad.jsonl", share=0.1, seed=seed)["read"] == 20
    assert readings(logs[0]) == readings(logs[1]) != readings(logs[2])
    assert len(readings(logs[0])) == 20


def test_a_limit_is_the_first_so_many(tmp_path):
    report_of(Numbers(200, tmp_path / "log"), tmp_path / "bad.jsonl", limit=7)
    assert readings(tmp_path / "log") == {str(index): 1 for index in range(7)}


# -- once more ---------------------------------------------------------------------------------


def test_a_scan_that_ran_out_of_its_budget_goes_on_and_knows_what_it_knew(tmp_path):
    file, log = tmp_path / "bad.jsonl", tmp_path / "log"
    dataset = Numbers(60, log, takes=0.02, wrong={0: OSError("gone"), 59: OSError("gone")})
    first = report_of(dataset, file, budget=0.1)
    assert first["stopped"] == "budget"
    assert 0 < first["read"] < 60
    last = report_of(dataset, file)
    assert (last["read"], last["read before"], last["corrupt"], last["stopped"]) == (60, first["read"], 2, "")
    assert sum(one["count"] for one in last["times"]["histogram"]) == 58
    assert [line["index"] for line in lines(file)] == [0, 59]
    assert set(readings(log)) == set(map(str, range(60)))
    assert not (tmp_path / "bad.jsonl.progress").exists()


def test_another_data_set_is_noticed_and_restart_begins_anew(tmp_path):
    file = tmp_path / "bad.jsonl"
    assert report_of(Numbers(60, takes=0.02), file, budget=0.1)["stopped"]
    with pytest.raises(Mistake, match="length was 60, and is now 61"):
        report_of(Numbers(61), file)
    assert report_of(Numbers(61), file, restart=True)["read before"] == 0


def test_other_files_in_the_same_number_are_noticed(tmp_path):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        make_pictures(tmp_path / name, 30)
    file = tmp_path / "bad.jsonl"
    assert report_of(Pictures(tmp_path / "one"), file, budget=1e-9)["stopped"]
    with pytest.raises(Mistake, match=r"samples was .*one.* and is now .*two"):
        report_of(Pictures(tmp_path / "two"), file)


# -- what is no sample's fault -----------------------------------------------------------------


def test_a_program_that_is_wrong_is_said_to_be_and_lists_nothing(tmp_path):
    with pytest.raises(Mistake, match=r"each of the first \d+ samples failed: NameError: name 'nowhere'"):
        report_of(Broken(100), tmp_path / "bad.jsonl")
    assert list(tmp_path.iterdir()) == []


def test_a_disk_that_is_not_mounted_is_not_a_million_corrupt_samples(tmp_path):
    class Unmounted(Numbers):
        def __getitem__(self, key):
            raise FileNotFoundError(2, "No such file or directory", f"/mnt/data/{key}.jpg")

    with pytest.raises(Mistake, match="each of the first"):
        report_of(Unmounted(1_000_000), tmp_path / "bad.jsonl")
    assert list(tmp_path.iterdir()) == []


def test_a_small_data_set_may_be_corrupt_as_a_whole(tmp_path):
    wrong = {index: OSError("gone") for index in range(10)}
    assert report_of(Numbers(10, wrong=wrong), tmp_path / "bad.jsonl")["corrupt"] == 10
    assert len(lines(tmp_path / "bad.jsonl")) == 10


def test_one_sample_that_meets_a_bug_is_told_and_not_listed(tmp_path):
    report = report_of(Numbers(40, wrong={5: NameError("name 'x' is not defined")}), tmp_path / "bad.jsonl")
    assert (report["program"], report["corrupt"]) == (1, 0)
    assert lines(tmp_path / "bad.jsonl") == []


def test_what_worker_init_fn_raises_is_a_mistake_of_the_program(tmp_path):
    def fails(seat: int) -> None:
        raise ValueError("no licence")

    dataset = Numbers(4)
    loader = DataLoader(dataset, num_workers=1, worker_init_fn=fails)
    with pytest.raises(Mistake, match="ValueError: no licence"):
        report_of(dataset, tmp_path / "bad.jsonl", loader)


def test_an_empty_data_set_is_a_mistake(tmp_path):
    with pytest.raises(Mistake, match="it has no samples"):
        report_of(Numbers(0), tmp_path / "bad.jsonl")


def test_a_file_that_cannot_be_written_is_said_before_anything_is_read(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(Mistake, match="cannot be written"):
        report_of(Numbers(4, tmp_path / "log"), tmp_path / "file" / "bad.jsonl")
    assert not (tmp_path / "log").exists()
