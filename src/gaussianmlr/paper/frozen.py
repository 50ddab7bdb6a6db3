"""Recipes frozen before test images are looked at: what is measured on them was chosen without them.

`freeze` writes the recipes of all cells of ``nsid-test`` to ``frozen.json``, which is committed; a cell of
``nsid-test`` runs only with the recipe that stands there.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from gaussianmlr._utils.files import write_text
from gaussianmlr._utils.provenance import commit, committed, versions
from gaussianmlr._utils.seals import seal, unseal
from gaussianmlr._utils.strict_json import read_json
from gaussianmlr.errors import DataError
from gaussianmlr.paper.cells import TESTED, Cell, read_cells, recipe_of

__all__ = ["check_frozen", "freeze"]


def freeze(cells: Iterable[Cell], file: Path, landed: Path) -> Path:
    """Write the recipes of the cells that are measured on the test images of the natural scenes.

    Parameters
    ----------
    cells : iterable of Cell
        Those of ``nsid-test`` are frozen, others are passed over.
    file : Path
        The file to write.
    landed : Path
        Folder of the cells: once one of ``nsid-test`` is there, nothing can be frozen any more.

    Raises
    ------
    DataError
        If a cell was measured already.
    """
    if done := [cell.name for cell in read_cells(landed) if cell.dataset == TESTED]:
        raise DataError(f"the test images were looked at by {done[0]}; recipes cannot be frozen after that")
    recipes = {
        cell.training.name: recipe_of(cell.training).to_dict() for cell in cells if cell.dataset == TESTED
    }
    sealed = seal({"recipes": recipes, "versions": versions(), "commit": commit()})
    write_text(file, json.dumps(sealed, indent=1, sort_keys=True) + "\n")
    return file


def check_frozen(cell: Cell, file: Path) -> dict[str, Any]:
    """What a cell of ``nsid-test`` keeps about the freeze: checksum and commit of the file.

    Raises
    ------
    DataError
        If nothing was frozen, the recipe is another one, or the file is not committed.
    """
    how = "gmlr reproduce freeze writes it; commit it before anything is measured"
    try:
        data = file.read_bytes()
        recipes = unseal(read_json(file))["recipes"]
    except FileNotFoundError:
        raise DataError(f"no {file}: test images are for frozen recipes only; {how}") from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DataError(f"{file} cannot be read ({error}); {how}") from None
    if recipes.get(cell.training.name) != recipe_of(cell.training).to_dict():
        raise DataError(f"{cell.training.name} is not frozen in {file}, or with another recipe; {how}")
    found = committed(file)
    if found == "":
        raise DataError(f"{file} is not committed as it is; {how}")
    return {"sha256": hashlib.sha256(data).hexdigest(), "commit": found}
