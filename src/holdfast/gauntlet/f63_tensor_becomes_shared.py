"""A worker of a pool changes its argument, and the trainer's tensor changes with it.

To pass a tensor on, torch moves it into shared memory, without being asked. With numpy arrays, and with the pools of
Python itself, a worker has a copy.
"""

from __future__ import annotations

from .row import Ran, Row

PROGRAM = """
import torch
from torch.multiprocessing import Pool
from torch.utils.data import DataLoader


def brightness(images):
    images /= 255  # its own copy, one would think
    return float(images.mean())


if __name__ == "__main__":
    (images,) = DataLoader(torch.full((100, 64), 51.0), batch_size=100)
    with Pool(2) as pool:
        print(pool.map(brightness, [images]))
    print(images.mean().item(), images.is_shared())
"""


def on_torch(ran: Ran) -> str:
    ran.must(_mean(ran) != 51 and ran.lines[-1].endswith(" True"), "a tensor that was changed, and is shared now")
    return f"the trainer's images have a mean of {_mean(ran):.1f}, where they had 51"


def on_holdfast(ran: Ran) -> str:
    ran.must(_mean(ran) == 51 and ran.lines[-1].endswith(" False"), "a tensor that is as it was")
    ran.is_silent()
    return "a worker has a copy; what is to be shared says so: share(images)"


def _mean(ran: Ran) -> float:
    ran.ends_well()
    ran.must(abs(float(ran.lines[0].strip("[]")) - 0.2) < 1e-6, "the result of the worker")
    return float(ran.lines[-1].split()[0])


ROW = Row(
    __name__,
    __doc__,
    PROGRAM,
    on_torch,
    on_holdfast,
    changes={
        "from torch.multiprocessing import Pool\nfrom torch.utils.data import DataLoader\n": (
            "from holdfast import DataLoader, Pool\n"
        )
    },
    patience=20,
)
