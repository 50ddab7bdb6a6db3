"""The trees of a model on disk: XGBoost's own UBJ, one file per member, with checksums in the config."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

from gaussianmlr._utils.bounded import read_regular
from gaussianmlr._utils.files import write_bytes
from gaussianmlr.data.inputs import Inputs, encoding_of
from gaussianmlr.errors import DataError
from gaussianmlr.model.checks import sha256
from gaussianmlr.nn.trees import MOST_BYTES, Trees

MOST_INDICATORS = 64  # per column of categories

__all__ = ["categories_of", "file_of", "read_trees", "write_trees"]


def file_of(folder: Path, member: int) -> Path:
    """The file of a member."""
    return folder / f"trees-{member}.ubj"


def write_trees(trees: Trees, folder: Path) -> list[str]:
    """Write one file per member; returns their checksums."""
    for member, file in enumerate(trees.files):
        write_bytes(file_of(folder, member), file)
    return [sha256(file_of(folder, member)) for member in range(trees.members)]


def read_trees(folder: Path, digests: Sequence[str], labels: int, inputs: Inputs) -> list[Trees]:
    """The trees of a model, none or one; a file that was changed, cut or made for another is refused."""
    files, left = [], MOST_BYTES
    for member, digest in enumerate(digests):
        file = file_of(folder, member)
        if not file.is_file():
            raise DataError(f"{folder} has no {file.name}; copy the whole folder")
        try:
            # Read once and then compared: sizes are those of holes, too, and members may be a thousand.
            data = read_regular(file, left)
        except OSError as error:
            raise DataError(f"{file} cannot be read: {error.strerror or error}") from None
        if hashlib.sha256(data).hexdigest() != digest:
            raise DataError(f"{file} is not the file that was saved: it was changed or cut; copy it again")
        files.append(data)
        left -= len(data)
    try:
        channels = inputs["channels"]
        return (
            [Trees(files, labels=labels, channels=channels, categories=categories_of(inputs))]
            if files
            else []
        )
    except DataError as error:
        raise DataError(f"{folder}: {error}") from None


def categories_of(inputs: Inputs) -> dict[int, int]:
    """Number of categories of the channels that hold category codes.

    Channels with more than 64 categories are left out: trees compare their codes as numbers.

    Examples
    --------
    >>> categories_of({"encoding": [{"kind": "number"}, {"kind": "category", "categories": ["a", "b"]}]})
    {1: 2}
    """
    found, place = {}, 0
    for column in encoding_of(inputs) or ():
        if column.kind == "category" and 0 < len(column.categories) <= MOST_INDICATORS:
            found[place] = len(column.categories)
        place += column.width
    return found
