"""Pictures as a browser shows them, made once and kept beside the answers."""

from __future__ import annotations

import hashlib
import io
from pathlib import Path

from gaussianmlr.errors import DataError
from gaussianmlr.files import write_bytes

__all__ = ["SIDES", "picture_file"]

SIDES = {"small": 192, "view": 1280, "full": 4096}


def picture_file(picture: Path, cache: Path, size: str) -> Path:
    """A JPEG of a picture, upright and no larger than asked, from the cache or made now.

    Parameters
    ----------
    picture : pathlib.Path
        The file, of any kind that `gaussianmlr.data.read_image` reads.
    cache : pathlib.Path
        Folder where JPEGs are kept. A picture that changes gets a new one.
    size : {"small", "view", "full"}
        At most 192, 1280 or 4096 pixels wide and high.

    Examples
    --------
    >>> import tempfile
    >>> from PIL import Image
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     Image.new("RGB", (400, 200)).save(f"{folder}/wide.png")
    ...     with Image.open(picture_file(Path(folder, "wide.png"), Path(folder, "cache"), "small")) as made:
    ...         print(made.format, made.size)
    JPEG (192, 96)
    """
    if size not in SIDES:
        raise DataError(f"size is one of {', '.join(SIDES)}, not {size!r}")
    try:
        state = picture.stat()
    except OSError as error:
        raise DataError(f"{picture.name}: {error.strerror or error}; expected a picture") from None
    key = hashlib.sha256(f"{picture}\0{state.st_mtime_ns}\0{state.st_size}".encode()).hexdigest()[:32]
    file = cache / size / key[:2] / f"{key}.jpg"
    if not file.is_file():
        write_bytes(file, _jpeg(picture, SIDES[size]))
    return file


def _jpeg(picture: Path, side: int) -> bytes:
    from PIL import Image

    from gaussianmlr.data.images import read_image

    image = Image.fromarray(read_image(picture))
    image.thumbnail((side, side), Image.Resampling.LANCZOS)
    buffer = io.BytesIO()
    image.save(buffer, "JPEG", quality=85, optimize=True)
    return buffer.getvalue()
