"""A global counts what workers load; the trainer's own stays at zero."""

import torch
from torch.utils.data import DataLoader, Dataset

COUNTER = 0


class Counted(Dataset):
    def __len__(self):
        return 100

    def __getitem__(self, index):
        global COUNTER
        COUNTER += 1
        return torch.tensor(index)


def make_loader():
    return DataLoader(Counted(), batch_size=10, num_workers=2)


if __name__ == "__main__":
    for batch in make_loader():
        pass
    print("samples loaded:", COUNTER)
