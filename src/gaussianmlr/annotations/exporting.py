"""Answers as the manifest or table that `gmlr train` reads."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gaussianmlr.annotations.agreeing import table
from gaussianmlr.annotations.store import Item, Store
from gaussianmlr.data._frames import FRAME_SUFFIXES, SEPARATORS, suffix_of
from gaussianmlr.errors import DataError, shorten
from gaussianmlr.files import aside
from gaussianmlr.orders import to_text

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["export_answers", "manifest_of"]

_FORMS = (".csv", ".tsv", ".jsonl", ".parquet")


def manifest_of(
    store: Store, aggregate: str | None = None, folder: str | os.PathLike[str] | None = None
) -> pd.DataFrame:
    """A frame with one row an order: every ranker's, or one an item.

    Parameters
    ----------
    store : Store
        Where the answers are.
    aggregate : {"mean_rank", "borda", "kemeny"}, optional
        Make one order of all people's, see `gaussianmlr.rankers.aggregate`; without it every person has a
        row of their own in the column ``ranker``.
    folder : path-like, optional
        What paths of pictures are relative to; the folder they were found in if left out.

    Returns
    -------
    pandas.DataFrame
        ``image``, or ``id`` and the columns shown; ``ranker``; ``ranking``. Manifests of pictures carry
        ``seconds`` and ``note`` too, which readers leave alone. Skipped items have no row.

    Examples
    --------
    >>> import tempfile
    >>> from gaussianmlr.annotations import Found, Store
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
    # Not the text of the answer: it says nothing of labels that were added later.
    labels, items = store.labels, {item.id: item for item in store.items(everything=True)}
    shown = {number: _shown(items[number], store, folder) for number in found.items}
    rows: list[dict[str, Any]] = []
    if aggregate is not None:
        from gaussianmlr.rankers import aggregate as join

        orders = to_text(join(found.ranks, aggregate), labels)  # type: ignore[arg-type]  # checked there
        rows = [{**shown[item], "ranking": order} for item, order in zip(found.items, orders)]
        return pd.DataFrame(rows)
    row_of = {item: row for row, item in enumerate(found.items)}
    column_of = {person.id: column for column, person in enumerate(found.people)}
    names = {person.id: person.name for person in found.people}
    places = [(row_of[answer.item], column_of[answer.person]) for answer in found.answers]
    orders = to_text([found.ranks[place] for place in places], labels)
    for answer, order in zip(found.answers, orders):
        more = {"seconds": round(answer.seconds, 1), "note": answer.note} if store.kind == "image" else {}
        rows.append({**shown[answer.item], "ranker": names[answer.person], "ranking": order, **more})
    return pd.DataFrame(rows)


def _shown(item: Item, store: Store, folder: str | os.PathLike[str] | None) -> dict[str, Any]:
    if store.kind == "text":
        return {"id": item.name, "text": item.content}
    if store.kind == "row":
        return {"id": item.name, **item.content}
    if folder is None:
        return {"image": item.name}
    return {"image": Path(os.path.relpath(item.content, Path(folder).resolve())).as_posix()}


def export_answers(
    store: Store, path: str | os.PathLike[str], aggregate: str | None = None, *, overwrite: bool = False
) -> int:
    """Write `manifest_of` to a file, whole or not at all; the number of rows is returned.

    Parameters
    ----------
    store : Store
        Where the answers are.
    path : path-like
        A CSV, TSV, JSON-lines or Parquet file. A manifest of pictures must stand in a folder above them,
        because readers refuse paths that lead out of it.
    aggregate : str, optional
        As in `manifest_of`.
    overwrite : bool
        Replace a file that is there, which is refused otherwise.

    Examples
    --------
    >>> import tempfile
    >>> from gaussianmlr.annotations import Found, Store
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
            frame.to_csv(part, sep=SEPARATORS[suffix], index=False, lineterminator="\n")
        elif suffix == ".parquet":
            frame.to_parquet(part, index=False)
        else:
            frame.to_json(part, orient="records", lines=True, force_ascii=False)
    return len(frame)


assert set(_FORMS) <= set(FRAME_SUFFIXES)  # what is written can be read
