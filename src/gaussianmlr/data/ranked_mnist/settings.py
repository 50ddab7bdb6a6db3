"""What a member of the Ranked MNIST family looks like: canvas, sizes, light, colour, and what is ranked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, get_args

from gaussianmlr.errors import DataError, shorten

Factor = Literal["scale", "brightness"]
DIGIT_SIDE = 28


@dataclass(frozen=True, kw_only=True)
class Setting:
    """How to make the images of one set, and which factor its ranks follow.

    Two settings that differ in `name` and `factor` only have the same images.

    Parameters
    ----------
    name : str
        What to call it.
    factor : {"scale", "brightness"}
        The factor that orders the digits of an image; its range must not be a single value.
    scale : (float, float)
        A digit is ``floor(28 * scale)`` pixels wide and high, scale uniform in this range.
    brightness : (float, float)
        Factor of its brightness, uniform in this range, within 0 to 1.
    colour : bool
        Whether every digit has a random hue, and a saturation in 0.5 to 1; else it is grey.
    canvas : int
        Width and height of an image in pixels.
    count : (int, int)
        The fewest and the most digits on an image, all different.

    Examples
    --------
    >>> SETTINGS["gray-s"].scale
    (1.0, 3.0)
    >>> small = Setting(name="quick", factor="scale", scale=(0.5, 1.5), canvas=112, count=(1, 5))
    >>> small.channels, small.largest
    (1, 42)
    >>> Setting(name="dull", factor="brightness", scale=(1, 2))
    Traceback (most recent call last):
    gaussianmlr.errors.DataError: brightness is (1.0, 1.0) in 'dull', which is ranked by it; expected a range
    """

    name: str
    factor: Factor
    scale: tuple[float, float] = (1.0, 1.0)
    brightness: tuple[float, float] = (1.0, 1.0)
    colour: bool = False
    canvas: int = 224
    count: tuple[int, int] = (1, 10)

    def __post_init__(self) -> None:
        for range_name in get_args(Factor):
            low, high = map(float, getattr(self, range_name))
            object.__setattr__(self, range_name, (low, high))
        if self.factor not in get_args(Factor):
            raise DataError(f"factor is {shorten(self.factor)}; expected 'scale' or 'brightness'")
        self._check("brightness", self.brightness, 0.0, 1.0)
        # Places are integers in [1, canvas - 2 - side], so the largest side leaves room for one.
        self._check("scale", self.scale, 1 / DIGIT_SIDE, (self.canvas - 3) / DIGIT_SIDE)
        self._check("count", self.count, 1, 10)
        low, high = getattr(self, self.factor)
        if low == high:
            raise DataError(
                f"{self.factor} is {(low, high)} in {self.name!r}, which is ranked by it; expected a range"
            )

    def _check(self, what: str, value: tuple[float, float], least: float, most: float) -> None:
        if not least <= value[0] <= value[1] <= most:
            raise DataError(
                f"{what} is {value} in {self.name!r}; expected (low, high) within {least:.4g} to {most:.4g}"
            )

    @property
    def channels(self) -> int:
        """1 for grey images, 3 for red, green and blue."""
        return 3 if self.colour else 1

    @property
    def largest(self) -> int:
        """The side of the largest digit, in pixels."""
        return int(DIGIT_SIDE * self.scale[1])

    @property
    def mix(self) -> bool:
        """Whether both factors change, one of them without a meaning for the ranks."""
        return self.scale[0] < self.scale[1] and self.brightness[0] < self.brightness[1]

    @property
    def pictures(self) -> str:
        """A text that is equal for settings that have the same images: it seeds them."""
        return (
            f"canvas={self.canvas} scale={self.scale} brightness={self.brightness} "
            f"colour={bool(self.colour)} count={tuple(map(int, self.count))}"
        )


_SCALE = (1.0, 3.0)
_LIGHT = (0.0, 1.0)

SETTINGS: Mapping[str, Setting] = MappingProxyType(
    {
        setting.name: setting
        for setting in (
            Setting(name="gray-s", factor="scale", scale=_SCALE),
            Setting(name="gray-b", factor="brightness", brightness=_LIGHT),
            Setting(name="gray-s-mix", factor="scale", scale=_SCALE, brightness=_LIGHT),
            Setting(name="gray-b-mix", factor="brightness", scale=_SCALE, brightness=_LIGHT),
            Setting(name="color-s", factor="scale", scale=_SCALE, colour=True),
            Setting(name="color-b", factor="brightness", brightness=_LIGHT, colour=True),
            Setting(name="color-s-mix", factor="scale", scale=_SCALE, brightness=_LIGHT, colour=True),
            Setting(name="color-b-mix", factor="brightness", scale=_SCALE, brightness=_LIGHT, colour=True),
            Setting(name="gray-s-small", factor="scale", scale=(1.0, 1.5)),
        )
    }
)


def get_setting(name: str | Setting) -> Setting:
    """The setting of a name; a setting is returned as it is.

    Examples
    --------
    >>> get_setting("color-b").factor
    'brightness'
    >>> get_setting("gray")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    gaussianmlr.errors.DataError: there is no Ranked MNIST set 'gray'; expected one of gray-s, gray-b, ...
    """
    if isinstance(name, Setting):
        return name
    if name not in SETTINGS:
        raise DataError(
            f"there is no Ranked MNIST set {shorten(name)}; expected one of {', '.join(SETTINGS)}"
        )
    return SETTINGS[name]
