"""The store of cells: one sealed JSON file per measurement, written whole or not at all."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from gaussianmlr._utils.files import write_text
from gaussianmlr._utils.seals import seal, unseal
from gaussianmlr._utils.strict_json import dumps, loads, read_json
from gaussianmlr._utils.typed import Number, as_typed
from gaussianmlr.errors import DataError

__all__ = [
    "Cell",
    "cell_files",
    "metrics_of",
    "read_cell",
    "read_sealed",
    "versions_of",
    "write_cell",
    "write_sealed",
]

Kind = TypeVar("Kind")


@dataclass(frozen=True)
class Cell:
    """A contender on one split with one seed, measured on the test part.

    Attributes
    ----------
    contender, method, supervision : str
        The contender.
    seed : int
        Seed of split and training.
    fold : int or None
        Index of the test fold, if any.
    metrics : dict of float
        The paper's six and, where there are probabilities, `ece`; as fractions.
    tau_b : list of float
        Tau-b per test instance; None for one without a known label.
    seconds : float
        Training time.
    sizes : dict of int
        Instances in the train, validation and test part.
    parts : str
        Digest of the split: the same for all contenders of a run.
    about, facts, versions : dict
        What was trained (the recipe), facts about the training, and versions of the software.
    """

    contender: str
    method: str
    supervision: str
    seed: int
    fold: int | None
    metrics: dict[str, Number]
    tau_b: list[float | None]
    seconds: float
    sizes: dict[str, int]
    parts: str = ""
    about: dict[str, Any] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)


def write_cell(file: Path, cell: Cell) -> None:
    """Write the file of a cell; metrics that are not numbers are null."""
    write_sealed(file, loads(dumps(asdict(cell))))


def read_cell(file: Path) -> Cell:
    """A finished cell; a `DataError` as in `read_sealed`."""
    return read_sealed(Cell, file)[0]


def cell_files(folder: str | os.PathLike[str]) -> list[Path]:
    """The files of the cells in a folder, by name."""
    return sorted(Path(folder).glob("*.json"))


def write_sealed(
    file: Path, fields: Mapping[str, Any], *, indent: int = 1, one_line: str | None = None
) -> None:
    """Write named fields with their checksum, whole or not at all; `one_line` names a long one.

    Raises
    ------
    ValueError
        For numbers that JSON cannot hold.
    """
    sealed = seal(fields)
    long = {name: sealed.pop(name) for name in [one_line] if name in sealed}
    text = json.dumps(sealed, indent=indent, ensure_ascii=False, allow_nan=False)
    for name, value in long.items():
        line = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        text = text.removesuffix("\n}") + f',\n{" " * indent}"{name}": {line}\n}}'
    write_text(file, text + "\n")


def read_sealed(kind: type[Kind], file: Path) -> tuple[Kind, dict[str, Any]]:
    """The fields of a file as a dataclass, and all of them by name.

    Raises
    ------
    DataError
        If the file is not a cell of this kind, or was changed.
    """
    try:
        fields = unseal(read_json(file))
        return as_typed(kind, fields), fields
    except (OSError, ValueError, TypeError) as error:
        raise DataError(f"{file} is not a cell: {error}; remove it to run it again") from None


def metrics_of(cells: Iterable[Cell]) -> tuple[str, ...]:
    """Names of the metrics that any cell has."""
    return tuple(dict.fromkeys(name for cell in cells for name in cell.metrics))


def versions_of(cells: Iterable[Cell]) -> dict[str, str]:
    """Versions of the software behind cells; several versions of one package are all listed."""
    found: dict[str, set[str]] = {}
    for cell in cells:
        for name, version in cell.versions.items():
            found.setdefault(name, set()).add(version)
    return {name: ", ".join(sorted(versions)) for name, versions in found.items()}
