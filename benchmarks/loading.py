"""Is loading the bottleneck? Images/s of the loader beside those of a fast backbone's training step.

500 JPEGs of the size of natural scenes (384 x 256) are read, resized, cropped and normalised to 224 x 224
through a torch DataLoader with 0, 1 and 2 workers, with and without RandAugment. The step is forward,
backward and AdamW of a residual net of 130 million multiplications an image, as small as is of use at this
size, on one thread: so many images a second a core each of them does.
"""

from __future__ import annotations

import os
import platform
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from PIL import __version__ as pillow_version
from torch import nn
from torch.utils.data import DataLoader

from gaussianmlr.data import Augment, Preprocess, RankedData, RankedImages

Step = Callable[[torch.Tensor], object]
IMAGES, BATCH, ROUNDS, STEPS = 500, 32, 2, 5


def main() -> None:
    torch.set_num_threads(1)
    cases: list[tuple[str, Preprocess | Augment]] = [
        ("", Preprocess()),
        (" + RandAugment", Augment(Preprocess())),
    ]
    with tempfile.TemporaryDirectory() as folder:
        data = make_images(Path(folder))
        step, macs = training_step()
        print(
            f"Python {platform.python_version()}, torch {torch.__version__}, Pillow {pillow_version}, "
            f"{os.cpu_count()} cores, "
            f"{macs / 1e6:.0f} million multiplications an image"
        )
        batch = torch.rand(BATCH, 3, 224, 224)
        alone = rate(lambda: pass_over(lambda: iter([batch] * STEPS), step))
        print(f"{'training step alone':<46}{alone:6.0f} images/s")
        for name, transform in cases:
            for workers in (0, 1, 2):
                loading = partial(batches, data, transform, workers)
                found = rate(partial(pass_over, loading, None))
                what = f"loader{name}, {workers} workers"
                print(f"{what:<46}{found:6.0f} images/s, {found / alone:5.2f} x the step alone")
        for name, transform in cases:
            loading = partial(batches, data, transform, 2)
            found = rate(partial(pass_over, loading, step), rounds=1)
            what = f"training from files{name}, 2 workers"
            print(f"{what:<46}{found:6.0f} images/s, {found / alone:5.2f} x the step alone")


def make_images(folder: Path) -> RankedData:
    """Pictures as heavy to decode as photographs: smooth shapes and some grain."""
    random = np.random.default_rng(0)
    files = []
    for number in range(IMAGES):
        coarse = Image.fromarray(random.integers(0, 255, (16, 24, 3), dtype=np.uint8))
        picture = np.asarray(coarse.resize((384, 256), Image.Resampling.BICUBIC), dtype=np.int16)
        grain = random.integers(-12, 13, picture.shape, dtype=np.int16)
        files.append(folder / f"{number}.jpg")
        Image.fromarray((picture + grain).clip(0, 255).astype(np.uint8)).save(files[-1], quality=90)
    return RankedData(random.integers(0, 4, (IMAGES, 9)), tuple(map(str, range(9))), images=tuple(files))


def batches(data: RankedData, transform: Preprocess | Augment, workers: int) -> Iterator[torch.Tensor]:
    loader = DataLoader(RankedImages(data, transform), batch_size=BATCH, num_workers=workers)
    return (images for images, _ in loader)


class Block(nn.Module):
    """A residual block, narrower in place and wider in channels where asked."""

    def __init__(self, before: int, after: int, stride: int) -> None:
        super().__init__()
        self.straight = nn.Sequential(
            nn.Conv2d(before, after, 3, stride, 1, bias=False),
            nn.BatchNorm2d(after),
            nn.ReLU(),
            nn.Conv2d(after, after, 3, 1, 1, bias=False),
            nn.BatchNorm2d(after),
        )
        self.short = nn.Conv2d(before, after, 1, stride, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The sum of both ways."""
        return torch.relu(self.straight(x) + self.short(x))


def training_step() -> tuple[Step, int]:
    """One step of a small net on a batch, and its multiplications an image."""
    torch.manual_seed(0)
    net = nn.Sequential(
        nn.PixelUnshuffle(4),
        nn.Conv2d(48, 30, 3, 1, 1, bias=False),
        nn.BatchNorm2d(30),
        nn.ReLU(),
        Block(30, 24, 1),
        Block(24, 48, 2),
        Block(48, 96, 2),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(96, 18),
    )
    optimiser = torch.optim.AdamW(net.parameters())

    def step(images: torch.Tensor) -> None:
        optimiser.zero_grad()
        net(images).square().mean().backward()
        optimiser.step()

    return step, multiplications(net)


def multiplications(net: nn.Module) -> int:
    counted: list[int] = []

    def count(module: nn.Module, _: object, result: torch.Tensor) -> None:
        assert isinstance(module, nn.Conv2d)
        counted.append(result[0].numel() * module.weight[0].numel())

    hooks = [m.register_forward_hook(count) for m in net.modules() if isinstance(m, nn.Conv2d)]
    with torch.no_grad():
        net.eval()(torch.zeros(1, 3, 224, 224))
    for hook in hooks:
        hook.remove()
    net.train()
    return sum(counted)


def pass_over(source: Callable[[], Iterator[torch.Tensor]], step: Step | None) -> int:
    count = 0
    for images in source():
        if step is not None:
            step(images)
        count += len(images)
    return count


def rate(work: Callable[[], int], rounds: int = ROUNDS) -> float:
    rates = []
    for _ in range(rounds):
        start = time.perf_counter()
        count = work()
        rates.append(count / (time.perf_counter() - start))
    return max(rates)  # the others were disturbed by something else


if __name__ == "__main__":
    main()
