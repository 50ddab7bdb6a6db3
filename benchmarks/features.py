"""CPU time of frozen features per picture: `compute_features` against the torch loop that it replaced.

Three EfficientNet-Lite networks and their mirror images, as in the preset `cpu`, on one thread. JPEG
pictures of smooth noise are generated, or those of a folder are read. Before: batches of 8 through torch,
one after the other, with freed memory kept, as `gmlr train` did (a plain Python process did not keep it,
and took 30% more). Now: onnxruntime. Rounds alternate; the best of each counts. The conversion, which
happens once per call, is measured apart: times are shown without it, with it for the pictures measured, and
with it shared by 1,600 pictures. Exits with 1 where the last is below 2x, or where features differ by more
than 1e-3.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from gaussianmlr._utils.memory import keep_freed_memory
from gaussianmlr.data import Preprocess
from gaussianmlr.data.readers.images import read_tensor
from gaussianmlr.model.presets import preset
from gaussianmlr.nn import backbones
from gaussianmlr.nn.backbones import Backbone
from gaussianmlr.nn.backbones.converted import FEWEST, convert
from gaussianmlr.nn.backbones.memory_format import laid_out, lay_out
from gaussianmlr.training.features import compute_features

BAR = 2.0
MANY = 1_600  # photographs of a usual training set
AT_ONCE = 8


def generated(folder: Path, count: int) -> list[Path]:
    """Pictures of 400 x 300 pixels."""
    rng = np.random.default_rng(0)
    files = [folder / f"{number}.jpg" for number in range(count)]
    for file in files:
        small = Image.fromarray(rng.integers(0, 256, (12, 16, 3), dtype=np.uint8))
        small.resize((400, 300), Image.Resampling.BICUBIC).save(file, quality=90)
    return files


def by_torch(backbone: Backbone, files: Sequence[Path], load: Callable[[Path], Tensor]) -> Tensor:
    """Features as they were computed before."""
    lay_out(backbone)
    parts = []
    with torch.no_grad():
        for start in range(0, len(files), AT_ONCE):
            batch = torch.stack([load(file) for file in files[start : start + AT_ONCE]])
            parts.append(backbone(laid_out(batch)).float().contiguous())
    return torch.cat(parts)


def by_onnxruntime(backbone: Backbone, files: Sequence[Path], load: Callable[[Path], Tensor]) -> Tensor:
    """Features as they are computed now."""
    return compute_features(
        backbone, files, load=load, batch_size=AT_ONCE, cache=False, note=lambda text: sys.exit(text)
    )


def timed(work: Callable[[], object]) -> tuple[float, object]:
    """CPU seconds of all threads, and the result."""
    start = time.process_time()
    found = work()
    return time.process_time() - start, found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, help="JPEG pictures; generated ones by default")
    parser.add_argument("--pictures", type=int, default=160)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    if options.pictures < FEWEST:
        parser.error(f"--pictures is {options.pictures}; onnxruntime is used from {FEWEST} on")
    torch.set_num_threads(1)
    keep_freed_memory()
    recipe = preset("cpu", "photo")
    backbone = backbones.make(recipe.backbone, channels=3, **recipe.backbone_settings).eval()
    side = backbone.inputs.size or 224
    load = partial(
        read_tensor, preprocess=Preprocess(size=(side, side), crop=None, mean=(0.0,) * 3, std=(1.0,) * 3)
    )
    spent: dict[str, list[float]] = {"torch": [], "now": [], "conversion": []}
    with tempfile.TemporaryDirectory() as place:
        if options.folder is None:
            files = generated(Path(place), options.pictures)
        else:
            files = sorted(options.folder.glob("*.jpg"))[: options.pictures]
        first = torch.stack([load(file) for file in files[:AT_ONCE]])
        convert(backbone, first)  # imports
        for _ in range(options.rounds):
            seconds, wanted = timed(lambda: by_torch(backbone, files, load))
            spent["torch"].append(seconds)
            seconds, found = timed(lambda: by_onnxruntime(backbone, files, load))
            spent["now"].append(seconds)
            spent["conversion"].append(timed(lambda: convert(backbone, first, threads=1))[0])
    assert isinstance(wanted, Tensor)
    assert isinstance(found, Tensor)
    best = {name: min(seconds) for name, seconds in spent.items()}
    before, whole = (best[name] / len(files) for name in ("torch", "now"))
    bare = whole - best["conversion"] / len(files)
    shared = bare + best["conversion"] / MANY
    apart = float((wanted - found).abs().max())
    passed = before / shared >= BAR and apart <= 1e-3
    print(f"CPU time per picture, {len(files)} pictures, best of {options.rounds} rounds")
    print(f"torch, as before: {1e3 * before:.0f} ms")
    for name, seconds in (
        ("without the conversion", bare),
        (f"with it, {len(files)} pictures", whole),
        (f"with it, {MANY:,} pictures", shared),
    ):
        print(f"onnxruntime, {name}: {1e3 * seconds:.0f} ms, {before / seconds:.2f}x less")
    worth = best["conversion"] / max(before - bare, 1e-9)
    print(f"conversion: {best['conversion']:.1f} s, worth it from {worth:.0f} pictures on")
    print(f"largest difference of features: {apart:.1g}")
    print(f"bar: {BAR}x with the conversion and {MANY:,} pictures, {'passed' if passed else 'MISSED'}")
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
