"""Train on several ranks, stop anywhere, go on with any number of ranks: no sample is lost or given twice.

    torchrun --standalone --nproc-per-node 2 examples/resume_torchrun.py build/resume-ranks 3

When it was stopped, the same command goes on from the last checkpoint, also with another --nproc-per-node. With
--max-restarts 3, torchrun itself starts all ranks again when one of them has died. (That needs
TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1 in the environment, or they may look for those that are gone: pytorch#135712.)
"""

import os
import sys
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import Dataset

from holdfast import DataLoader, DistributedSampler

FOLDER, EPOCHS = Path(sys.argv[1]), int(sys.argv[2])
NUM_WORKERS = int(os.environ.get("NUM_WORKERS", "1"))  # of each rank


class Line(Dataset):
    """Noisy points of y = 3 x - 1. Ranks draw different noise, though all of them have the same seed."""

    def __len__(self):
        return 3199  # a number that does not go round

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


dist.init_process_group("gloo")
torch.manual_seed(0)
dataset = Line()
# Each sample once, in as many batches on each rank. Towards the end some of them are one sample smaller than others.
sampler = DistributedSampler(dataset, tail="exact")
loader = DataLoader(dataset, batch_size=25, sampler=sampler, num_workers=NUM_WORKERS)
model = DistributedDataParallel(nn.Sequential(nn.Linear(1, 16), nn.Tanh(), nn.Linear(16, 1)))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
seen = step = 0

FOLDER.mkdir(parents=True, exist_ok=True)
path = FOLDER / "last.pt"
if path.exists():
    checkpoint = torch.load(path, weights_only=True)
    model.module.load_state_dict(checkpoint["model"])
    optimizer.load_state_dict(checkpoint["optimizer"])
    loader.load_state_dict(checkpoint["loader"])  # the same on every rank, whatever their number was
    seen, step = checkpoint["seen"], checkpoint["step"]
dist.barrier()  # or rank 0 could write a newer one while others are still to read this one

# Nobody has to call sampler.set_epoch: the loader counts, and its state has the number.
for epoch in range(loader.state_dict()["epoch"], EPOCHS):
    for x, y in loader:
        # The mean over the samples of all ranks. DistributedDataParallel divides by the number of ranks, so multiply.
        count = torch.tensor(len(x))
        dist.all_reduce(count)
        loss = nn.functional.mse_loss(model(x), y, reduction="sum") / count
        optimizer.zero_grad()
        (loss * dist.get_world_size()).backward()
        optimizer.step()
        dist.all_reduce(loss.detach())  # in place: the others' part as well
        seen, step = seen + int(count), step + 1
        if dist.get_rank() == 0:
            print(f"epoch {epoch} step {step} seen {seen} loss {loss.item()}", flush=True)
            if step % 10 == 0:
                checkpoint = {
                    "model": model.module.state_dict(),
                    "optimizer": optimizer.state_dict(),
                    # For torch.distributed.checkpoint: json.dumps(loader.state_dict()), and json.loads when it is read.
                    # It reads into the structure that it finds, and that of a state grows with what there is to say.
                    "loader": loader.state_dict(),
                    "seen": seen,
                    "step": step,
                }
                save(checkpoint, path)

dist.destroy_process_group()
