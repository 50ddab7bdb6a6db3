"""Rankings made elsewhere: exports of Label Studio and Argilla."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from gaussianmlr.errors import DataError, shorten

__all__ = ["Given", "read_argilla", "read_label_studio"]

_NOT_MOVED = "_"  # Label Studio's name for the list that items start in


class Given(NamedTuple):
    """An order somebody gave elsewhere; `order` is None where they skipped the item."""

    where: str
    names: tuple[str, ...]  # what the item may be called, best first
    person: str
    order: list[list[str]] | None
    note: str = ""
    seconds: float = 0.0


def read_label_studio(path: Path, buckets: Sequence[str] = ()) -> list[Given]:
    """Rankings of Label Studio's Ranker tag, from its JSON export.

    Parameters
    ----------
    path : pathlib.Path
        The file that its export as JSON wrote.
    buckets : sequence of str
        The names of buckets whose labels apply, most significant first; labels in one bucket tie. Labels in
        other buckets do not apply. A single bucket is an order by itself. Without buckets, the ranked list is
        the order, and all of it applies.

    Examples
    --------
    >>> import tempfile
    >>> result = {"type": "ranker", "value": {"ranker": {"main": ["sky", "sea"], "minor": ["sun"]}}}
    >>> task = {"data": {"image": "a.jpg"}, "annotations": [{"completed_by": 7, "result": [result]}]}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "export.json").write_text(json.dumps([task]))
    ...     found = read_label_studio(Path(folder, "export.json"), ["main", "minor"])
    >>> found[0].person, found[0].order
    ('7', [['sky', 'sea'], ['sun']])
    """
    found: list[Given] = []
    problems: list[tuple[object, str]] = []
    for number, task in enumerate(_records(path, "tasks")):
        data = task.get("data")
        given = task.get("annotations", task.get("completions"))
        if not isinstance(data, Mapping) or not isinstance(given, list):
            problems.append((number, f"{shorten(task)}; expected a task with 'data' and 'annotations'"))
            continue
        names = _names(data, task.get("file_upload"), task.get("id"))
        for annotation in given:
            person = _person(annotation.get("completed_by"))
            seconds = float(annotation.get("lead_time") or 0.0)
            if annotation.get("was_cancelled"):
                found.append(Given(str(number), names, person, None, "", seconds))
                continue
            results = [one for one in annotation.get("result", []) if one.get("type") == "ranker"]
            note = " ".join(_notes(annotation.get("result", [])))
            for result in results[:1]:
                try:
                    order = _bucketed(result, buckets)
                except DataError as error:
                    problems.append((number, str(error)))
                else:
                    found.append(Given(str(number), names, person, order, note, seconds))
            if len(results) > 1:
                problems.append((number, f"{len(results)} rankings in one annotation; expected one"))
    return _checked(found, problems, path, "a Ranker")


def _bucketed(result: Mapping[str, Any], buckets: Sequence[str]) -> list[list[str]]:
    value = result.get("value", {}).get("ranker")
    if isinstance(value, list):  # as the first versions wrote it
        return [[str(label)] for label in value]
    if not isinstance(value, Mapping):
        raise DataError(f"{shorten(result)}; expected a value with 'ranker'")
    named = [name for name in value if name != _NOT_MOVED]
    if not buckets:
        if named == [result.get("from_name")]:  # no buckets: the one key is the name of the tag
            return [[str(label)] for label in value[named[0]]]
        if len(named) != 1:
            # A database need not keep the order of keys, so the file cannot say which bucket is first.
            raise DataError(
                f"holds the buckets {', '.join(sorted(named))}; say with --buckets "
                "which of them apply, most significant first"
            )
        return [[str(label)] for label in value[named[0]]]
    unknown = [name for name in buckets if name not in value]
    if unknown and not set(buckets) & set(value):
        raise DataError(f"has no bucket {shorten(unknown[0])}; it has {', '.join(sorted(named))}")
    chosen = [[str(label) for label in value.get(name, [])] for name in buckets]
    if len(buckets) == 1:
        return [[label] for label in chosen[0]]
    return [bucket for bucket in chosen if bucket]


def _notes(results: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """What was written into text areas."""
    for result in results:
        if result.get("type") == "textarea":
            text = result.get("value", {}).get("text", "")
            yield from text if isinstance(text, list) else [str(text)]


def read_argilla(path: Path, question: str | None = None) -> list[Given]:
    """Answers to a ranking question of Argilla, from its records as JSON.

    Records of the Python client (``dataset.records.to_json``) and of the HTTP interface are read.
    Labels with the same rank tie. The client of version 2 writes the order alone and so loses ties; what the
    HTTP interface gives has them.

    Parameters
    ----------
    path : pathlib.Path
        JSON: a list of records, or an object with ``items``.
    question : str, optional
        The name of the question, where there are several.

    Examples
    --------
    >>> import tempfile
    >>> value = [{"value": "sky", "rank": 1}, {"value": "sun", "rank": 2}, {"value": "sea", "rank": 1}]
    >>> response = {"user_id": "ann", "status": "submitted", "values": {"order": {"value": value}}}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     records = [{"fields": {"image": "a.jpg"}, "responses": [response]}]
    ...     _ = Path(folder, "records.json").write_text(json.dumps(records))
    ...     found = read_argilla(Path(folder, "records.json"))
    >>> found[0].order
    [['sky', 'sea'], ['sun']]
    """
    found: list[Given] = []
    problems: list[tuple[object, str]] = []
    for number, record in enumerate(_records(path, "records", "items")):
        fields = record.get("fields")
        if not isinstance(fields, Mapping):
            problems.append((number, f"{shorten(record)}; expected a record with 'fields' and 'responses'"))
            continue
        names = _names(fields, record.get("id"), record.get("external_id"), record.get("metadata"))
        try:
            for person, value, status in _responses(record.get("responses"), question):
                if status == "discarded":
                    found.append(Given(str(number), names, person, None))
                elif status == "submitted":
                    found.append(Given(str(number), names, person, _tied(value)))
        except DataError as error:
            problems.append((number, str(error)))
    return _checked(found, problems, path, "a ranking question")


def _responses(responses: Any, question: str | None) -> Iterator[tuple[str, Any, str]]:
    """Who answered what, and whether they handed it in; of both forms that there are."""
    if isinstance(responses, Mapping):  # by question, as version 2 writes them
        ranked = {
            name: given
            for name, given in responses.items()
            if any(_is_ranking(one.get("value")) for one in given)
        }
        chosen = _question(list(ranked), question)
        for one in ranked.get(chosen, []):
            yield _person(one.get("user_id")), one.get("value"), str(one.get("status") or "submitted")
        return
    for one in responses or []:  # by person
        status = str(one.get("status") or "submitted")
        values = one.get("values") or {}
        ranked = {
            name: value.get("value") for name, value in values.items() if _is_ranking(value.get("value"))
        }
        if status == "discarded":
            yield _person(one.get("user_id")), None, status
        elif ranked:
            yield _person(one.get("user_id")), ranked[_question(list(ranked), question)], status


def _question(there: list[str], wanted: str | None) -> str:
    if wanted is not None:
        return wanted
    if len(there) > 1:
        raise DataError(f"has the questions {', '.join(sorted(there))}; say which with --question")
    return there[0] if there else ""


def _is_ranking(value: Any) -> bool:
    if isinstance(value, Mapping):  # columns, as data sets keep it
        return set(value) == {"value", "rank"}
    if not isinstance(value, list) or not value:
        return False
    return all(isinstance(one, str) or (isinstance(one, Mapping) and "value" in one) for one in value)


def _tied(value: Any) -> list[list[str]]:
    if isinstance(value, Mapping):
        value = [{"value": name, "rank": rank} for name, rank in zip(value["value"], value["rank"])]
    if not _is_ranking(value):
        raise DataError(f"{shorten(value)}; expected a list of labels, or of values with ranks")
    if any(isinstance(one, str) or one.get("rank") is None for one in value):
        return [[one if isinstance(one, str) else str(one["value"])] for one in value]
    by_rank: dict[float, list[str]] = {}
    for one in value:
        by_rank.setdefault(float(one["rank"]), []).append(str(one["value"]))
    return [by_rank[rank] for rank in sorted(by_rank)]


def _records(path: Path, what: str, key: str = "") -> list[Mapping[str, Any]]:
    try:
        whole = json.loads(path.read_text("utf-8-sig"))
    except FileNotFoundError:
        raise DataError(f"{path}: does not exist; expected a JSON export") from None
    except (OSError, ValueError) as error:
        raise DataError(f"{path}: is no JSON: {error}") from None
    if isinstance(whole, Mapping) and isinstance(whole.get(key), list):
        whole = whole[key]
    if not isinstance(whole, list) or not all(isinstance(one, Mapping) for one in whole):
        raise DataError(f"{path}: {shorten(whole)}; expected a list of {what}")
    return whole


def _names(fields: Mapping[str, Any], *more: Any) -> tuple[str, ...]:
    """All an item may be called by: short texts of its fields, and its ids."""
    texts = [value for value in fields.values() if isinstance(value, str)]
    texts += [value["url"] for value in fields.values() if isinstance(value, Mapping) and "url" in value]
    for one in more:
        if isinstance(one, Mapping):
            texts += [value for value in one.values() if isinstance(value, str)]
        elif one is not None:
            texts.append(str(one))
    return tuple(texts)


def _person(who: Any) -> str:
    if isinstance(who, Mapping):
        who = who.get("email") or who.get("username") or who.get("id")
    return "" if who is None else str(who)


def _checked(found: list[Given], problems: list[tuple[object, str]], path: Path, what: str) -> list[Given]:
    if problems:
        total = max(len(found), len(problems))
        raise DataError.of_rows(f"entries of {path} cannot be read", problems, total)
    if not found:
        raise DataError(f"{path}: holds no answer to {what}")
    return found
