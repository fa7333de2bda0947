"""# HL107 a worker runs OpenCV with all its threads

## Bad

```python
import cv2
from torch.utils.data import Dataset

class Images(Dataset):
    def __getitem__(self, index):
        return cv2.resize(self.images[index], (224, 224))
```

## Good

```python
import cv2
from torch.utils.data import Dataset

cv2.setNumThreads(0)

class Images(Dataset):
    def __getitem__(self, index):
        return cv2.resize(self.images[index], (224, 224))
```

## Why

OpenCV starts a thread for each core, in each worker: 8 workers on 8 cores are 64 threads that compete. A pool that ran
in the trainer before the fork is not there in the worker, and the call waits for it for ever. Seen for functions that
OpenCV runs in parallel, and only if nothing in the file calls `cv2.setNumThreads`.

## See

`holdfast explain F01`, `holdfast explain F55`; pytorch#1355, pytorch#45198, albumentations#1825.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..finding import Level, Remark
from ..script import Script

LEVEL = Level.WARNING

_PARALLEL = (
    *("resize", "warpAffine", "warpPerspective", "remap", "cvtColor", "GaussianBlur", "blur", "boxFilter"),
    *("medianBlur", "bilateralFilter", "filter2D", "sepFilter2D", "dilate", "erode", "morphologyEx", "Canny"),
    *("Sobel", "Laplacian", "LUT", "normalize", "equalizeHist", "calcOpticalFlowFarneback", "threshold"),
)
_NAMES = tuple(f"cv2.{name}" for name in _PARALLEL)


def check(script: Script) -> Iterator[Remark]:
    if not script.may_start_workers or script.calls_to("cv2.setNumThreads"):
        return
    for call in script.calls_to(*_NAMES):
        item = script.item_of(call)
        if item is not None and item.role.of_loader:
            yield Remark(
                call,
                f"{ast.unparse(call.func)} in {item.via} starts a thread for each core in each worker",
                "cv2.setNumThreads(0) at the top of the module, or in worker_init_fn",
            )
            return  # one line mends all of them
