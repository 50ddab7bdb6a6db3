"""Feature columns that may mean something else than they are read as: each gets a note."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from typing import Any

from gaussianmlr.data.readers.layout import fold
from gaussianmlr.data.readers.numerals import evidence_of

__all__ = ["code_doubts", "role_doubts"]

_CODE = re.compile(r"0\d+", re.ASCII)
_ID = re.compile(r"(.*[_\s.-])?id|.*[a-z0-9]I[dD]|[A-Z]+ID|(.*[_\s.-])?(uuid|key)", re.ASCII)
_FEWEST = 10  # rows; with fewer, different numbers in every row mean nothing


def code_doubts(written: Any, names: Collection[str]) -> Iterator[str]:
    """Notes on numbers that may be codes, or have a point between thousands, from cells as texts.

    Examples
    --------
    >>> import pandas as pd
    >>> next(code_doubts(pd.DataFrame({"zip": ["02139", "90210"]}), ["zip"]))[:49]
    "column 'zip': numbers with leading zeros, such as"
    """
    for name in names:
        if name not in written.columns or written[name].dtype.kind not in "OUT":
            continue
        cells = [cell.strip() for cell in written[name].dropna().tolist() if isinstance(cell, str)]
        found = evidence_of(cells)
        if not cells or found.has("text", "thousands"):
            continue
        code = next((cell for cell in cells if _CODE.fullmatch(cell)), None)
        if code is not None:
            yield (
                f"column {name!r}: numbers with leading zeros, such as {code!r}, are read as numbers; if "
                f"they are codes, say --categories {name!r} (in Python, kinds={{{name!r}: 'category'}})"
            )
        elif found.has("dot or thousands") and found.has("whole") and not found.has("dot"):
            dot, whole = found.examples["dot or thousands"], found.examples["whole"]
            yield (
                f"column {name!r}: {dot!r} is read as {float(dot):g}, though numbers such as {whole!r} stand "
                f"beside it; if the point separates thousands, write {dot.replace('.', '')}"
            )


def role_doubts(frame: Any, names: Sequence[str], labels: Collection[str]) -> Iterator[str]:
    """Notes on features that are called like a label, or name the rows.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"user_id": range(500, 520), "sky": 0.5})
    >>> [note[:40] for note in role_doubts(frame, ["user_id", "sky"], ["sky", "sea"])]
    ["column 'user_id' has another number in e", "column 'sky' is used as a feature, thoug"]
    """
    called = {fold(label) for label in labels}
    for name in names:
        if fold(name) in called:
            yield (
                f"column {name!r} is used as a feature, though a label is called so; if it tells the answer, "
                f"say --drop {name!r}"
            )
        elif _ID.fullmatch(name) and len(frame) >= _FEWEST and _is_key(frame[name]):
            yield (
                f"column {name!r} has another number in every row and is used as a feature; if it names the "
                f"rows, say --id {name!r} or --drop {name!r}"
            )


def _is_key(column: Any) -> bool:
    return column.dtype.kind in "iu" and bool(column.is_unique)
