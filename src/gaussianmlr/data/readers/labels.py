"""Labels in a text file."""

from __future__ import annotations

import os

from gaussianmlr._utils.bounded import check_file
from gaussianmlr.errors import DataError
from gaussianmlr.orders import check_labels

__all__ = ["read_labels"]

_LARGEST = 1 << 24  # bytes of a file of labels


def read_labels(path: str | os.PathLike[str]) -> tuple[str, ...]:
    r"""Read labels from a file, one per line; empty lines and lines that start with ``#`` are ignored.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "labels.txt").write_text("sky\n\nsea\n")
    ...     read_labels(Path(folder, "labels.txt"))
    ('sky', 'sea')
    """
    file = check_file(path, "a text file with one label per line")
    if (size := file.stat().st_size) > _LARGEST:
        raise DataError(f"{file}: {size:,} bytes; expected a text file with one label per line")
    try:
        lines = [line.strip() for line in file.read_text("utf-8-sig").splitlines()]
    except UnicodeDecodeError as error:
        raise DataError(f"{file}: byte {error.start} is not UTF-8; save the labels as UTF-8") from None
    labels = [line for line in lines if line and not line.startswith("#")]
    if not labels:
        raise DataError(f"{file}: holds no label; expected one per line")
    try:
        return check_labels(labels)
    except DataError as error:
        raise DataError(f"{file}: {error}") from None
