"""Which data a run was trained on, kept beside it, so that it can be found again and measured on."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from gaussianmlr.data import SETTINGS, RankedData, RankedMNIST
from gaussianmlr.errors import DataError
from gaussianmlr.files import write_text
from gaussianmlr.measuring import Part, find_part
from gaussianmlr.model import Model

__all__ = ["Origin", "read_origin"]

_FILE = "data.json"


@dataclass(frozen=True)
class Origin:
    """The data of a run, as it was named.

    Attributes
    ----------
    data : str
        A Ranked MNIST set or a path, as somebody gave it.
    beside : str or None
        The path seen from the run's folder, for runs that moved together with their data.
    digest : str
        What the data is known by: its fingerprint, or a digest of the digits that it is drawn from.
    validation : int or None
        Of Ranked MNIST: validation images.
    digits : str
        Of Ranked MNIST: where its digits come from.
    shared_digits : bool
        Of Ranked MNIST: whether training and validation images have the same digits.
    threshold, tolerance
        How grades were read.

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
    validation: int | None = None
    digits: str = "auto"
    shared_digits: bool = False
    threshold: float | None = None
    tolerance: float = 0.0

    def write(self, folder: str | os.PathLike[str]) -> None:
        """Keep it in the folder of a run."""
        fields = asdict(self)
        if self.data not in SETTINGS:
            try:
                fields["beside"] = Path(os.path.relpath(self.data, folder)).as_posix()
            except ValueError:  # another drive
                fields["beside"] = None
        write_text(Path(folder) / _FILE, json.dumps(fields, indent=2, ensure_ascii=False) + "\n")

    def open(self, model: Model, folder: str | os.PathLike[str], split: str | None = None) -> Part:
        """A part of the data, that for validation if none is named.

        Raises
        ------
        DataError
            Where the data is not there any more, or is not what it was.
        """
        wanted: Any = split or "validation"
        if self.data in SETTINGS:
            shared = self.shared_digits and wanted != "test"
            size = None if wanted == "test" else self.validation
            drawn = RankedMNIST(self.data, wanted, size=size, digits=self.digits, shared_digits=shared)
            # Test images have digits of their own, which nobody recorded.
            same = wanted == "test" or drawn.digits.digest() == self.digest
            part = Part(drawn, wanted, (), drawn.setting)
        else:
            grading: dict[str, Any] = {"threshold": self.threshold, "tolerance": self.tolerance}
            part = find_part(model, self._place(Path(folder)), wanted, **grading)
            same = isinstance(part.whole, RankedData) and part.whole.fingerprint() == self.digest
        if not same:
            raise DataError(f"{self.data} is not what the run was trained on; it was changed since")
        return part

    def _place(self, folder: Path) -> Path:
        given = Path(self.data)
        if given.exists():
            return given
        if self.beside is not None and (folder / self.beside).exists():
            return folder / self.beside
        raise DataError(f"{self.data}: the data of the run is not there any more")


def read_origin(folder: str | os.PathLike[str]) -> Origin | None:
    """What a run was trained on; none for a run that does not say."""
    file = Path(folder) / _FILE
    if not file.is_file():
        return None
    try:
        return Origin(**json.loads(file.read_text("utf-8")))
    except (OSError, ValueError, TypeError) as error:
        raise DataError(f"{file} was changed: {error}") from None
