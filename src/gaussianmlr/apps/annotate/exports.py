"""Answers as the manifest or table that `gmlr train` reads."""

from __future__ import annotations

import csv
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gaussianmlr import rankers
from gaussianmlr._utils.files import aside
from gaussianmlr._utils.tables import inert_frame
from gaussianmlr.apps.annotate.agreement import table
from gaussianmlr.apps.annotate.store import Item, Store
from gaussianmlr.data.readers.frames import FRAME_SUFFIXES, suffix_of
from gaussianmlr.data.readers.separated import SEPARATORS
from gaussianmlr.errors import DataError, shorten
from gaussianmlr.orders import to_text

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["export_answers", "manifest_of"]

_FORMS = (".csv", ".tsv", ".jsonl", ".parquet")


def manifest_of(
    store: Store, aggregate: str | None = None, folder: str | os.PathLike[str] | None = None
) -> pd.DataFrame:
    """A frame with one row per order: those of all rankers, or one per item.

    Parameters
    ----------
    store : Store
        The answers.
    aggregate : {"mean_rank", "borda", "kemeny", "thurstone"}, optional
        Aggregate the orders of all people, see `gaussianmlr.rankers.aggregate`; by default every person
        has a row, with their name in the column ``ranker``.
    folder : path-like, optional
        The folder that paths of pictures are relative to; by default the one they were found in.

    Returns
    -------
    pandas.DataFrame
        ``image``, or ``id`` and the columns shown; ``ranker``; ``ranking``. Manifests of pictures carry
        ``seconds`` and ``note`` too, which readers ignore. Skipped items have no row.

    Examples
    --------
    >>> import tempfile
    >>> from gaussianmlr.apps.annotate import Found, Store
    >>> with tempfile.TemporaryDirectory() as folder, Store(folder, create=True) as store:
    ...     store.bring(Found("text", "poems", {"pond": "an old silent pond"}), ["calm", "sad"])
    ...     _ = store.answer(1, store.person("Ann").id, [["calm"], ["sad"]], token="1")
    ...     manifest_of(store).iloc[0].tolist()
    ['pond', 'an old silent pond', 'Ann', 'calm > sad']
    """
    import pandas as pd

    found = table(store)
    if not found.answers:
        raise DataError(f"{store.folder}: holds no order yet; rank something first")
    # From ranks, not from the text of the answer, which does not mention labels that were added later.
    labels, items = store.labels, {item.id: item for item in store.items(everything=True)}
    shown = {number: _shown(items[number], store, folder) for number in found.items}
    rows: list[dict[str, Any]] = []
    if aggregate is not None:
        orders = to_text(rankers.aggregate(found.ranks, aggregate), labels)  # type: ignore[arg-type]  # checked there
        rows = [{**shown[item], "ranking": order} for item, order in zip(found.items, orders)]
        return pd.DataFrame(rows)
    names = {person.id: person.name for person in found.people}
    orders = to_text(found.ranks[found.places()], labels)
    for answer, order in zip(found.answers, orders):
        more = {"seconds": round(answer.seconds, 1), "note": answer.note} if store.kind == "image" else {}
        rows.append({**shown[answer.item], "ranker": names[answer.person], "ranking": order, **more})
    return pd.DataFrame(rows)


def csv_of(frame: pd.DataFrame, separator: str = ",", *, escape_formulas: bool = False) -> str:
    """A frame as the text of a CSV file, on request without formulas.

    Examples
    --------
    >>> import pandas as pd
    >>> print(csv_of(pd.DataFrame({"note": ["=1+1", "fine"]}), escape_formulas=True))
    note
    '=1+1
    fine
    """
    if escape_formulas:
        frame = inert_frame(frame)
    # Python's writer leaves a lone carriage return without quotes, and readers start a new row there.
    returns = frame.astype(str).apply(lambda column: column.str.contains("\r", regex=False)).any(axis=None)
    quoting = csv.QUOTE_NONNUMERIC if returns else csv.QUOTE_MINIMAL
    return str(frame.to_csv(sep=separator, index=False, lineterminator="\n", quoting=quoting))


def _shown(item: Item, store: Store, folder: str | os.PathLike[str] | None) -> dict[str, Any]:
    if store.kind == "text":
        return {"id": item.name, "text": item.content}
    if store.kind == "row":
        return {"id": item.name, **item.content}
    if folder is None:
        return {"image": item.name}
    return {"image": Path(os.path.relpath(item.content, Path(folder).resolve())).as_posix()}


def export_answers(
    store: Store,
    path: str | os.PathLike[str],
    aggregate: str | None = None,
    *,
    overwrite: bool = False,
    escape_formulas: bool = False,
) -> int:
    """Write `manifest_of` to a file, atomically; returns the number of rows.

    Parameters
    ----------
    store : Store
        The answers.
    path : path-like
        A CSV, TSV, JSON-lines or Parquet file. A manifest of pictures must be in a folder above them,
        because readers refuse paths that lead out of it.
    aggregate : str, optional
        As in `manifest_of`.
    overwrite : bool
        Replace an existing file, which is refused by default.
    escape_formulas : bool
        Of CSV and TSV: put an apostrophe before texts that a spreadsheet would run as formulas. Only for
        viewing: readers take the apostrophe as part of the text.

    Examples
    --------
    >>> import tempfile
    >>> from gaussianmlr.apps.annotate import Found, Store
    >>> with tempfile.TemporaryDirectory() as folder, Store(folder, create=True) as store:
    ...     store.bring(Found("row", "hikes", {"alps": {"height": 3.1}}), ["sky", "sea"])
    ...     _ = store.answer(1, store.person("Ann").id, [["sky"]], token="1")
    ...     _ = export_answers(store, Path(folder, "hikes.csv"), "mean_rank")
    ...     print(Path(folder, "hikes.csv").read_text())
    id,height,ranking
    alps,3.1,sky
    """
    file = Path(path)
    suffix = suffix_of(file)
    if suffix not in _FORMS or file.suffix.lower() == ".gz":
        raise DataError(f"{file}: unknown kind of table {file.suffix!r}; expected {', '.join(_FORMS)}")
    if escape_formulas and suffix not in SEPARATORS:
        raise DataError(f"{file}: formulas are escaped only in .csv and .tsv")
    if file.is_file() and not overwrite:
        raise DataError(f"{file} is there already; choose another name, or overwrite it with --overwrite")
    frame = manifest_of(store, aggregate, file.parent)
    if store.kind == "image":
        outside = [name for name in frame["image"] if name.startswith("../") or Path(name).is_absolute()]
        if outside:
            home = store.source if store.source.is_dir() else store.source.parent
            raise DataError(
                f"{file}: {len(outside)} of {len(frame)} pictures are not below its folder, such as "
                f"{shorten(outside[0])}; write it to {home}"
            )
    with aside(file) as part:
        if suffix in SEPARATORS:
            part.write_text(
                csv_of(frame, SEPARATORS[suffix], escape_formulas=escape_formulas), "utf-8", newline=""
            )
        elif suffix == ".parquet":
            frame.to_parquet(part, index=False)
        else:
            frame.to_json(part, orient="records", lines=True, force_ascii=False)
    return len(frame)


assert set(_FORMS) <= set(FRAME_SUFFIXES)  # what is written can be read
