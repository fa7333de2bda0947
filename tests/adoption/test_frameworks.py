"""Frameworks that make loaders of their own, from the program's or from nothing: those are ours, and hold."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from adoption_runs import run

DATA = """
import json, os, signal, sys, warnings
import torch
from torch.utils.data import DataLoader, Dataset

class Mortal(Dataset):
    '''The first worker that comes to the middle dies of it.'''
    def __init__(self, name): self.name = name
    def __len__(self): return 48
    def __getitem__(self, index):
        if index == 24:
            try: os.close(os.open(f"{self.name}-died", os.O_CREAT | os.O_EXCL))
            except FileExistsError: pass
            else: os.kill(os.getpid(), signal.SIGKILL)
        return torch.full((4,), float(index))

def told(loader, seen, epochs, ranks=1):
    complete = sorted(seen) == sorted([*range(48)] * epochs) if ranks == 1 else len(seen) == 48 * epochs // ranks
    return type(loader).__module__, loader.stall_timeout, len(loader.faults.filter(kind='death')), complete
"""
ACCELERATE = """
from accelerate import Accelerator

def with_accelerate():
    accelerator, model = Accelerator(cpu=True), torch.nn.Linear(4, 1)
    loader = DataLoader(Mortal("accelerate"), batch_size=4, shuffle=True, num_workers=2)
    model, optimizer, loader = accelerator.prepare(model, torch.optim.SGD(model.parameters(), 1e-3), loader)
    seen = []
    for epoch in range(2):
        for batch in loader:
            seen += batch[:, 0].int().tolist()
            accelerator.backward(model(batch).mean())
            optimizer.step()
    return *told(loader.base_dataloader, seen, 2), isinstance(loader, DataLoader)
"""
LIGHTNING = """
import lightning

class Module(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer, self.seen = torch.nn.Linear(4, 1), []
    def training_step(self, batch, _):
        self.seen += batch[:, 0].int().tolist()
        return self.layer(batch).mean()
    def configure_optimizers(self): return torch.optim.SGD(self.parameters(), 1e-3)
    def train_dataloader(self): return DataLoader(Mortal("lightning"), batch_size=4, num_workers=2)

def with_lightning(devices=1):
    module = Module()
    silent = dict.fromkeys(["logger", "enable_checkpointing", "enable_progress_bar", "enable_model_summary"], False)
    strategy = "ddp" if devices > 1 else "auto"
    trainer = lightning.Trainer(max_epochs=2, accelerator="cpu", devices=devices, strategy=strategy, **silent)
    trainer.fit(module)
    return told(trainer.train_dataloader, module.seen, 2, devices)
"""
PRINT = "print(json.dumps([{}]))"


def test_loaders_of_accelerate_and_lightning_are_ours_and_outlive_a_worker(tmp_path: Path):
    """With the options of the run, which are lost when a framework makes a loader anew from torch's arguments."""
    (tmp_path / "train.py").write_text(
        DATA + ACCELERATE + LIGHTNING + PRINT.format("with_accelerate(), with_lightning()")
    )
    ran = run(tmp_path, "--stall-timeout", "77", "train.py")
    assert ran.returncode == 0, ran.stderr
    accelerate, lightning = json.loads(ran.stdout.splitlines()[-1])
    assert accelerate == ["holdfast.loader", 77.0, 1, True, True]
    assert lightning == ["holdfast.loader", 77.0, 1, True]
    assert "  train.py:" in ran.stderr


@pytest.mark.slow  # two processes that import Lightning
@pytest.mark.timeout(300)
def test_processes_that_lightning_starts_are_adopted(tmp_path: Path):
    (tmp_path / "train.py").write_text(DATA + LIGHTNING + PRINT.format("with_lightning(2)"))
    ran = run(tmp_path, "--stall-timeout", "77", "train.py", timeout=280)
    assert ran.returncode == 0, ran.stderr
    lines = [json.loads(line)[0] for line in ran.stdout.splitlines() if line.startswith("[[")]
    assert sorted(lines) == [["holdfast.loader", 77.0, 0, True], ["holdfast.loader", 77.0, 1, True]]
    assert "  rank 0 " in ran.stderr
    assert "  rank 1 " in ran.stderr


HUGGING_FACE = """
from transformers import Trainer, TrainingArguments

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.seen = torch.nn.Linear(4, 1), []
    def forward(self, x):
        self.seen += x[:, 0].int().tolist()
        return {"loss": self.layer(x).mean()}

class Named(Mortal):
    def __getitem__(self, index): return {"x": super().__getitem__(index)}

def with_hugging_face():
    model, arguments = Model(), TrainingArguments(
        "out", num_train_epochs=2, per_device_train_batch_size=4, dataloader_num_workers=2, report_to=[], use_cpu=True,
        save_strategy="no", disable_tqdm=True,
    )
    Trainer(model, arguments, train_dataset=Named("trainer")).train()
    return sorted(model.seen) == sorted([*range(48)] * 2), os.path.exists("trainer-died")
"""


@pytest.mark.slow  # transformers
@pytest.mark.timeout(300)
def test_a_loader_of_the_hugging_face_trainer_outlives_a_worker(tmp_path: Path):
    pytest.importorskip("transformers")
    (tmp_path / "train.py").write_text(DATA + HUGGING_FACE + PRINT.format("with_hugging_face()"))
    ran = run(tmp_path, "train.py", timeout=280)
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout.splitlines()[-1]) == [[True, True]]
    assert " 1  1 death\n" in ran.stderr
