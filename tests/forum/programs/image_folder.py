"""A file that cannot be read becomes None, which no batch can be made of."""

import glob
import os

import numpy as np
import torch
from PIL import Image
from torch.utils.data import DataLoader, Dataset


class ImageFolder(Dataset):
    def __init__(self, folder):
        self.paths = sorted(glob.glob(os.path.join(folder, "*.jpg")))

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        try:
            image = Image.open(self.paths[index]).convert("RGB")
            return torch.from_numpy(np.asarray(image).copy()), index
        except Exception as error:
            print(f"Error loading {self.paths[index]}: {error}")
            return None, None


def write(folder):
    os.makedirs(folder)
    for number in range(8):
        Image.new("RGB", (16, 16), (number, 0, 0)).save(os.path.join(folder, f"{number}.jpg"))
    with open(os.path.join(folder, "5.jpg"), "wb") as file:
        file.write(b"not a picture")


if __name__ == "__main__":
    write("images")
    for images, labels in DataLoader(ImageFolder("images"), batch_size=4, num_workers=2):
        if images is None:
            print("Skipping batch")
            continue
        print(images.shape)
