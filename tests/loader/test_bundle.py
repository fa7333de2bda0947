"""When a run ends by a fault, one folder has everything that is known."""

from __future__ import annotations

import json

import pytest

from holdfast import DataLoader, WorkerDied
from holdfast.testing import DiesAt, Faulty, RaisesAt


@pytest.mark.parametrize("workers", [0, 1])
def test_a_run_that_ends_by_an_error_leaves_a_bundle(tmp_path, workers):
    with pytest.raises(ValueError, match="rotten") as caught:
        list(DataLoader(Faulty(range(8), RaisesAt(3, ValueError("rotten"))), num_workers=workers, bundle=tmp_path))
    (folder,) = tmp_path.iterdir()
    assert str(folder) in caught.value.__notes__[-1]
    assert "ValueError: rotten" in (folder / "error.txt").read_text()
    (fault,) = json.loads((folder / "ledger.json").read_text())
    assert (fault["index"], fault["action"], fault["error"]["type"]) == (3, "raised", "ValueError")
    assert json.loads((folder / "loader.json").read_text())["num_workers"] == str(workers)
    assert json.loads((folder / "environment.json").read_text())["packages"]["holdfast"]


def test_the_variable_names_the_place_and_the_story_tells_of_the_death(tmp_path, monkeypatch):
    monkeypatch.setenv("HOLDFAST_BUNDLE", str(tmp_path / "new"))
    with pytest.raises(WorkerDied):
        list(DataLoader(Faulty(range(8), DiesAt(3)), num_workers=1))
    (folder,) = (tmp_path / "new").iterdir()
    assert "Condemn(batch=3, sample=0, attempts=2)" in (folder / "story.txt").read_text()
    assert "SIGKILL" in (folder / "error.txt").read_text()


def test_a_run_that_ends_well_or_is_not_asked_leaves_none(tmp_path):
    list(DataLoader(range(8), num_workers=1, bundle=tmp_path))
    with pytest.raises(ValueError, match="rotten"):
        list(DataLoader(Faulty(range(8), RaisesAt(3, ValueError("rotten")))))
    assert list(tmp_path.iterdir()) == []


def test_a_place_that_cannot_be_written_hides_nothing(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match="rotten"):
        list(DataLoader(Faulty(range(8), RaisesAt(3, ValueError("rotten"))), bundle=tmp_path / "file"))
