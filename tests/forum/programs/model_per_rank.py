"""Each rank unpickles the whole model for itself."""

import torch
import torch.multiprocessing as mp
from torch.utils.data import DataLoader, TensorDataset


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(8, 2)

    def forward(self, x):
        return self.layer(x)


def predict(rank, path):
    model = torch.load(path)
    model.eval()
    for (batch,) in DataLoader(TensorDataset(torch.ones(8, 8)), batch_size=4, num_workers=1):
        print(rank, model(batch).shape)


if __name__ == "__main__":
    torch.save(Net(), "model.pt")
    mp.spawn(predict, args=("model.pt",), nprocs=2)
