"""A global is filled in by ``main``, and workers that are not forks find it empty."""

import torch
from torch.utils.data import DataLoader, Dataset

DATA = None


def load_data():
    global DATA
    DATA = [torch.full((3,), float(number)) for number in range(12)]


class GlobalDataset(Dataset):
    def __len__(self):
        return 12

    def __getitem__(self, index):
        return DATA[index]


def main():
    load_data()
    loader = DataLoader(GlobalDataset(), batch_size=4, num_workers=2, multiprocessing_context="spawn")
    print("sum:", sum(float(batch.sum()) for batch in loader))


if __name__ == "__main__":
    main()
