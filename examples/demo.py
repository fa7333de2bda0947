"""Train a small network on a small JPEG data set while one of the two workers is killed on the way. `make demo`.

A user's script but for two things: it kills a worker on purpose, and it keeps the indices of what it was given to check
at the end that every picture came exactly once per epoch.
"""

import os
import random
import signal
import time
from pathlib import Path

import numpy as np
import torch
from PIL import Image, ImageDraw
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from torch import nn
from torch.utils.data import DataLoader as TorchDataLoader
from torch.utils.data import Dataset

from holdfast import DataLoader

PICTURES = 2000
SHAPES = ("circle", "square", "triangle", "cross")
EPOCHS = 3
KILL_IN_EPOCH, KILL_AT_BATCH = 2, 20
FOLDER = Path(__file__).resolve().parents[1] / "build" / "demo-pictures"

console = Console(highlight=False)


def draw(index: int) -> Image.Image:
    """Picture `index`: its shape is its class; place, size and colours are by chance, the same in every run."""
    chance = random.Random(index)
    image = Image.new("RGB", (160, 160), tuple(chance.randrange(0, 110) for _ in range(3)))
    pen = ImageDraw.Draw(image)
    colour = tuple(chance.randrange(140, 256) for _ in range(3))
    r = chance.randrange(24, 44)
    x, y = chance.randrange(r + 16, 144 - r), chance.randrange(r + 16, 144 - r)
    match SHAPES[index % len(SHAPES)]:
        case "circle":
            pen.ellipse((x - r, y - r, x + r, y + r), fill=colour)
        case "square":
            pen.rectangle((x - r, y - r, x + r, y + r), fill=colour)
        case "triangle":
            pen.polygon([(x, y - r), (x - r, y + r), (x + r, y + r)], fill=colour)
        case "cross":
            pen.rectangle((x - r, y - r // 4, x + r, y + r // 4), fill=colour)
            pen.rectangle((x - r // 4, y - r, x + r // 4, y + r), fill=colour)
    return image


def write_pictures(folder: Path) -> list[Path]:
    """The files of the data set; drawn once, found again by the next run."""
    folder.mkdir(parents=True, exist_ok=True)
    files = [folder / f"{index:04}-{SHAPES[index % len(SHAPES)]}.jpg" for index in range(PICTURES)]
    for index, path in enumerate(files):
        if not path.exists():
            unfinished = path.with_suffix(".part")
            draw(index).save(unfinished, "JPEG", quality=90)
            unfinished.replace(path)
    return files


class Pictures(Dataset):
    """Decodes and augments. All three sources of chance are global ones; the loader seeds them for each batch."""

    def __init__(self, files: list[Path]) -> None:
        self.files = files

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int, int]:
        with Image.open(self.files[index]) as image:
            pixels = np.asarray(image)
        top, left = random.randrange(32), random.randrange(32)
        pixels = pixels[top : top + 128, left : left + 128]
        if np.random.rand() < 0.5:
            pixels = pixels[:, ::-1]
        values = torch.from_numpy(pixels.transpose(2, 0, 1).copy()).float() / 255
        return values * torch.empty(3, 1, 1).uniform_(0.8, 1.2), index % len(SHAPES), index


def network() -> nn.Module:
    layers: list[nn.Module] = []
    for before, after in ((3, 16), (16, 32), (32, 64), (64, 64)):
        layers += [nn.Conv2d(before, after, 3, stride=2, padding=1), nn.BatchNorm2d(after), nn.ReLU()]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(256, len(SHAPES)))


def kill_a_worker(iterator) -> None:
    victim = iterator._workers[1]
    os.kill(victim.pid, signal.SIGKILL)
    console.print(f"[bold red]killed worker 1, pid {victim.pid}, on purpose[/]")


def train(loader: DataLoader) -> int:
    """Three epochs, a worker killed in the second. Returns how many samples were delivered, each index checked."""
    model = network()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    delivered = 0
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        for epoch in range(1, EPOCHS + 1):
            bar = progress.add_task(f"epoch {epoch}", total=len(loader))
            start, right, indices = time.perf_counter(), 0, []
            iterator = iter(loader)
            for number, (images, labels, which) in enumerate(iterator):
                if (epoch, number) == (KILL_IN_EPOCH, KILL_AT_BATCH):
                    kill_a_worker(iterator)
                scores = model(images)
                loss = nn.functional.cross_entropy(scores, labels)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                right += int((scores.argmax(1) == labels).sum())
                indices += which.tolist()
                progress.update(bar, advance=1, description=f"epoch {epoch}  loss {loss.item():.3f}")
            if sorted(indices) != list(range(PICTURES)):
                raise SystemExit(f"epoch {epoch}: {len(indices)} samples, {len(set(indices))} different of {PICTURES}")
            delivered += len(indices)
            seconds = time.perf_counter() - start
            console.print(
                f"epoch {epoch}: {right / PICTURES:.1%} right, each of {PICTURES} pictures once, {seconds:.1f} s"
            )
    return delivered


def rates(dataset: Pictures) -> tuple[float, float]:
    """Pictures per second of holdfast and of stock torch, loading only: same data, in turns, the best of three."""
    options = {"batch_size": 32, "shuffle": True, "num_workers": 2, "persistent_workers": True}
    loaders = [DataLoader(dataset, **options), TorchDataLoader(dataset, **options)]
    best = [float("inf"), float("inf")]
    for attempt in range(4):
        for which, loader in enumerate(loaders):
            start = time.perf_counter()
            for _ in loader:
                pass
            if attempt > 0:  # the first epoch starts the workers
                best[which] = min(best[which], time.perf_counter() - start)
    return PICTURES / best[0], PICTURES / best[1]


def main() -> None:
    torch.manual_seed(0)
    torch.set_num_threads(1)  # two cores: the workers need theirs
    console.print(f"{PICTURES} JPEG pictures of {len(SHAPES)} shapes, 2 workers, batches of 32, {EPOCHS} epochs")
    dataset = Pictures(write_pictures(FOLDER))
    loader = DataLoader(dataset, batch_size=32, shuffle=True, num_workers=2, persistent_workers=True)
    delivered = train(loader)
    restarts = loader.restarts
    del loader
    holdfast, stock = rates(dataset)
    console.print()
    console.print(f"samples delivered   {delivered} of {EPOCHS * PICTURES}, each once per epoch")
    console.print(f"workers restarted   {restarts}, after 1 kill")
    console.print(f"loading, holdfast   {holdfast:.0f} pictures/s")
    console.print(f"loading, torch      {stock:.0f} pictures/s")
    console.print(f"ratio               {holdfast / stock:.2f}")


if __name__ == "__main__":
    main()
