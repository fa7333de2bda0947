"""Each rank makes its own data set, and lists the folder itself."""

import os

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.distributed import DistributedSampler


class FileDataset(Dataset):
    def __init__(self, folder):
        self.folder = folder
        self.names = os.listdir(folder)

    def __len__(self):
        return len(self.names)

    def __getitem__(self, index):
        with open(os.path.join(self.folder, self.names[index])) as file:
            return torch.tensor(int(file.read()))


def train(rank, world_size, folder):
    dist.init_process_group("gloo", init_method=f"file://{folder}/../rendezvous", rank=rank, world_size=world_size)
    dataset = FileDataset(folder)
    sampler = DistributedSampler(dataset, num_replicas=world_size, rank=rank)
    loader = DataLoader(dataset, batch_size=4, sampler=sampler, num_workers=1)
    total = torch.tensor(0)
    for epoch in range(2):
        for batch in loader:
            total += batch.sum()
    dist.all_reduce(total)
    if rank == 0:
        print("sum over two epochs and ranks:", int(total))
    dist.destroy_process_group()


if __name__ == "__main__":
    folder = os.path.abspath("numbers")
    os.makedirs(folder)
    for number in range(16):
        with open(os.path.join(folder, f"{number}.txt"), "w") as file:
            file.write(str(number))
    mp.spawn(train, args=(2, folder), nprocs=2)
