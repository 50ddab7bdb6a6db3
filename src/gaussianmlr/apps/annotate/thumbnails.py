"""JPEGs of pictures for the browser, cached beside the answers."""

from __future__ import annotations

import contextlib
import hashlib
import io
from pathlib import Path

from gaussianmlr._utils.files import write_bytes
from gaussianmlr.data.readers.images import read_image
from gaussianmlr.errors import DataError

__all__ = ["SIDES", "jpeg_of"]

SIDES = {"small": 192, "view": 1280, "full": 4096}


def jpeg_of(picture: Path, cache: Path, size: str) -> bytes:
    """A JPEG of a picture, upright and at most as large as asked, from the cache if possible.

    Without a usable cache, as on a full disk, it is made each time.

    Parameters
    ----------
    picture : pathlib.Path
        The file, of any kind that `gaussianmlr.data.read_image` reads.
    cache : pathlib.Path
        Folder of the JPEGs. A changed picture gets a new one.
    size : {"small", "view", "full"}
        At most 192, 1280 or 4096 pixels wide and high.

    Examples
    --------
    >>> import tempfile
    >>> from PIL import Image
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     Image.new("RGB", (400, 200)).save(f"{folder}/wide.png")
    ...     made = jpeg_of(Path(folder, "wide.png"), Path(folder, "cache"), "small")
    >>> with Image.open(io.BytesIO(made)) as image:
    ...     print(image.format, image.size)
    JPEG (192, 96)
    """
    if size not in SIDES:
        raise DataError(f"size is one of {', '.join(SIDES)}, not {size!r}")
    try:
        state = picture.stat()
    except (OSError, ValueError) as error:  # a name with a NUL is a ValueError
        reason = getattr(error, "strerror", None) or error
        raise DataError(f"{picture.name}: {reason}; expected a picture") from None
    key = hashlib.sha256(f"{picture}\0{state.st_mtime_ns}\0{state.st_size}".encode()).hexdigest()[:32]
    file = cache / size / key[:2] / f"{key}.jpg"
    with contextlib.suppress(OSError):
        return file.read_bytes()
    made = _jpeg(picture, SIDES[size])
    with contextlib.suppress(OSError):
        write_bytes(file, made)
    return made


def _jpeg(picture: Path, side: int) -> bytes:
    from PIL import Image

    image = Image.fromarray(read_image(picture))
    image.thumbnail((side, side), Image.Resampling.LANCZOS)
    buffer = io.BytesIO()
    image.save(buffer, "JPEG", quality=85, optimize=True)
    return buffer.getvalue()
