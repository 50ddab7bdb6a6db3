"""Import of answers into a store: from our own manifests, Label Studio and Argilla."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple
from urllib.parse import parse_qs, unquote, urlsplit

from gaussianmlr.apps.annotate.orders import write_order
from gaussianmlr.apps.annotate.other_tools import Given, read_argilla, read_label_studio
from gaussianmlr.apps.annotate.store import Item, Store
from gaussianmlr.data.readers.frames import read_frame
from gaussianmlr.errors import DataError, shorten
from gaussianmlr.orders.grammar import OrderSyntaxError, parse

__all__ = ["Form", "Imported", "import_answers"]

Form = Literal["manifest", "label-studio", "argilla"]
_DEEPEST = 64  # folders of a path that are compared
_UPLOADED = re.compile(r"^[0-9a-f]{8}-")  # Label Studio puts it before the names of uploaded files


class Imported(NamedTuple):
    """The result of an import."""

    added: int
    kept: int  # existing answers that were kept


def import_answers(
    store: Store,
    path: str | os.PathLike[str],
    form: Form = "manifest",
    *,
    person: str | None = None,
    buckets: Sequence[str] = (),
    question: str | None = None,
    replace: bool = False,
) -> Imported:
    r"""Import the answers of a file into a store, all or none.

    Parameters
    ----------
    store : Store
        The store. Its items are matched by name, or by the end of a path or URL.
    path : path-like
        The file.
    form : {"manifest", "label-studio", "argilla"}
        The format: a manifest or table as `export_answers` writes it, the JSON export of Label Studio with
        its Ranker tag, or records of Argilla with a ranking question.
    person : str, optional
        The person, if the file names none.
    buckets : sequence of str
        Of Label Studio; see `other_tools.read_label_studio`.
    question : str, optional
        Of Argilla; see `other_tools.read_argilla`.
    replace : bool
        Replace earlier answers of the same person. Both stay in the history.

    Raises
    ------
    DataError
        Names every entry whose item, label or order is invalid, and different answers of one person to one
        item.

    Examples
    --------
    >>> import tempfile
    >>> from gaussianmlr.apps.annotate import Found, Store
    >>> with tempfile.TemporaryDirectory() as folder, Store(folder, create=True) as store:
    ...     store.bring(Found("text", "poems", {"pond": "an old silent pond"}), ["calm", "sad"])
    ...     _ = Path(folder, "given.csv").write_text("id,ranker,ranking\npond,Ann,sad = calm\n")
    ...     print(import_answers(store, Path(folder, "given.csv")), store.answers()[0].ranking)
    Imported(added=1, kept=0) calm = sad
    """
    file = Path(path)
    try:
        if form == "label-studio":
            given = read_label_studio(file, buckets)
        elif form == "argilla":
            given = read_argilla(file, question)
        elif form == "manifest":
            given = _read_manifest(file)
        else:
            raise DataError(f"form is 'manifest', 'label-studio' or 'argilla', not {form!r}")
        rows = _matched(given, store, person, file)
    except RecursionError:  # deeply nested JSON
        raise DataError(f"{file}: is nested too deeply; expected lists and objects of answers") from None
    except OSError as error:
        raise DataError(f"{file}: cannot be read: {error.strerror or error}") from None
    with store.together():
        return _add(store, _agreed(rows, store, file), replace)


def _read_manifest(file: Path) -> list[Given]:
    frame = read_frame(file, ("id", "image", "ranking", "ranker", "note")).frame
    if "ranking" not in frame.columns:
        raise DataError(f"{file}: no column 'ranking'; it has {shorten(list(frame.columns))}")
    named = next((name for name in ("image", "id") if name in frame.columns), None)
    problems: list[tuple[object, str]] = []
    found = []
    for number, row in enumerate(frame.to_dict("records")):
        name = str(row[named]) if named else str(number)
        text = row["ranking"] if isinstance(row["ranking"], str) else ""
        try:
            ranked, unknown, _ = parse(text)
        except OrderSyntaxError as error:
            problems.append((number, f"{text!r}: {error}"))
            continue
        if unknown:
            problems.append((number, f"{text!r}: labels behind '?' are unknown; expected an order"))
            continue
        note, seconds, who = (_present(row.get(column)) for column in ("note", "seconds", "ranker"))
        who, note = ("" if one is None else str(one) for one in (who, note))
        found.append(Given(str(number), (name,), who, ranked, note, _seconds(seconds, number)))
    if problems:
        raise DataError.of_rows(f"orders of {file} cannot be read", problems, len(frame))
    return found


def _present(cell: Any) -> Any:
    """A cell, or None where it is empty: None, NaN."""
    return None if isinstance(cell, float) and cell != cell else cell


def _seconds(cell: Any, row: int) -> float:
    try:
        return float(0.0 if cell is None or cell == "" else cell)
    except (TypeError, ValueError, OverflowError):
        raise DataError(f"row {row}: {shorten(cell)} in column 'seconds'; expected a number") from None


class _Row(NamedTuple):
    item: int
    person: str
    ranking: str | None  # None where they skipped it
    given: Given


def _matched(given: list[Given], store: Store, person: str | None, file: Path) -> list[_Row]:
    finder = _Finder(store.items(everything=True))
    labels = store.labels
    rows: list[_Row] = []
    problems: list[tuple[object, str]] = []
    for one in given:
        item = finder.find(one.names)
        who = one.person or person
        if item is None:
            problems.append((one.where, f"no item is called {shorten(one.names[0] if one.names else '')}"))
        elif not who:
            problems.append((one.where, "names no person; give one with --person"))
        else:
            try:
                ranking = None if one.order is None else write_order(one.order, labels)
            except DataError as error:
                problems.append((one.where, str(error).splitlines()[-1].strip().removeprefix("row 0: ")))
                continue
            rows.append(_Row(item, who, ranking, one))
    if problems:
        raise DataError.of_rows(f"answers of {file} cannot be taken", problems, len(given))
    return rows


def _agreed(rows: list[_Row], store: Store, file: Path) -> dict[tuple[int, int], Given]:
    """The answers by item and person; repeated answers count once."""
    first: dict[tuple[int, int], _Row] = {}
    problems: list[tuple[object, str]] = []
    people = {name: store.person(name).id for name in dict.fromkeys(row.person for row in rows)}
    for row in rows:
        before = first.setdefault((row.item, people[row.person]), row)
        if row.ranking != before.ranking:
            now, then = ("a skip" if one.ranking is None else shorten(one.ranking) for one in (row, before))
            what = f"{row.person!r} says {now} of {shorten(store.item(row.item).name)}"
            problems.append((row.given.where, f"{what}, and {then} in row {before.given.where}"))
    if problems:
        raise DataError.of_rows(f"answers of {file} contradict others in it", problems, len(rows))
    return {key: row.given for key, row in first.items()}


class _Finder:
    """Finds items by their names in other programs: a path, a URL, an upload."""

    def __init__(self, items: Iterable[Item]) -> None:
        self._by_end: dict[str, set[int]] = {}
        self._by_name: dict[str, int] = {}
        for item in items:
            self._by_name[item.name] = item.id
            if isinstance(item.content, str):
                self._by_name.setdefault(item.content, item.id)
            for end in _ends(item.name):
                self._by_end.setdefault(end, set()).add(item.id)

    def find(self, names: Iterable[str]) -> int | None:
        for name in names:
            if name in self._by_name:
                return self._by_name[name]
        for name in names:
            try:
                parts = urlsplit(name)
            except ValueError:  # a text such as "//[x" is not a URL
                continue
            # Label Studio serves local files as /data/local-files/?d=PATH
            local = parse_qs(parts.query).get("d", [unquote(parts.path)])[0]
            for end in (*_ends(local), _UPLOADED.sub("", Path(local).name)):
                found = self._by_end.get(end, set())
                if len(found) == 1:
                    return next(iter(found))
        return None


def _ends(path: str) -> list[str]:
    """All ends of a path, longest first."""
    # Bounds time and memory for absurdly deep paths.
    parts = [part for part in path.replace("\\", "/").split("/") if part][-_DEEPEST:]
    return ["/".join(parts[start:]) for start in range(len(parts))]


def _add(store: Store, given: dict[tuple[int, int], Given], replace: bool) -> Imported:
    added = kept = 0
    last = store.revision()[0]
    there = {(answer.item, answer.person) for answer in store.answers()}
    for (item, person), one in given.items():
        if (item, person) in there and not replace:
            kept += 1
            continue
        # The same answer of the same file counts once.
        facts = json.dumps([item, person, one.order, one.note, one.seconds])
        token = f"import {hashlib.sha256(facts.encode()).hexdigest()}"
        saved = store.answer(item, person, one.order, token=token, note=one.note, seconds=one.seconds)
        if saved.id <= last:
            kept += 1
        else:
            added += 1
    return Imported(added, kept)
