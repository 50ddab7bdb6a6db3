"""Arrays in NPZ and MATLAB files, read within limits."""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gaussianmlr._utils.bounded import check_file, check_unpacked
from gaussianmlr.data.readers.frames import suffix_of
from gaussianmlr.data.readers.matlab import load_mat
from gaussianmlr.errors import DataError


def load_arrays(path: Path, names: Sequence[str] = ("features", "labels")) -> dict[str, npt.NDArray[Any]]:
    """The arrays of an NPZ file, or those of some names of a MATLAB file."""
    return load_mat(path, names) if suffix_of(path) == ".mat" else load_npz(path)


def load_npz(path: Path) -> dict[str, npt.NDArray[Any]]:
    """The arrays of an NPZ file by name."""
    check_file(path, "an NPZ file")
    try:
        with zipfile.ZipFile(path) as archive:  # no more of an entry is read than it declares
            check_unpacked(path, sum(entry.file_size for entry in archive.infolist()))
        with np.load(path, allow_pickle=False) as file:
            return {name: file[name] for name in file.files}
    except DataError:
        raise
    except Exception as error:  # a damaged file can make zip, zlib and numpy raise anything
        raise DataError(f"{path}: cannot be read as NPZ: {error}") from None
