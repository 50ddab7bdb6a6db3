"""From pixels to tensors: preprocessing, and augmentation for training.

Resizing is Pillow's (anti-aliased, the same everywhere); the operations of RandAugment are kornia's.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import torch

from gaussianmlr.errors import DataError, shorten

Pixels = npt.NDArray[np.uint8]
Interpolation = Literal["nearest", "bilinear", "bicubic", "lanczos"]
IMAGENET_MEAN = (0.485, 0.456, 0.406)
IMAGENET_STD = (0.229, 0.224, 0.225)
_INTERPOLATIONS = ("nearest", "bilinear", "bicubic", "lanczos")


@dataclass(frozen=True)
class Preprocess:
    r"""Resize, crop and normalise a picture; part of a model's configuration.

    A value :math:`v` of 0..255 becomes :math:`(v / 255 - \mathrm{mean}) / \mathrm{std}`.

    Parameters
    ----------
    size : (int, int)
        Height and width of the result.
    crop : float or None
        Share of the largest centred crop with the aspect ratio of `size`, per side: 0.875 is "resize to
        256, crop to 224". None resizes the whole picture without keeping its aspect ratio.
    mean, std : tuple of float
        One per channel, on the scale 0..1. ImageNet's if left out, 0.5 and 1 for gray.
    channels : {3, 1}
        Colour, or gray.
    interpolation : {"bilinear", "nearest", "bicubic", "lanczos"}
        Filter of Pillow; all but nearest are anti-aliased.

    Examples
    --------
    >>> import numpy as np
    >>> from gaussianmlr.data import Preprocess
    >>> preprocess = Preprocess(size=(2, 2), crop=1.0, mean=(0.5,), std=(0.25,), channels=1)
    >>> preprocess(np.full((4, 6), 255, dtype=np.uint8))
    tensor([[[2., 2.],
             [2., 2.]]])
    >>> Preprocess.from_dict(preprocess.to_dict()) == preprocess
    True
    """

    size: tuple[int, int] = (224, 224)
    crop: float | None = 0.875
    mean: tuple[float, ...] = ()
    std: tuple[float, ...] = ()
    channels: int = 3
    interpolation: Interpolation = "bilinear"

    def __post_init__(self) -> None:
        if self.channels not in (1, 3):
            raise DataError(f"channels is 1 or 3, not {self.channels!r}")
        size = (self.size, self.size) if isinstance(self.size, int) else tuple(self.size)
        if len(size) != 2 or not all(isinstance(side, int) and side > 0 for side in size):
            raise DataError(f"expected size as (height, width) in pixels, got {self.size!r}")
        if self.crop is not None and not 0 < self.crop <= 1:
            raise DataError(f"expected crop above 0 and up to 1, or None, got {self.crop!r}")
        if self.interpolation not in _INTERPOLATIONS:
            raise DataError(f"interpolation is one of {_INTERPOLATIONS}, not {self.interpolation!r}")
        colour = self.channels == 3
        mean = tuple(map(float, self.mean)) or (IMAGENET_MEAN if colour else (0.5,))
        std = tuple(map(float, self.std)) or (IMAGENET_STD if colour else (1.0,))
        if not len(mean) == len(std) == self.channels or min(std) <= 0:
            raise DataError(
                f"expected a mean and a std > 0 for each of {self.channels} channels, got {mean}, {std}"
            )
        for name, value in {"size": size, "mean": mean, "std": std}.items():
            object.__setattr__(self, name, value)  # lists from JSON become tuples

    def __call__(self, pixels: Pixels) -> torch.Tensor:
        """The float32 tensor [channels, height, width] of a uint8 array [h, w] or [h, w, 3]."""
        return self.normalise(self.unit(pixels))

    def unit(self, pixels: Pixels) -> torch.Tensor:
        """Resized and cropped, on the scale 0..1, before augmentation."""
        planes = torch.from_numpy(self.resize(pixels))
        planes = planes[None] if planes.ndim == 2 else planes.permute(2, 0, 1)
        return planes.to(torch.float32, memory_format=torch.contiguous_format).contiguous().div_(255)

    def normalise(self, unit: torch.Tensor) -> torch.Tensor:
        """Subtract the mean and divide by the standard deviation of each channel."""
        mean, std = (
            torch.tensor(values, dtype=unit.dtype)[:, None, None] for values in (self.mean, self.std)
        )
        return (unit - mean).div_(std)

    def resize(self, pixels: Pixels) -> Pixels:
        """Resized and cropped, still 0..255."""
        from PIL import Image

        expected = "[h, w]" if self.channels == 1 else "[h, w, 3]"
        if pixels.dtype != np.uint8 or pixels.ndim != (2 if self.channels == 1 else 3) or 0 in pixels.shape:
            raise DataError(f"expected uint8 pixels {expected}, got {pixels.dtype} {list(pixels.shape)}")
        height, width = self.size
        filtered = Image.Resampling[self.interpolation.upper()]
        # Resize and crop in one pass.
        box = self.box(*pixels.shape[:2])
        return np.array(Image.fromarray(pixels).resize((width, height), filtered, box=box), dtype=np.uint8)

    def box(self, height: int, width: int) -> tuple[float, float, float, float]:
        """The part of a picture that is kept: left, top, right, bottom, in its pixels."""
        if self.crop is None:
            return (0.0, 0.0, float(width), float(height))
        scale = min(height / self.size[0], width / self.size[1]) * self.crop
        kept_height, kept_width = self.size[0] * scale, self.size[1] * scale
        left, top = max((width - kept_width) / 2, 0.0), max((height - kept_height) / 2, 0.0)
        return (left, top, min(left + kept_width, width), min(top + kept_height, height))

    def to_dict(self) -> dict[str, Any]:
        """Every setting, ready for JSON."""
        return {name: [*value] if isinstance(value, tuple) else value for name, value in asdict(self).items()}

    @classmethod
    def from_dict(cls, settings: Mapping[str, Any]) -> Preprocess:
        """The inverse of `to_dict`; a setting that is not known is refused."""
        unknown = sorted(set(settings) - {entry.name for entry in fields(cls)})
        if unknown:
            raise DataError(f"unknown settings of Preprocess: {shorten(unknown)}")
        return cls(**settings)


@dataclass(frozen=True)
class Augment:
    """Preprocess with RandAugment in between, the same for the same (seed, epoch, index).

    Draws some of thirteen operations of kornia without replacement, all of the same strength:
    contrast stretched or equalised; turned, sheared or moved in either direction; fewer bits;
    solarised; brightness, contrast, saturation or sharpness up or down.

    Parameters
    ----------
    preprocess : Preprocess
        What happens before (resize, crop) and after (normalise).
    operations : int
        Number of operations per image.
    magnitude, bins : int
        The strength, from 0 to bins - 1; the largest turns by 30 degrees, shears by
        0.3, moves by 45 % of the side, keeps 4 bits and changes colours by 90 %.
    seed : int
        Seed of the draws.

    Examples
    --------
    >>> import numpy as np
    >>> from gaussianmlr.data import Augment, Preprocess
    >>> augment = Augment(Preprocess(size=(32, 32)))
    >>> pixels = np.arange(48 * 64 * 3, dtype=np.uint8).reshape(48, 64, 3)
    >>> bool((augment(pixels, epoch=1, index=7) == augment(pixels, epoch=1, index=7)).all())
    True
    """

    preprocess: Preprocess = field(default_factory=Preprocess)
    operations: int = 3
    magnitude: int = 10
    bins: int = 40
    seed: int = 0

    def __post_init__(self) -> None:
        if not 1 <= self.operations <= len(_policy(0.5, True)):
            raise DataError(f"expected 1 to {len(_policy(0.5, True))} operations, got {self.operations!r}")
        if self.bins < 2 or not 0 <= self.magnitude < self.bins:
            raise DataError(
                f"expected a magnitude from 0 to bins - 1, got {self.magnitude!r} of {self.bins!r}"
            )
        if self.seed < 0:
            raise DataError(f"expected a seed >= 0, got {self.seed!r}")

    @property
    def channels(self) -> int:
        """Colour (3) or gray (1), as the preprocessing says."""
        return self.preprocess.channels

    def __call__(self, pixels: Pixels, *, epoch: int = 0, index: int = 0) -> torch.Tensor:
        """The normalised float32 tensor [channels, height, width] of an augmented picture."""
        unit = self.augment(self.preprocess.unit(pixels), epoch=epoch, index=index)
        return self.preprocess.normalise(unit)

    def augment(self, unit: torch.Tensor, *, epoch: int = 0, index: int = 0) -> torch.Tensor:
        """The augmented [channels, height, width] tensor, values still 0..1."""
        if self.magnitude == 0:
            return unit
        number, up = np.random.SeedSequence((self.seed, epoch, index)).generate_state(2, np.uint64).tolist()
        module = _rand_augment(self.operations, self.magnitude / (self.bins - 1), bool(up & 1))
        gray = unit.shape[0] == 1
        batch = unit.expand(3, -1, -1)[None] if gray else unit[None]
        state = torch.default_generator.get_state()  # kornia draws from the global generator of the CPU
        try:
            torch.default_generator.manual_seed(number)
            with torch.no_grad():
                result: torch.Tensor = module(batch)[0].clamp_(0, 1)
        finally:
            torch.default_generator.set_state(state)
        return result[:1] if gray else result


def _policy(level: float, up: bool) -> list[list[tuple[str, float, float | None]]]:
    """Operations of kornia whose strength in the middle of its scale is the one wanted.

    kornia's own ranges make solarising and darkening stronger as the magnitude falls, and shear by
    tens of degrees. These grow with the level from no change, but for auto-contrast and equalising,
    which have no strength.
    """
    sign = 1.0 if up else -1.0

    def at(value: float) -> tuple[float, float]:
        return (value, value)

    def signed(largest: float) -> tuple[float, float]:
        return (-2 * level * largest, 2 * level * largest)  # kornia draws the sign

    factor = 1 + sign * 0.9 * level
    ranges: dict[str, tuple[float, float]] = {
        "auto_contrast": (0, 1),
        "equalize": (0, 1),
        "rotate": signed(30.0),
        "shear_x": signed(math.degrees(math.atan(0.3)) / 180),
        "shear_y": signed(math.degrees(math.atan(0.3)) / 180),
        "translate_x": signed(0.45),
        "translate_y": signed(0.45),
        "posterize": at(8 - round(4 * level)),
        "solarize": at(max(1 - level, 0.0)),
        "brightness": at(factor),
        "contrast": at(factor),
        "color": at(factor),
        "sharpness": at(factor),
    }
    return [[(name, low, high)] for name, (low, high) in ranges.items()]


@functools.lru_cache(maxsize=8)
def _rand_augment(operations: int, level: float, up: bool) -> torch.nn.Module:
    try:
        from kornia.augmentation.auto import RandAugment
    except ImportError:
        raise DataError("augmentation needs kornia: pip install 'gaussianmlr[images]'") from None
    # m = 15 is the middle of kornia's scale of 30.
    module: torch.nn.Module = RandAugment(n=operations, m=15, policy=_policy(level, up))
    return module.eval()
