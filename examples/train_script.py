"""A plain training script: no main guard, classes and a lambda defined right here, workers from a clean process.

With torch's loader under spawn or forkserver (the default on Linux from Python 3.14) this script fails twice: the
lambda cannot be pickled, and without a main guard each worker would run the script again.
"""

import torch
from torch import nn

from holdfast import DataLoader


class Line(torch.utils.data.Dataset):
    """Noisy points of y = 3 x - 1. The noise comes from torch's global state: the same for any number of workers."""

    def __len__(self):
        return 2048

    def __getitem__(self, index):
        x = torch.rand(1) * 2 - 1
        return x, 3 * x - 1 + 0.1 * torch.randn(1)


collate = lambda samples: tuple(torch.stack(column) for column in zip(*samples))  # noqa: E731 - the point of it

torch.manual_seed(0)
loader = DataLoader(Line(), batch_size=64, shuffle=True, num_workers=2, collate_fn=collate)
model = nn.Linear(1, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.3)
for epoch in range(3):
    for x, y in loader:
        loss = nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch + 1}: loss {loss.item():.4f}")
print(f"y = {model.weight.item():.2f} x {model.bias.item():+.2f}")
