"""Reads pictures, or refuses them with the name of the file."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch
from torch import Tensor

from gaussianmlr._utils.extras import require
from gaussianmlr.data.dataset import RankedData
from gaussianmlr.data.loading import truth_at
from gaussianmlr.data.transforms import Augment, Pixels, Preprocess
from gaussianmlr.errors import DataError

if TYPE_CHECKING:
    from PIL import Image

Mode = Literal["RGB", "L"]
WHITE = (255, 255, 255)
MAX_PIXELS = 89_478_485  # Pillow's limit for decompression bombs
# Formats that Pillow decodes itself: EPS starts Ghostscript, others contain scripts.
FORMATS = ("PNG", "JPEG", "GIF", "BMP", "TIFF", "WEBP", "PPM")


def read_image(
    path: str | os.PathLike[str],
    mode: Mode = "RGB",
    *,
    max_pixels: int = MAX_PIXELS,
    background: Sequence[int] = WHITE,
) -> Pixels:
    """Read a picture as a viewer shows it, or refuse it with its name.

    The EXIF orientation is applied; palettes, CMYK and gray are converted; 16-bit gray is scaled, not
    clipped; transparent parts show the background; of an animation or a multi-page file the first
    picture is read. Colour profiles are not applied. 32-bit pixels have no known range and are refused.

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
        For a file that is missing, empty, a folder, not a picture, truncated, damaged or too large.

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
    return _read(file, file, mode, max_pixels, tuple(background))


def read_tensor(file: str | os.PathLike[str], preprocess: Preprocess) -> Tensor:
    """The preprocessed tensor of an image file."""
    return preprocess(read_image(file, "L" if preprocess.channels == 1 else "RGB"))


def open_image(source: Path | io.BytesIO, name: Path | str = "picture") -> Image.Image:
    """Open a picture without decoding it: a regular file, or bytes with a name, in one of `FORMATS`.

    All pictures are opened here, so that no file starts a program or blocks.

    Examples
    --------
    >>> import io
    >>> from gaussianmlr.data.readers.images import open_image
    >>> open_image(io.BytesIO(b"%!PS-Adobe-3.0 EPSF-3.0"))
    Traceback (most recent call last):
        ...
    gaussianmlr.errors.DataError: picture: is not a picture; expected PNG, JPEG, GIF, BMP, TIFF, WEBP or PPM
    """
    require("reading pictures", "PIL")
    from PIL import Image, UnidentifiedImageError

    if isinstance(source, Path):
        name = source
        _check_file(source)
    try:
        return Image.open(source, formats=FORMATS)
    except UnidentifiedImageError:
        expected = f"{', '.join(FORMATS[:-1])} or {FORMATS[-1]}"
        raise DataError(f"{name}: is not a picture; expected {expected}") from None


def decode_image(
    data: bytes,
    mode: Mode = "RGB",
    *,
    name: str = "picture",
    max_pixels: int = MAX_PIXELS,
    background: Sequence[int] = WHITE,
) -> Pixels:
    """Read a picture from untrusted bytes, like `read_image`.

    Parameters
    ----------
    data : bytes
        The contents of an image file.
    name : str
        Name for messages.
    mode, max_pixels, background
        As in `read_image`.

    Examples
    --------
    >>> import io
    >>> from PIL import Image
    >>> from gaussianmlr.data.readers.images import decode_image
    >>> Image.new("L", (4, 2), 255).save(white := io.BytesIO(), "PNG")
    >>> decode_image(white.getvalue(), "L").shape
    (2, 4)
    """
    if not data:
        raise DataError(f"{name}: is empty (0 bytes); expected a picture")
    return _read(io.BytesIO(data), name, mode, max_pixels, tuple(background))


def _read(
    source: Path | io.BytesIO,
    file: Path | str,
    mode: Mode,
    max_pixels: int,
    background: tuple[int, ...],
) -> Pixels:
    require("reading pictures", "PIL")
    from PIL import Image

    try:
        with open_image(source, file) as image:
            width, height = image.size
            if width * height > max_pixels:
                raise DataError(f"{file}: {width} x {height} pixels; expected at most {max_pixels:,} pixels")
            image.load()
            return np.asarray(_upright(_flat(image, background, file), image, mode), dtype=np.uint8)
    except DataError:
        raise
    except (Image.DecompressionBombError, Image.DecompressionBombWarning):
        raise DataError(f"{file}: too large; expected at most {max_pixels:,} pixels") from None
    except Exception as error:  # a damaged file can make a decoder raise anything
        raise DataError(f"{file}: damaged or cut off: {error}") from None


def _check_file(file: Path) -> None:
    try:
        size = file.stat().st_size
    except (OSError, ValueError) as error:  # a NUL in the name is a ValueError
        reason = getattr(error, "strerror", None) or error
        raise DataError(f"{file}: {reason}; expected a picture") from None
    if not file.is_file():
        raise DataError(
            f"{file}: is {'a folder' if file.is_dir() else 'not a regular file'}; expected a picture"
        )
    if size == 0:
        raise DataError(f"{file}: is empty (0 bytes); expected a picture")


def _flat(image: Image.Image, background: tuple[int, ...], file: Path | str) -> Image.Image:
    """Eight bits per channel, nothing transparent."""
    from PIL import Image

    if image.mode.startswith("I;16") or (image.mode == "I" and image.format == "PNG"):
        values = np.asarray(image).astype(np.uint16)
        return Image.fromarray(((values.astype(np.uint32) + 128) // 257).astype(np.uint8))
    if image.mode in ("I", "F"):
        raise DataError(f"{file}: 32-bit pixels have no known range; save it with 8 or 16 bits per channel")
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
# Transpositions that undo each EXIF orientation.
_TURNS = {
    2: "FLIP_LEFT_RIGHT",
    3: "ROTATE_180",
    4: "FLIP_TOP_BOTTOM",
    5: "TRANSPOSE",
    6: "ROTATE_270",
    7: "TRANSVERSE",
    8: "ROTATE_90",
}


class RankedImages(torch.utils.data.Dataset[tuple[Tensor, Tensor]]):
    """The pictures and ranks of a data set, read on access.

    Parameters
    ----------
    data : RankedData
        With images.
    transform : Preprocess, Augment or callable, optional
        Makes a tensor of a uint8 array [height, width(, 3)]. `Augment` also depends on the epoch
        and the index. Without it, items are uint8 tensors [channels, height, width] of any size.
    mode : {"RGB", "L"}, optional
        Colour, or gray; the channels of the transform if left out.
    max_pixels, background
        As in `read_image`.
    by_ranker : bool
        Draw the order of one ranker per epoch, instead of taking the aggregated order.
    seed : int
        Seed of that draw.

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
        transform: Preprocess | Augment | Callable[[Pixels], Tensor] | None = None,
        *,
        mode: Mode | None = None,
        max_pixels: int = MAX_PIXELS,
        background: Sequence[int] = WHITE,
        by_ranker: bool = False,
        seed: int = 0,
    ) -> None:
        if data.images is None:
            raise DataError(f"expected data with images, got {data!r}")
        self.data, self.files, self.transform, self.seed = data, data.images, transform, seed
        self.mode: Mode = mode or ("L" if getattr(transform, "channels", 3) == 1 else "RGB")
        self._reading: dict[str, Any] = {"max_pixels": max_pixels, "background": tuple(background)}
        drawn = by_ranker and data.by_ranker is not None
        self.ranks = torch.from_numpy(data.by_ranker if drawn else data.ranks)
        self.weights = None if data.weights is None else torch.from_numpy(data.weights).float()
        self.shares: Tensor | None = None  # as in `Arrays`
        # In shared memory, so that persistent workers see the epoch change.
        self._epoch = torch.zeros((), dtype=torch.int64)
        self._epoch.share_memory_()  # type: ignore[no-untyped-call]

    def __len__(self) -> int:
        return len(self.files)

    @property
    def epoch(self) -> int:
        """The epoch that augmentation draws for."""
        return int(self._epoch)

    def set_epoch(self, epoch: int) -> None:
        """Set the epoch, for every worker too."""
        self._epoch.fill_(epoch)

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        if not -len(self) <= index < len(self):
            raise IndexError(f"there are {len(self)} images, no image {index}")
        image, ranks, *_ = self.tensors_at([index % len(self)], self.epoch)
        return image[0], ranks[0]

    def tensors_at(self, indices: Sequence[int], epoch: int = 0) -> tuple[Tensor, ...]:
        """A batch: images, ranks and, if the data has them, weights."""
        where = torch.as_tensor(indices, dtype=torch.int64)
        images = [self.load(self.files[index], epoch, index) for index in where.tolist()]
        # A process may have no share of the last batch.
        stacked = torch.stack(images) if images else self.load(self.files[0])[None][:0]
        return stacked, *truth_at(where, self.ranks, self.weights, self.seed, epoch, self.shares)

    def load(self, file: Path, epoch: int = 0, index: int = 0) -> Tensor:
        """The tensor of a file; epoch and index are for `Augment`."""
        pixels = read_image(file, self.mode, **self._reading)
        if self.transform is None:
            planes = pixels[None] if pixels.ndim == 2 else pixels.transpose(2, 0, 1)
            return torch.from_numpy(np.array(planes, order="C"))
        if isinstance(self.transform, Augment):
            return self.transform(pixels, epoch=epoch, index=index)
        return self.transform(pixels)

    def loading(self) -> dict[str, Any] | None:
        """What identifies the tensors of the files, for caches; None if settings do not determine them."""
        usual = self._reading == {"max_pixels": MAX_PIXELS, "background": WHITE}
        return self.transform.to_dict() if usual and isinstance(self.transform, Preprocess) else None
