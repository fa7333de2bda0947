"""torchdata: a state that is loaded after `iter()` changes nothing, and nobody says so.

The state waits for the next `iter(loader)`. The iterator that is there already goes on from the first batch.
"""

from __future__ import annotations

from importlib.util import find_spec

from .row import Ran, Row

PROGRAM = """
# from torch.utils.data import DataLoader
from torchdata.stateful_dataloader import StatefulDataLoader as DataLoader

loader = DataLoader(range(12), batch_size=2, num_workers=1)
for step, batch in enumerate(loader, 1):
    if step == 4:
        checkpoint = loader.state_dict()
        break

loader = DataLoader(range(12), batch_size=2, num_workers=1)
batches = iter(loader)  # the workers are to be ready when the model is
print("loading the checkpoint")
loader.load_state_dict(checkpoint)
print(next(batches).tolist())
"""


def on_torch(ran: Ran) -> str:
    ran.prints("loading the checkpoint", "[0, 1]")
    return "torchdata: begins with samples 0 and 1 instead of 8 and 9, no word"


def on_holdfast(ran: Ran) -> str:
    ran.must(ran.lines == ["loading the checkpoint"] and ran.status == 1, "an error instead of a batch")
    ran.says("HF603")
    return ran.says("load_state_dict() was called after this iterator was made")


ROW = Row(
    __name__,
    __doc__,
    PROGRAM,
    on_torch,
    on_holdfast,
    variant="loaded after iter()",
    changes={
        "# from torch.utils.data import DataLoader\n"
        "from torchdata.stateful_dataloader import StatefulDataLoader as DataLoader\n": (
            "from holdfast import DataLoader\n"
        )
    },
    not_on_torch="" if find_spec("torchdata") else "torchdata",
)
