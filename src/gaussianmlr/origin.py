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
from gaussianmlr.sources import ALIASES, find_data

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
        wanted: Any = (split or "validation").lower()
        wanted = ALIASES.get(wanted, wanted)
        found = self._drawn(wanted) if self.data in SETTINGS else self._read(model, Path(folder), wanted)
        if found is None:
            raise DataError(f"{self.data} is not what the run was trained on; it was changed since")
        return found

    def _drawn(self, split: Any) -> Part | None:
        if split == "test":  # whose digits nobody recorded
            drawn = RankedMNIST(self.data, split, digits=self.digits)
            return Part(drawn, split, ())
        drawn = RankedMNIST(
            self.data, split, size=self.validation, digits=self.digits, shared_digits=self.shared_digits
        )
        same = drawn.digits.digest() == self.digest
        return Part(drawn, split, ()) if same else None

    def _read(self, model: Model, folder: Path, split: str) -> Part | None:
        """From where it was, seen from the run or from here: another file may have its name."""
        places = [Path(self.data)] if self.beside is None else [folder / self.beside, Path(self.data)]
        there = [place for place in places if place.exists()]
        if not there:
            raise DataError(f"{self.data}: the data of the run is not there any more")
        grading: dict[str, Any] = {"threshold": self.threshold, "tolerance": self.tolerance}
        for place in dict.fromkeys(place.resolve() for place in there):
            for labels in (None, model.labels):  # those that occur, or those that were listed
                try:
                    whole = find_data(place, labels=labels, features=model.inputs.get("columns"), **grading)
                except DataError:
                    if labels is None:
                        raise
                    continue  # it has labels by now that the model does not know
                if isinstance(whole, RankedData) and whole.fingerprint() == self.digest:
                    return find_part(model, place, split, **grading)
        return None


def read_origin(folder: str | os.PathLike[str]) -> Origin | None:
    """What a run was trained on; none for a run that does not say."""
    file = Path(folder) / _FILE
    if not file.is_file():
        return None
    try:
        return Origin(**json.loads(file.read_text("utf-8")))
    except (OSError, ValueError, TypeError) as error:
        raise DataError(f"{file} was changed: {error}") from None
