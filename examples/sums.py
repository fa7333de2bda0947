"""Four ways to sum a tensor with several processes.

    python examples/sums.py

All of them print the same number. In the first the parts are copied to the workers; in the others the tensor lies in
memory that all processes see, and only its address travels.
"""

import torch

from holdfast import Pool, share, spawn

WORKERS = 2
SIZE = 1_000_000
PARTS = [(start, start + SIZE // 8) for start in range(0, SIZE, SIZE // 8)]


def sum_of(part):
    return part.sum()


def sum_between(x, start, stop):
    return x[start:stop].sum()


def add_to(result, x, start, stop):
    part = x[start:stop].sum()
    with result.lock:  # given back by the kernel when its holder is killed
        result += part


def add_as_rank(rank, result, x):
    add_to(result, x, rank * SIZE // WORKERS, (rank + 1) * SIZE // WORKERS)


x = torch.arange(SIZE, dtype=torch.float64)

with Pool(WORKERS) as pool:
    print("map              ", sum(pool.map(sum_of, x.chunk(8))).item())

    x = share(x)
    print("starmap          ", sum(pool.starmap(sum_between, [(x, *part) for part in PARTS])).item())

    result = share(torch.zeros(1, dtype=torch.float64))
    pool.starmap(add_to, [(result, x, *part) for part in PARTS])
    print("one shared result", result.item())

result = share(torch.zeros(1, dtype=torch.float64))
spawn(add_as_rank, (result, x), nprocs=WORKERS)
print("spawn            ", result.item())
