"""Answers from elsewhere into a store: manifests of our own, Label Studio, Argilla."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple
from urllib.parse import parse_qs, unquote, urlsplit

from gaussianmlr._grammar import OrderSyntaxError, parse
from gaussianmlr.annotations.foreign import Given, read_argilla, read_label_studio
from gaussianmlr.annotations.store import Item, Store, write_order
from gaussianmlr.errors import DataError, shorten

__all__ = ["Form", "Imported", "import_answers"]

Form = Literal["manifest", "label-studio", "argilla"]
_UPLOADED = re.compile(r"^[0-9a-f]{8}-")  # Label Studio puts it before the names of uploaded files


class Imported(NamedTuple):
    """What became of the answers of a file."""

    added: int
    kept: int  # the person had an answer already, and it stays


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
    r"""Bring answers of a file into a store, all of them or none.

    Parameters
    ----------
    store : Store
        Where they go. Its items are found by name, or by the end of a path or address.
    path : path-like
        The file.
    form : {"manifest", "label-studio", "argilla"}
        What wrote it: a manifest or table as `export_answers` writes it, the JSON export of Label Studio with
        its Ranker tag, or records of Argilla with a ranking question.
    person : str, optional
        Whose answers they are, where the file does not say.
    buckets : sequence of str
        Of Label Studio; see `foreign.read_label_studio`.
    question : str, optional
        Of Argilla; see `foreign.read_argilla`.
    replace : bool
        Put them above answers that the same person has given already. Both stay in the history.

    Raises
    ------
    DataError
        Naming every entry whose item, label or order the store cannot take, and those of a person who says
        two things of one item.

    Examples
    --------
    >>> import tempfile
    >>> from gaussianmlr.annotations import Found, Store
    >>> with tempfile.TemporaryDirectory() as folder, Store(folder, create=True) as store:
    ...     store.bring(Found("text", "poems", {"pond": "an old silent pond"}), ["calm", "sad"])
    ...     _ = Path(folder, "given.csv").write_text("id,ranker,ranking\npond,Ann,sad = calm\n")
    ...     print(import_answers(store, Path(folder, "given.csv")), store.answers()[0].ranking)
    Imported(added=1, kept=0) calm = sad
    """
    file = Path(path)
    if form == "label-studio":
        given = read_label_studio(file, buckets)
    elif form == "argilla":
        given = read_argilla(file, question)
    elif form == "manifest":
        given = _read_manifest(file)
    else:
        raise DataError(f"form is 'manifest', 'label-studio' or 'argilla', not {form!r}")
    rows = _matched(given, store, person, file)
    with store.together():
        return _add(store, _agreed(rows, store, file), replace)


def _read_manifest(file: Path) -> list[Given]:
    from gaussianmlr.data._frames import read_frame

    frame, _ = read_frame(file, ("id", "image", "ranking", "ranker", "note"))
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
            problems.append((number, f"{text!r}: labels behind '?' are unknown; people say which apply"))
            continue
        note, seconds, who = (_present(row.get(column)) for column in ("note", "seconds", "ranker"))
        found.append(
            Given(str(number), (name,), str(who or ""), ranked, str(note or ""), _seconds(seconds, number))
        )
    if problems:
        raise DataError.of_rows(f"orders of {file} cannot be read", problems, len(frame))
    return found


def _present(cell: Any) -> Any:
    """A cell, or None where it is empty: None, NaN."""
    return None if cell is None or cell != cell else cell


def _seconds(cell: Any, row: int) -> float:
    try:
        return float(cell or 0.0)
    except (TypeError, ValueError):
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
            problems.append((one.where, "does not say who ranked it; name them with --person"))
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
    """What each person says of each item, by their numbers; the same said twice counts once."""
    first: dict[tuple[int, int], _Row] = {}
    problems: list[tuple[object, str]] = []
    for row in rows:
        before = first.setdefault((row.item, store.person(row.person).id), row)
        if row.ranking != before.ranking:
            now, then = ("a skip" if one.ranking is None else shorten(one.ranking) for one in (row, before))
            what = f"{row.person!r} says {now} of {shorten(store.item(row.item).name)}"
            problems.append((row.given.where, f"{what}, and {then} in row {before.given.where}"))
    if problems:
        raise DataError.of_rows(f"answers of {file} contradict others in it", problems, len(rows))
    return {key: row.given for key, row in first.items()}


class _Finder:
    """Finds items by what other programs call them: a path, an address, an upload."""

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
            except ValueError:  # a text such as "//[x" is no address
                continue
            # Label Studio serves local files as /data/local-files/?d=PATH
            local = parse_qs(parts.query).get("d", [unquote(parts.path)])[0]
            for end in (*_ends(local), _UPLOADED.sub("", Path(local).name)):
                found = self._by_end.get(end, set())
                if len(found) == 1:
                    return next(iter(found))
        return None


def _ends(path: str) -> list[str]:
    """A path and all that is left of it when folders are cut off, longest first."""
    parts = [part for part in path.replace("\\", "/").split("/") if part]
    return ["/".join(parts[start:]) for start in range(len(parts))]


def _add(store: Store, given: dict[tuple[int, int], Given], replace: bool) -> Imported:
    added = kept = 0
    there = {(answer.item, answer.person) for answer in store.answers()}
    for (item, person), one in given.items():
        if (item, person) in there and not replace:
            kept += 1
            continue
        # The same answer of the same file again is no news.
        facts = json.dumps([item, person, one.order, one.note, one.seconds])
        token = f"import {hashlib.sha256(facts.encode()).hexdigest()}"
        before = store.revision()
        store.answer(item, person, one.order, token=token, note=one.note, seconds=one.seconds)
        if store.revision() == before:
            kept += 1
        else:
            added += 1
    return Imported(added, kept)
