"""Label images with several workers and one copy of the weights.

    python examples/inference.py 4

`share(model)` moves the parameters into memory that all processes map. The model is then an argument like any other: a
worker gets the address of the weights, not the weights.
"""

import sys
from functools import partial
from pathlib import Path

import torch
from torch import nn

from holdfast import Pool, share

WORKERS = int(sys.argv[1]) if len(sys.argv) > 1 else 2


def label(model, images):
    with torch.inference_mode():
        return model(images).argmax(1)


def memory(process, kind):
    """MB of a process, each page divided by the number of processes that have it (PSS): these may be added up."""
    lines = Path(f"/proc/{process.pid}/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) // 1024 for line in lines if line.startswith(f"{kind}:"))


def images():
    """Stands for a loader: as many batches as one likes, of which only a few are on their way at a time."""
    for number in range(50):
        yield torch.full((16, 2048), number / 50)


torch.manual_seed(0)
layers = [nn.Sequential(nn.Linear(2048, 2048), nn.ReLU()) for _ in range(8)]
model = share(nn.Sequential(*layers).eval())
weights = sum(parameter.nbytes for parameter in model.parameters()) >> 20

with Pool(WORKERS) as pool:
    labels = []
    for batch in pool.imap(partial(label, model), images()):
        labels += batch.tolist()
        if len(labels) == 400:  # in the middle: a worker that has no more to do lets go of the weights
            shared = [memory(worker, "Pss_Shmem") for worker in pool.processes]
            own = [memory(worker, "Pss") - part for worker, part in zip(pool.processes, shared, strict=True)]

print(f"{len(labels)} images are labelled; the weights are {weights} MB")
for number, (mine, ours) in enumerate(zip(own, shared, strict=True)):
    print(f"worker {number}: {mine:4} MB of its own, {ours:4} MB as its part of what is shared")
print(f"shared by all {WORKERS} workers: {sum(shared)} MB")
