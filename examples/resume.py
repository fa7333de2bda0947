"""Train, stop anywhere, start again: the same batches, the same losses, as if nothing had happened.

    python examples/resume.py build/resume 3

trains three epochs and writes a checkpoint to the folder every ten steps. Stop it by Ctrl-C or `kill -9` and give the
same command again: it goes on from the last checkpoint. NUM_WORKERS may be another number then.
"""

import os
import sys
from pathlib import Path

import torch
from torch import nn
from torch.utils.data import Dataset

from holdfast import DataLoader

FOLDER, EPOCHS = Path(sys.argv[1]), int(sys.argv[2])
NUM_WORKERS = int(os.environ.get("NUM_WORKERS", "2"))


class Line(Dataset):
    """Noisy points of y = 3 x - 1. The noise is drawn anew in each epoch, as an augmentation is."""

    def __len__(self):
        return 3200

    def __getitem__(self, index):
        x = torch.tensor([index / 1600 - 1])
        return x, 3 * x - 1 + 0.1 * torch.randn(1)


def save(checkpoint, path):
    """Whole or not at all, whenever we are killed: written beside it, on the disk, and only then given its name."""
    unfinished = path.with_suffix(".part")
    with open(unfinished, "wb") as file:
        torch.save(checkpoint, file)
        file.flush()
        os.fsync(file.fileno())
    unfinished.replace(path)


torch.manual_seed(0)
# A generator of its own: what the loader draws at the beginning of an epoch does not shift the model's random numbers.
loader = DataLoader(
    Line(), batch_size=50, shuffle=True, num_workers=NUM_WORKERS, generator=torch.Generator().manual_seed(0)
)
model = nn.Sequential(nn.Linear(1, 16), nn.Tanh(), nn.Dropout(0.1), nn.Linear(16, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
step = 0

FOLDER.mkdir(parents=True, exist_ok=True)
path = FOLDER / "last.pt"
if path.exists():
    checkpoint = torch.load(path, weights_only=True)
    model.load_state_dict(checkpoint["model"])
    optimizer.load_state_dict(checkpoint["optimizer"])
    loader.load_state_dict(checkpoint["loader"])  # before iter(loader), which every `for` calls
    torch.set_rng_state(checkpoint["random"])  # of dropout; what samples draw hangs on the loader's state alone
    step = checkpoint["step"]

# The loader knows which epoch is under way, or comes next. The first one here gives only what is left of it.
for epoch in range(loader.state_dict()["epoch"], EPOCHS):
    for x, y in loader:
        loss = nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        step += 1
        print(f"epoch {epoch} step {step} loss {loss.item()}", flush=True)
        if step % 10 == 0:
            checkpoint = {
                "model": model.state_dict(),
                "optimizer": optimizer.state_dict(),
                "loader": loader.state_dict(),  # behind this very batch, however far ahead the workers are
                "random": torch.get_rng_state(),
                "step": step,
            }
            save(checkpoint, path)
