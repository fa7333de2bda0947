"""# HL304 `None` where a sample is due

## Bad

```python
from PIL import Image
from torch.utils.data import Dataset

class Images(Dataset):
    def __getitem__(self, index):
        try:
            return Image.open(self.paths[index]), self.labels[index]
        except OSError:
            return None, None
```

## Good

```python
from PIL import Image
from holdfast import DataLoader
from torch.utils.data import Dataset

class Images(Dataset):
    def __getitem__(self, index):
        return Image.open(self.paths[index]), self.labels[index]

loader = DataLoader(Images(), num_workers=4, on_error="skip")   # another sample takes its place
print(loader.faults)                                            # which ones, and why
```

## Why

`default_collate` cannot make a batch of `None`: `TypeError: default_collate: batch must contain tensors, numpy arrays,
numbers, dicts or lists; found <class 'NoneType'>`, from the middle of an epoch, and the code that was to skip the
batch is never reached. With stock torch, filter in a `collate_fn`, and expect short batches:

```python
def collate(samples):
    return default_collate([sample for sample in samples if sample is not None])
```

The rule is silent where the file has a `collate_fn` for that data set.

## See

`holdfast explain F21`, `holdfast explain HF303`; pytorch#1137.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..finding import Level, Remark
from ..nones import none_samples
from ..script import Script

LEVEL = Level.WARNING


def check(script: Script) -> Iterator[Remark]:
    for none in none_samples(script):
        how = "gives" if none.is_written else "comes to its end after this handler, and so gives"
        yield Remark(
            none.node,
            f"{none.dataset.name}.__getitem__ {how} None, of which default_collate cannot make a batch",
            'let it raise, and holdfast.DataLoader(..., on_error="skip"); or a collate_fn that leaves None out',
        )
