"""Where the sets lie that may be tried but not shipped."""

import os
from pathlib import Path

import pytest

FOLDER = Path(
    os.environ.get("GAUSSIANMLR_SHARED_DATA") or Path(__file__).parents[2].parent / "shared" / "data"
)


def needs(*parts):
    """The path of a shared file, or skip."""
    path = FOLDER.joinpath(*parts)
    if not path.exists():
        pytest.skip(
            f"{'/'.join(parts)} is not at hand; GAUSSIANMLR_SHARED_DATA names the folder that holds it"
        )
    return path
