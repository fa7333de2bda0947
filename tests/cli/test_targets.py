"""What a command is to look at is found by the text that names it, or a sentence says why not."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.targets.mistake import Mistake
from holdfast.targets.target import find

PROGRAM = """
import sys
import torch
from torch.utils.data import DataLoader, Dataset

class Four(Dataset):
    def __len__(self): return 4
    def __getitem__(self, index): return torch.tensor(index)

class Needs(Dataset):
    def __init__(self, root): pass

class Module:
    def setup(self, stage): self.ready = stage
    def train_dataloader(self): return DataLoader(Four(), batch_size=len(self.ready))

class Odd(Four):
    def __getattr__(self, name): raise KeyError(name)

def make(): return DataLoader(Four(), batch_size=2)
def fails(): raise ValueError("no such split")
def ends(): sys.exit("no data")
def parses(): return DataLoader(Four(), batch_size=len(sys.argv))
number = 3
both = Four(), Four()

if __name__ == "__main__":
    print("began", *sys.argv[1:])
    try:
        for batch in make(): print("loaded")
    except Exception: print("caught")
"""
CLEARS = """
import train
try:
    for batch in train.make(): print("loaded")
finally:
    raise RuntimeError("nothing has begun")
"""
FINDS = """
import json, os, sys
import torch  # once, and not in each fork
from holdfast.targets.mistake import Mistake
from holdfast.targets.target import find
for line in sys.stdin:
    if not os.fork():
        try:
            target = find(*json.loads(line), 60.0)
            loader = target.loader
            print(type(target.dataset).__module__, type(target.dataset).__name__, loader and loader.batch_size)
        except Mistake as mistake:
            print(f"{mistake}|{mistake.hint}")
        finally:
            sys.stdout.flush()
            os._exit(0)
    os.wait()
    print(flush=True)
    print("that was all", flush=True)
"""


@pytest.fixture(scope="module")
def finder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[subprocess.Popen[str]]:
    folder = tmp_path_factory.mktemp("targets")
    (folder / "train.py").write_text(PROGRAM)
    (folder / "ends.py").write_text("import sys\nsys.exit(3)\n")
    (folder / "clears.py").write_text(CLEARS)
    (folder / "broken.py").write_text("def (\n")
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, "-c", FINDS], cwd=folder, **pipes) as process:
        yield process


@pytest.fixture
def found(finder: subprocess.Popen[str]) -> Callable[..., str]:
    def run(*arguments: str) -> str:
        """In a fork of its own, as what is found stays imported."""
        assert finder.stdin is not None
        assert finder.stdout is not None
        text, *others = arguments
        print(json.dumps([text, others]), file=finder.stdin, flush=True)
        return "".join(iter(finder.stdout.readline, "that was all\n")).strip()

    return run


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("train:make", "train Four 2"),
        ("train.py:make", "train Four 2"),
        ("./train.py:Four", "train Four None"),
        ("train:Module", "train Four 3"),
        ("train:parses", "train Four 1"),  # sees its own name, and not the command's arguments
        ("train.py", "began\n__main__ Four 2"),
        ("clears.py", "train Four 2"),  # whatever a framework makes of being stopped
    ],
)
def test_data_set_and_loader_are_found(found, text: str, expected: str):
    assert found(text) == expected


def test_a_script_gets_its_arguments(found):
    assert found("train.py", "--epochs", "1").startswith("began --epochs 1")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("train:Needs", "train:Needs(root) cannot be called without arguments|"),
        ("train:fails", "train:fails raised ValueError: no such split|at "),
        ("train:Odd", "train:Odd raised KeyError: 'train_dataloader'|at "),
        ("train:number", "train:number is neither a data set nor a loader but int|valid are "),
        ("train:both", "train:both is neither a data set nor a loader but tuple|name a function that "),
        ("train:nothing", "train:nothing: there is no nothing|there are sys, torch, "),
        ("nowhere:make", "there is no module named nowhere|valid are "),
        ("nowhere.py", "there is no file nowhere.py|valid are "),
        ("ends.py", "ends.py iterated over no DataLoader: it ended with exit code 3|"),
        ("broken.py", "broken.py is not a Python program: "),
        ("broken.py:make", "broken.py raised SyntaxError: invalid syntax (broken.py, line 1)|"),
        ("ends.py:make", "ends.py:make cannot be had: it ended with exit code 3|what ends it belongs under "),
        ("train:ends", "train:ends cannot be had: it ended: no data|"),
        ("train:", "'train:' names nothing|valid are "),
    ],
)
def test_a_mistake_is_one_sentence_that_says_what_is_valid(found, text: str, expected: str):
    assert found(text).startswith(expected)


@pytest.mark.parametrize("code", ["while True: pass", "import threading; threading.Event().wait()"])
def test_what_does_not_come_to_an_end_is_left_with_its_line(tmp_path: Path, code: str, monkeypatch):
    file = tmp_path / "endless.py"
    file.write_text(f"try:\n    {code}\nexcept Exception: pass\n")
    for name in ("path", "argv"):
        monkeypatch.setattr(sys, name, [*getattr(sys, name)])
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])
    monkeypatch.delitem(sys.modules, "endless", raising=False)
    for text in (f"{file}:data", str(file)):
        with pytest.raises(Mistake, match=r"endless.py(:data)? was not there after 0.2 s") as caught:
            find(text, limit=0.2)
        assert "endless.py" in caught.value.hint or "threading.py" in caught.value.hint
