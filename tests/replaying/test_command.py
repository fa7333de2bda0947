"""holdfast replay: what a sample is, or how it fails, in words, as JSON, and as an exit code."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path

import numpy
import pytest
import torch
from noise import failing, loader

from holdfast.cli import main
from holdfast.replaying.portrait import digest, portrait
from holdfast.state.moment import Moment

COMMAND = "from holdfast.cli import main; main()"
HERE = Path(__file__).parent
SCRIPT = """
import sys
import torch
from noise import loader

if __name__ == "__main__":
    torch.manual_seed(int(sys.argv[1]))
    torch.rand(5)  # the model's
    made = loader()
    for epoch in range(2):
        for batch in made: pass
"""


@pytest.fixture
def replay(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    """Runs the command in this process, where a zygote is warm; its exit code and both its outputs."""
    monkeypatch.chdir(HERE)
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = torch.get_rng_state(), random.getstate(), numpy.random.get_state()

    def run(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["holdfast", "replay", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        said = capsys.readouterr()
        return int(ended.value.code or 0), said.out, said.err

    yield run
    torch.set_rng_state(before[0])
    random.setstate(before[1])
    numpy.random.set_state(before[2])


def test_it_shows_what_the_sample_is(replay):
    code, out, err = replay("noise:made", "7", "--epoch", "1", "--seed", "11")
    assert (code, err) == (0, "")
    torch.manual_seed(11)
    made = loader()
    list(made)
    [sample] = [sample for batch in made for sample in batch if sample["i"] == 7]
    assert out.startswith("sample 7 of noise:made\n")
    assert f"digest {digest(sample)}" in out
    assert "of epoch 1, " in out
    assert "['t']        Tensor float32 [2]" in out


def test_as_json_it_is_alone_on_stdout(replay):
    code, out, err = replay("noise:made", "7", "--json", "--seed", "3")
    told = json.loads(out)
    assert (code, err, told["outcome"], told["index"]) == (0, "", "fetched", 7)
    assert [leaf["path"] for leaf in told["sample"]] == ["['i']", "['t']", "['n']", "['p']"]
    again = json.loads(replay("noise:made", "7", "--json", "--at", told["at"])[1])
    assert again["digest"] == told["digest"]
    assert again["before"] == told["before"]
    other = 0 if Moment.of(told["at"]).batch else 1
    assert replay("noise:made", "7", "--json", "--seed", "3", "--batch", str(other))[:2] == (2, "")


def test_without_a_place_it_says_that_the_random_state_is_not_that_of_a_run(replay):
    code, out, _ = replay("noise:plain", "7")
    assert code == 0
    assert "not that of a run" in out


def test_an_index_that_the_data_set_does_not_have_is_told(replay):
    assert "note   the data set has 20 samples, 0 to 19" in replay("noise:plain", "20")[1]
    assert json.loads(replay("noise:plain", "--json", "--", "-21")[1])["note"] == "the data set has 20 samples, 0 to 19"
    assert "note" not in replay("noise:plain", "19")[1]


def test_an_error_is_the_result_and_its_traceback_is_the_users(replay):
    code, out, err = replay("noise:failing", "7", "--seed", "3")
    assert (code, err) == (1, "")
    assert "raised ValueError: bad after 0." in out
    assert "holdfast" not in out.split("Traceback")[1]


def test_an_error_of_a_sample_before_it_is_told_as_such(replay):
    code, out, _ = replay("noise:failing_in_order", "8", "--epoch", "0")
    assert code == 1
    assert "raised sample 7, before it in its batch: ValueError" in out


def test_a_deadly_sample_is_explained_and_does_not_end_the_command(replay):
    code, out, err = replay("noise:deadly", "7", "--seed", "3")
    assert (code, err) == (1, "")
    assert "died   its process was killed by SIGSEGV" in out
    assert "noise.py" in out
    assert "replaying" not in out.split("why")[1].replace(str(HERE), "")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["noise:made"], "which sample?"),
        (["noise:made", "7", "--at", "1/2"], "is not of the form"),
        (["noise:made", "7", "--at", "0/0/1/1", "--epoch", "1"], "give one of them"),
        (["noise:made", "77", "--epoch", "0"], "in no batch of epoch 0"),
        (["noise:plain", "7", "--epoch", "0"], "epochs are a loader's"),
        (["noise:stream", "7"], "is a stream"),
        (["noise:made", "--fault", "nowhere.jsonl"], "cannot be read"),
        (["noise:made", "--fault", "noise.py"], "is not a fault log"),
        (["noise:nothing", "7"], "there is no nothing"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_mistake_is_one_sentence_and_no_traceback(replay, arguments, said):
    code, out, err = replay(*arguments)
    assert (code, out) == (2, "")
    assert said in err
    assert "Traceback" not in err


def test_a_bundle_is_as_good_as_a_fault_log(replay, tmp_path):
    with pytest.raises(ValueError, match="bad") as caught:
        list(loader(failing().dataset, bundle=tmp_path))
    [bundle] = tmp_path.iterdir()
    code, out, _ = replay("noise:failing", "--fault", str(bundle))
    assert code == 1
    assert f"raised ValueError: {caught.value}" in out


def test_under_pdb_it_stops_where_it_raises_or_at_its_first_line(replay, monkeypatch):
    import io

    monkeypatch.setattr(sys, "stdin", io.StringIO("p index\nc\n"))
    code, out, _ = replay("noise:failing", "7", "--pdb", "--seed", "3")
    assert code == 1
    assert "ValueError: bad after" in out
    assert "raise ValueError" in out
    monkeypatch.setattr(sys, "stdin", io.StringIO("p index * 111\nc\n"))
    code, out, _ = replay("noise:made", "7", "--pdb", "--seed", "3")
    assert code == 0
    assert "777" in out
    assert "-> return {" in out


def test_a_script_is_run_to_its_loader_with_its_own_seeds(tmp_path):
    (tmp_path / "train.py").write_text(SCRIPT)
    (tmp_path / "noise.py").write_text((HERE / "noise.py").read_text())
    command = [sys.executable, "-c", COMMAND, "replay", "train.py", "7", "--epoch", "1", "--json", "--", "5"]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=100)
    assert ran.returncode == 0, ran.stderr
    torch.manual_seed(5)
    torch.rand(5)
    made = loader()
    list(made)
    [sample] = [sample for batch in made for sample in batch if sample["i"] == 7]
    assert json.loads(ran.stdout)["digest"] == digest(sample)


def test_a_portrait_tells_what_is_odd():
    odd = {"a": torch.tensor([1.0, float("nan"), float("inf")]), "b": [numpy.zeros((0, 3)), "x" * 100, {}], "c": range}
    told = {leaf.path: leaf for leaf in portrait(odd)}
    assert (told["['a']"].nan, told["['a']"].infinite, told["['a']"].low, told["['a']"].high) == (1, 1, 1.0, 1.0)
    assert told["['b'][0]"].shape == (0, 3)
    assert len(told["['b'][1]"].value) == 60
    assert told["['b'][2]"].value == "{}"
    assert len(portrait(list(range(100)))) == 17


def test_a_digest_sees_every_element():
    one = torch.zeros(10_000)
    other = one.clone()
    other[4321] = 1
    assert digest(one) != digest(other)
    assert digest(one) == digest(torch.zeros(10_000))
    assert digest(lambda: None) == ""
