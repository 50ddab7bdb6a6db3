"""The data of a run, recorded in its folder, so that a report can find it and measure on it."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from gaussianmlr._utils.files import write_text
from gaussianmlr._utils.strict_json import dumps
from gaussianmlr._utils.typed import read_typed
from gaussianmlr.data import SETTINGS, RankedData, RankedMNIST
from gaussianmlr.data.readers.layout import Layout
from gaussianmlr.errors import DataError

__all__ = ["Origin", "origin_of", "read_origin"]

_FILE = "data.json"
_MOST = 10_000_000  # validation images; more would be a mistake


@dataclass(frozen=True)
class Origin:
    """The data of a run.

    Attributes
    ----------
    data : str
        Name of a Ranked MNIST set, or a path, as the user gave it.
    beside : str or None
        The path relative to the run's folder, for runs that move together with their data.
    digest : str
        Fingerprint of the data, or digest of the digits that it is drawn from.
    ids : tuple of str or None
        Ids of the validation instances, if the user split the data; the digest is theirs.
    validation : int or None
        Ranked MNIST: number of validation images.
    digits : str
        Ranked MNIST: source of the digits.
    shared_digits : bool
        Ranked MNIST: whether training and validation images have the same digits.
    threshold, tolerance
        How grades were read.
    layout : Layout
        How the table was read.
    streamed : bool
        Whether it was read in parts, as larger than memory.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     Origin("gray-s", digest="0", validation=100).write(folder)
    ...     read_origin(folder).data
    'gray-s'
    """

    data: str
    beside: str | None = None
    digest: str = ""
    ids: tuple[str, ...] | None = None
    validation: int | None = None
    digits: str = "auto"
    shared_digits: bool = False
    threshold: float | None = None
    tolerance: float = 0.0
    layout: Layout = field(default_factory=Layout)
    streamed: bool = False

    def write(self, folder: str | os.PathLike[str]) -> None:
        """Write it to the folder of a run."""
        fields = asdict(self)
        if self.data not in SETTINGS:
            try:
                fields["beside"] = Path(os.path.relpath(self.data, folder)).as_posix()
            except ValueError:  # another drive
                fields["beside"] = None
        write_text(Path(folder) / _FILE, dumps(fields, indent=2, ensure_ascii=False) + "\n")


def origin_of(data: Any, validation: Any) -> Origin | None:
    """The origin of the data of a run; None if the validation data does not know it.

    Examples
    --------
    >>> data = RankedMNIST("gray-s", "validation", size=10, digits="embedded")
    >>> origin_of(None, data).data, origin_of(None, RankedMNIST("gray-s", "validation", seed=1))
    ('gray-s', None)
    """
    if isinstance(validation, RankedData) and validation.read_from is not None:
        path, threshold, tolerance, layout = validation.read_from
        digest, ids = validation.fingerprint(), validation.ids
        return Origin(path, digest=digest, ids=ids, threshold=threshold, tolerance=tolerance, layout=layout)
    if not isinstance(validation, RankedMNIST):
        return None
    digits = validation.digits_from or getattr(data, "digits_from", None)
    is_usual = validation.split == "validation" and validation.seed == validation.start == 0
    if digits is None or not is_usual or SETTINGS.get(validation.name) != validation.setting:
        return None
    return Origin(
        validation.name,
        digest=validation.digits.digest(),
        validation=len(validation),
        digits=digits,
        shared_digits=validation.shared_digits,
    )


def read_origin(folder: str | os.PathLike[str]) -> Origin | None:
    """The data of a run; None for a run that did not record it."""
    file = Path(folder) / _FILE
    if not file.is_file():
        return None
    try:
        origin = read_typed(Origin, file)
    except (OSError, ValueError) as error:
        raise DataError(f"{file} was changed: {error}") from None
    if origin.validation is not None and not 0 < origin.validation <= _MOST:
        raise DataError(f"{file} was changed: {origin.validation} validation images; expected 1 to {_MOST:,}")
    return origin
