"""Pictures: read right, or refused with the file's name."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt
import torch

from gaussianmlr.data.dataset import RankedData
from gaussianmlr.errors import DataError

if TYPE_CHECKING:
    from PIL import Image

    from gaussianmlr.data.transforms import Augment, Preprocess

Mode = Literal["RGB", "L"]
Pixels = npt.NDArray[np.uint8]
WHITE = (255, 255, 255)
MAX_PIXELS = 89_478_485  # Pillow's own line between a large picture and a decompression bomb
FORMATS = ("PNG", "JPEG", "GIF", "BMP", "TIFF", "WEBP", "PPM")


def read_image(
    path: str | os.PathLike[str],
    mode: Mode = "RGB",
    *,
    max_pixels: int = MAX_PIXELS,
    background: Sequence[int] = WHITE,
) -> Pixels:
    """Read a picture as people see it, or refuse it with its name.

    Turned as its EXIF orientation says; palettes, CMYK and gray are converted; 16-bit gray is scaled, not
    clipped; transparent parts show the background; of an animation or a many-page file the first
    picture counts. Colour profiles are not applied. 32-bit pixels have no known range and are refused.

    Parameters
    ----------
    path : path-like
        The file.
    mode : {"RGB", "L"}
        Colour, or gray.
    max_pixels : int
        Larger pictures are refused before they are unpacked. Beyond twice
        ``PIL.Image.MAX_IMAGE_PIXELS`` Pillow refuses them by itself.
    background : three integers 0..255
        The colour behind transparent parts.

    Returns
    -------
    uint8 array
        [height, width, 3], or [height, width] for ``"L"``.

    Raises
    ------
    DataError
        For a file that is missing, empty, a folder, no picture, cut off, damaged or too large.

    Examples
    --------
    >>> import tempfile
    >>> from PIL import Image
    >>> from gaussianmlr.data import read_image
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     Image.new("CMYK", (4, 2), (0, 0, 0, 255)).save(f"{folder}/black.jpg")
    ...     pixels = read_image(f"{folder}/black.jpg")
    >>> pixels.shape, int(pixels.max())
    ((2, 4, 3), 0)
    """
    if mode not in ("RGB", "L"):
        raise DataError(f"mode is 'RGB' or 'L', not {mode!r}")
    file = Path(path)
    _check_file(file)
    return _read(file, file, mode, max_pixels, tuple(background))


def decode_image(
    data: bytes,
    mode: Mode = "RGB",
    *,
    name: str = "picture",
    max_pixels: int = MAX_PIXELS,
    background: Sequence[int] = WHITE,
) -> Pixels:
    """Read a picture that came as bytes from anybody, as `read_image` reads files.

    Only formats that Pillow decodes by itself are read (PNG, JPEG, GIF, BMP, TIFF, WebP, PNM): others start
    programs or hold scripts.

    Parameters
    ----------
    data : bytes
        The contents of an image file.
    name : str
        What messages call it.
    mode, max_pixels, background
        As in `read_image`.

    Examples
    --------
    >>> import io
    >>> from PIL import Image
    >>> from gaussianmlr.data.images import decode_image
    >>> Image.new("L", (4, 2), 255).save(white := io.BytesIO(), "PNG")
    >>> decode_image(white.getvalue(), "L").shape
    (2, 4)
    """
    if not data:
        raise DataError(f"{name}: is empty (0 bytes); expected a picture")
    return _read(io.BytesIO(data), name, mode, max_pixels, tuple(background), FORMATS)


def _read(
    source: Path | io.BytesIO,
    file: Path | str,
    mode: Mode,
    max_pixels: int,
    background: tuple[int, ...],
    formats: Sequence[str] | None = None,
) -> Pixels:
    from PIL import Image, UnidentifiedImageError

    try:
        with Image.open(source, formats=formats) as image:
            width, height = image.size
            if width * height > max_pixels:
                raise DataError(f"{file}: {width} x {height} pixels; expected at most {max_pixels:,} pixels")
            image.load()
            return np.asarray(_upright(_flat(image, background, file), image, mode), dtype=np.uint8)
    except DataError:
        raise
    except (Image.DecompressionBombError, Image.DecompressionBombWarning):
        raise DataError(f"{file}: too large; expected at most {max_pixels:,} pixels") from None
    except UnidentifiedImageError:
        raise DataError(f"{file}: is no picture that Pillow can read") from None
    except Exception as error:  # a damaged file can make a decoder raise anything
        raise DataError(f"{file}: damaged or cut off: {error}") from None


def _check_file(file: Path) -> None:
    try:
        size = file.stat().st_size
    except OSError as error:
        raise DataError(f"{file}: {error.strerror or error}; expected a picture") from None
    if not file.is_file():
        raise DataError(
            f"{file}: is {'a folder' if file.is_dir() else 'no regular file'}; expected a picture"
        )
    if size == 0:
        raise DataError(f"{file}: is empty (0 bytes); expected a picture")


def _flat(image: Image.Image, background: tuple[int, ...], file: Path | str) -> Image.Image:
    """Eight bits a channel, nothing transparent."""
    from PIL import Image

    if image.mode.startswith("I;16") or (image.mode == "I" and image.format == "PNG"):
        values = np.asarray(image).astype(np.uint16)
        return Image.fromarray(((values.astype(np.uint32) + 128) // 257).astype(np.uint8))
    if image.mode in ("I", "F"):
        raise DataError(f"{file}: 32-bit pixels have no known range; save it with 8 or 16 bits a channel")
    if image.has_transparency_data:
        front = image.convert("RGBA")
        return Image.alpha_composite(Image.new("RGBA", image.size, (*background, 255)), front).convert("RGB")
    return image


def _upright(flat: Image.Image, image: Image.Image, mode: Mode) -> Image.Image:
    from PIL import Image

    converted = flat if flat.mode == mode else flat.convert(mode)
    turn = _TURNS.get(image.getexif().get(_ORIENTATION, 1))
    return converted if turn is None else converted.transpose(Image.Transpose[turn])


_ORIENTATION = 0x0112
# What undoes each EXIF orientation.
_TURNS = {
    2: "FLIP_LEFT_RIGHT",
    3: "ROTATE_180",
    4: "FLIP_TOP_BOTTOM",
    5: "TRANSPOSE",
    6: "ROTATE_270",
    7: "TRANSVERSE",
    8: "ROTATE_90",
}


class RankedImages(torch.utils.data.Dataset[tuple[torch.Tensor, torch.Tensor]]):
    """The pictures and ranks of a data set, read when they are asked for.

    Parameters
    ----------
    data : RankedData
        With images.
    transform : Preprocess, Augment or callable, optional
        Makes a tensor of a uint8 array [height, width(, 3)]. `Augment` is told the epoch and the
        index too. Without it, items are uint8 tensors [channels, height, width] of any size.
    mode : {"RGB", "L"}, optional
        Colour, or gray; as many channels as the transform wants if left out.
    max_pixels, background
        As in `read_image`.

    Examples
    --------
    >>> import tempfile
    >>> from PIL import Image
    >>> from gaussianmlr.data import Preprocess, RankedData, RankedImages
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     Image.new("RGB", (60, 40), "red").save(f"{folder}/red.png")
    ...     data = RankedData([[2, 1]], ["sky", "sea"], images=[f"{folder}/red.png"])
    ...     image, ranks = RankedImages(data, Preprocess(size=(32, 32)))[0]
    >>> image.shape, ranks.tolist()
    (torch.Size([3, 32, 32]), [2, 1])
    """

    def __init__(
        self,
        data: RankedData,
        transform: Preprocess | Augment | Callable[[Pixels], torch.Tensor] | None = None,
        *,
        mode: Mode | None = None,
        max_pixels: int = MAX_PIXELS,
        background: Sequence[int] = WHITE,
    ) -> None:
        if data.images is None:
            raise DataError(f"expected data with images, got {data!r}")
        self.data = data
        self.transform = transform
        channels = getattr(transform, "channels", 3)
        self.mode: Mode = mode or ("L" if channels == 1 else "RGB")
        self._reading: dict[str, Any] = {"max_pixels": max_pixels, "background": tuple(background)}
        self._ranks = torch.from_numpy(data.ranks)
        # Shared memory: workers that live through all epochs must see the epoch change.
        self._epoch = torch.zeros((), dtype=torch.int64)
        self._epoch.share_memory_()  # type: ignore[no-untyped-call]

    def __len__(self) -> int:
        return len(self.data)

    @property
    def epoch(self) -> int:
        """The epoch that augmentation draws for."""
        return int(self._epoch)

    def set_epoch(self, epoch: int) -> None:
        """Say that another epoch begins, to every worker too."""
        self._epoch.fill_(epoch)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        if not -len(self) <= index < len(self):
            raise IndexError(f"there are {len(self)} images, no image {index}")
        index = index % len(self)
        assert self.data.images is not None  # the constructor refused other data
        pixels = read_image(self.data.images[index], self.mode, **self._reading)
        return self._tensor(pixels, index), self._ranks[index]

    def _tensor(self, pixels: Pixels, index: int) -> torch.Tensor:
        if self.transform is None:
            planes = pixels[None] if pixels.ndim == 2 else pixels.transpose(2, 0, 1)
            return torch.from_numpy(np.array(planes, order="C"))
        from gaussianmlr.data.transforms import Augment

        if isinstance(self.transform, Augment):
            return self.transform(pixels, epoch=self.epoch, index=index)
        return self.transform(pixels)
