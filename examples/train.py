"""Trains a small network on all ranks that torchrun starts, and says how well it does.

torchrun --nproc_per_node 2 examples/train.py

The images are made up: each is one of ten shapes, somewhere, in noise.
"""

import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import gradwire.torch  # noqa: F401 - registers the backend

STEPS, BATCH, SIZE, CLASSES = 300, 32, 20, 10


def images(count: int, drawn: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
    """Shapes of 8 x 8 pixels at random places of noisy images, and which ones they are."""
    shapes = torch.randn(CLASSES, 8, 8, generator=torch.Generator().manual_seed(1)).sign()
    labels = torch.randint(CLASSES, (count,), generator=drawn)
    pixels = torch.randn(count, 1, SIZE, SIZE, generator=drawn) / 2
    for image, label in zip(pixels, labels, strict=True):
        x, y = torch.randint(SIZE - 8, (2,), generator=drawn)
        image[0, x : x + 8, y : y + 8] += shapes[label]
    return pixels, labels


def main() -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gradwire")  # the one line that changes
    torch.manual_seed(1)
    layers: list[nn.Module] = []
    for inputs, outputs in ((1, 32), (32, 64)):
        layers += [nn.Conv2d(inputs, outputs, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2)]
    network = nn.Sequential(*layers, nn.Flatten(), nn.Linear(64 * 25, CLASSES))
    model = DistributedDataParallel(network)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.002)
    own = torch.Generator().manual_seed(100 + dist.get_rank())
    begin = time.monotonic()
    for step in range(1, STEPS + 1):
        given, wanted = images(BATCH, own)
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(given), wanted)
        loss.backward()
        optimizer.step()
        if step % 100 == 0 and dist.get_rank() == 0:
            print(f"step {step:3}: loss {loss.item():.3f}, {time.monotonic() - begin:.1f} s")
    given, wanted = images(1000, torch.Generator().manual_seed(99))
    with torch.no_grad():
        right = (network(given).argmax(1) == wanted).float().mean()
    dist.all_reduce(right, dist.ReduceOp.AVG)
    if dist.get_rank() == 0:
        print(f"{dist.get_world_size()} ranks; of images not seen before {right.item():.1%} right")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
