"""torchdata: a state that was saved with one worker cannot be loaded with two.

`StatefulDataLoader` keeps a state for each worker. On a machine with another number of cores the run ends with an
`AssertionError` that has no text.
"""

from __future__ import annotations

from importlib.util import find_spec

from .row import Ran, Row

PROGRAM = """
import random

# from torch.utils.data import DataLoader
from torchdata.stateful_dataloader import StatefulDataLoader as DataLoader


class Crops:
    def __len__(self):
        return 12

    def __getitem__(self, index):
        return index, random.randrange(1_000_000)


loader = DataLoader(Crops(), batch_size=2, shuffle=True, num_workers=1)
for step, (samples, crops) in enumerate(loader, 1):
    print(*samples.tolist(), *crops.tolist())
    if step == 2:
        checkpoint = loader.state_dict()

loader = DataLoader(Crops(), batch_size=2, shuffle=True, num_workers=2)
loader.load_state_dict(checkpoint)
for samples, crops in loader:
    print(*samples.tolist(), *crops.tolist())
"""


def on_torch(ran: Ran) -> str:
    ran.must(len(ran.lines) == 6, "a good run before it")
    ran.says("assert self._num_workers == state_dict[self._NUM_WORKERS]")
    return f"torchdata: {ran.fails('AssertionError')}"


def on_holdfast(ran: Ran) -> str:
    ran.ends_well()
    ran.is_silent()
    ran.must(len(ran.lines) == 10 and ran.lines[2:6] == ran.lines[6:], f"the same four batches, not {ran.lines}")
    return "2 workers go on where 1 was, with the same samples and crops"


ROW = Row(
    __name__,
    __doc__,
    PROGRAM,
    on_torch,
    on_holdfast,
    variant="another number of workers",
    changes={
        "# from torch.utils.data import DataLoader\n"
        "from torchdata.stateful_dataloader import StatefulDataLoader as DataLoader\n": (
            "from holdfast import DataLoader\n"
        )
    },
    not_on_torch="" if find_spec("torchdata") else "torchdata",
)
