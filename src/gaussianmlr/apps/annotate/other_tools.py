"""Readers of rankings from Label Studio and Argilla."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from gaussianmlr._utils.bounded import check_file
from gaussianmlr._utils.strict_json import loads
from gaussianmlr.errors import DataError, shorten

__all__ = ["Given", "read_argilla", "read_label_studio"]

_LARGEST = 1 << 28  # bytes of a file; in memory it takes about ten times as many
_NOT_MOVED = "_"  # Label Studio's name for the list that items start in


class Given(NamedTuple):
    """An order from another program; `order` is None if the person skipped the item."""

    where: str
    names: tuple[str, ...]  # possible names of the item, best first
    person: str
    order: list[list[str]] | None
    note: str = ""
    seconds: float = 0.0


def read_label_studio(path: Path, buckets: Sequence[str] = ()) -> list[Given]:
    """Rankings of Label Studio's Ranker tag, from its JSON export.

    Parameters
    ----------
    path : pathlib.Path
        The JSON export.
    buckets : sequence of str
        Buckets whose labels apply, most significant first; labels in one bucket tie. Labels in other buckets
        do not apply. A single bucket is an order by itself. Without buckets, the ranked list is the order,
        and all of it applies.

    Examples
    --------
    >>> import json, tempfile
    >>> result = {"type": "ranker", "value": {"ranker": {"main": ["sky", "sea"], "minor": ["sun"]}}}
    >>> task = {"data": {"image": "a.jpg"}, "annotations": [{"completed_by": 7, "result": [result]}]}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "export.json").write_text(json.dumps([task]))
    ...     found = read_label_studio(Path(folder, "export.json"), ["main", "minor"])
    >>> found[0].person, found[0].order
    ('7', [['sky', 'sea'], ['sun']])
    """
    there: set[str] = set()

    def read(where: str, task: Mapping[str, Any]) -> Iterator[Given]:
        for given, result in _annotated(where, task):
            if result is None:
                yield given
                continue
            value = _ranker(result)
            there.update(value if isinstance(value, Mapping) else ())
            yield given._replace(order=_bucketed(value, buckets))

    found, problems = _collected(_records(path, "tasks"), read)
    # A task may omit an empty bucket, but a bucket that no task has is a typo.
    missing = [name for name in buckets if name not in there]
    if missing and (there or any(one.order is not None for one in found)):
        known = ", ".join(sorted(there - {_NOT_MOVED})) or "none"
        raise DataError(f"{path}: no task has a bucket {shorten(missing[0])}; there are {known}")
    return _checked(found, problems, path, "a Ranker")


def _annotated(where: str, task: Mapping[str, Any]) -> Iterator[tuple[Given, Mapping[str, Any] | None]]:
    """The answers to a task, each with the result that holds the order; None for a skip."""
    data, annotations = task.get("data"), task.get("annotations", task.get("completions"))
    if not isinstance(data, Mapping) or annotations is None:
        raise DataError(f"{shorten(task)}; expected a task with 'data' and 'annotations'")
    names = _names(data, task.get("file_upload"), task.get("id"))
    for annotation in _entries(annotations, "annotations"):
        seconds = _seconds(annotation.get("lead_time"))
        given = Given(where, names, _person(annotation.get("completed_by")), None, "", seconds)
        if annotation.get("was_cancelled"):
            yield given, None
            continue
        results = _entries(annotation.get("result"), "result")
        rankings = [one for one in results if one.get("type") == "ranker"]
        if len(rankings) > 1:
            raise DataError(f"{len(rankings)} rankings in one annotation; expected one")
        for one in rankings:
            yield given._replace(note=" ".join(_notes(results))), one


def _seconds(value: Any) -> float:
    try:
        seconds = float(value or 0.0)
    except (TypeError, ValueError, OverflowError):
        seconds = math.nan
    if not 0 <= seconds < 1e9:
        raise DataError(f"lead_time {shorten(value)}; expected seconds, 0 or more")
    return seconds


def _ranker(result: Mapping[str, Any]) -> list[Any] | Mapping[str, Any]:
    """The ranking of a result: labels by bucket, or a list as the first versions wrote it."""
    value = result.get("value")
    ranking = value.get("ranker") if isinstance(value, Mapping) else None
    if not isinstance(ranking, list | Mapping):
        raise DataError(f"{shorten(result)}; expected a value with 'ranker'")
    return ranking


def _bucketed(value: list[Any] | Mapping[str, Any], buckets: Sequence[str]) -> list[list[str]]:
    if isinstance(value, list):
        return [[str(label)] for label in value]
    named = [name for name in value if name != _NOT_MOVED]
    if not buckets:
        if len(named) != 1:  # a Ranker without buckets has one, named like the tag
            # JSON objects have no order, so the file does not say which bucket comes first.
            raise DataError(
                f"holds the buckets {', '.join(sorted(named))}; say with --buckets "
                "which of them apply, most significant first"
            )
        return [[label] for label in _bucket(value, named[0])]
    if not set(buckets) & set(value):
        raise DataError(f"has no bucket {shorten(buckets[0])}; it has {', '.join(sorted(named))}")
    chosen = [_bucket(value, name) for name in buckets if name in value]
    if len(buckets) == 1:
        return [[label] for label in chosen[0]]
    return [bucket for bucket in chosen if bucket]


def _bucket(value: Mapping[str, Any], name: str) -> list[str]:
    if not isinstance(value[name], list):
        raise DataError(f"bucket {shorten(name)} holds {shorten(value[name])}; expected a list of labels")
    return [str(label) for label in value[name]]


def _notes(results: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """The texts of text areas."""
    for result in results:
        value = result.get("value")
        if result.get("type") == "textarea" and isinstance(value, Mapping):
            text = value.get("text")
            yield from (str(one) for one in (text if isinstance(text, list) else [text]) if one is not None)


def read_argilla(path: Path, question: str | None = None) -> list[Given]:
    """Answers to a ranking question of Argilla, from its records as JSON.

    Records of the Python client (``dataset.records.to_json``) and of the HTTP interface are read.
    Labels with the same rank tie. The client of version 2 writes only the order and so loses ties; records of
    the HTTP interface have them.

    Parameters
    ----------
    path : pathlib.Path
        JSON: a list of records, or an object with ``items``.
    question : str, optional
        The name of the question, if there are several.

    Examples
    --------
    >>> import json, tempfile
    >>> value = [{"value": "sky", "rank": 1}, {"value": "sun", "rank": 2}, {"value": "sea", "rank": 1}]
    >>> response = {"user_id": "ann", "status": "submitted", "values": {"order": {"value": value}}}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     records = [{"fields": {"image": "a.jpg"}, "responses": [response]}]
    ...     _ = Path(folder, "records.json").write_text(json.dumps(records))
    ...     found = read_argilla(Path(folder, "records.json"))
    >>> found[0].order
    [['sky', 'sea'], ['sun']]
    """
    there: set[str] = set()

    def read(where: str, record: Mapping[str, Any]) -> Iterator[Given]:
        fields = record.get("fields")
        if not isinstance(fields, Mapping):
            raise DataError(f"{shorten(record)}; expected a record with 'fields' and 'responses'")
        names = _names(fields, record.get("id"), record.get("external_id"), record.get("metadata"))
        for one in _responses(record.get("responses")):
            if one.question is not None:
                there.add(one.question)
            if question is not None and one.question not in (None, question):
                continue
            if one.status == "discarded":
                yield Given(where, names, one.person, None)
            elif one.status == "submitted" and one.value is not None:
                yield Given(where, names, one.person, _tied(one.value))

    found, problems = _collected(_records(path, "records", "items"), read)
    _check_question(path, question, there)
    asked = "a ranking question" if question is None else f"the ranking question {shorten(question)}"
    return _checked(found, problems, path, asked)


def _check_question(path: Path, question: str | None, there: set[str]) -> None:
    known = ", ".join(sorted(there))
    if question is None and len(there) > 1:
        raise DataError(f"{path}: has the questions {known}; say which with --question")
    if question is not None and there and question not in there:
        raise DataError(f"{path}: no ranking question {shorten(question)}; there are {known}")


class _Response(NamedTuple):
    """An answer to a ranking question; `question` is None if the person discarded the record."""

    question: str | None
    person: str
    value: Any
    status: str


def _responses(responses: Any) -> Iterator[_Response]:
    """The answers to ranking questions, in either of Argilla's two forms."""
    if isinstance(responses, Mapping):
        return _by_question(responses)
    return _by_person(_entries(responses, "responses"))


def _by_question(responses: Mapping[str, Any]) -> Iterator[_Response]:
    """Responses as version 2 writes them."""
    for question, given in responses.items():
        some = _entries(given, f"responses to {shorten(question)}")
        if any(_is_ranking(one.get("value")) for one in some):
            for one in some:
                yield _Response(question, _person(one.get("user_id")), one.get("value"), _status(one))


def _by_person(responses: list[Mapping[str, Any]]) -> Iterator[_Response]:
    """Responses as the HTTP interface gives them."""
    for one in responses:
        person, status = _person(one.get("user_id")), _status(one)
        if status == "discarded":
            yield _Response(None, person, None, status)
            continue
        values = one.get("values") or {}
        if not isinstance(values, Mapping):
            raise DataError(f"values {shorten(values)}; expected answers by question")
        for question, answer in values.items():
            if answer is None:  # not answered
                continue
            if not isinstance(answer, Mapping):
                raise DataError(
                    f"{shorten(answer)} as answer to {shorten(question)}; expected one with 'value'"
                )
            if _is_ranking(answer.get("value")):
                yield _Response(question, person, answer["value"], status)


def _status(response: Mapping[str, Any]) -> str:
    return str(response.get("status") or "submitted")


def _is_ranking(value: Any) -> bool:
    if isinstance(value, Mapping):  # columns, as data sets keep it
        return set(value) == {"value", "rank"}
    if not isinstance(value, list) or not value:
        return False
    return all(isinstance(one, str) or (isinstance(one, Mapping) and "value" in one) for one in value)


def _tied(value: Any) -> list[list[str]]:
    if isinstance(value, Mapping):
        names, ranks = value.get("value"), value.get("rank")
        if not isinstance(names, list) or not isinstance(ranks, list) or len(names) != len(ranks):
            raise DataError(f"{shorten(value)}; expected as many ranks as values")
        value = [{"value": name, "rank": rank} for name, rank in zip(names, ranks)]
    if not _is_ranking(value):
        raise DataError(f"{shorten(value)}; expected a list of labels, or of values with ranks")
    if any(isinstance(one, str) or one.get("rank") is None for one in value):
        return [[one if isinstance(one, str) else str(one["value"])] for one in value]
    by_rank: dict[float, list[str]] = {}
    for one in value:
        by_rank.setdefault(_rank(one), []).append(str(one["value"]))
    return [by_rank[rank] for rank in sorted(by_rank)]


def _rank(one: Mapping[str, Any]) -> float:
    try:
        rank = float(one["rank"])
    except (TypeError, ValueError, OverflowError):
        rank = math.nan
    if not math.isfinite(rank):
        raise DataError(f"rank {shorten(one['rank'])} of {shorten(one['value'])}; expected a number")
    return rank


def _entries(value: Any, what: str) -> list[Mapping[str, Any]]:
    """A list of objects; null counts as empty."""
    if value is None:
        return []
    if not isinstance(value, list):
        raise DataError(f"{what}: {shorten(value)}; expected a list")
    for one in value:
        if not isinstance(one, Mapping):
            raise DataError(f"{what}: {shorten(one)} in the list; expected an object")
    return value


def _records(path: Path, what: str, key: str = "") -> list[Mapping[str, Any]]:
    try:
        size = check_file(path, "a JSON export").stat().st_size
        if size > _LARGEST:
            raise DataError(f"{path}: {size:,} bytes; expected at most {_LARGEST:,}, so split it")
        whole = loads(path.read_text("utf-8-sig"))
    except DataError:
        raise
    except (OSError, ValueError) as error:
        raise DataError(f"{path}: is not JSON: {error}") from None
    if isinstance(whole, Mapping) and isinstance(whole.get(key), list):
        whole = whole[key]
    if not isinstance(whole, list) or not all(isinstance(one, Mapping) for one in whole):
        raise DataError(f"{path}: {shorten(whole)}; expected a list of {what}")
    return whole


def _collected(
    records: list[Mapping[str, Any]], read: Callable[[str, Mapping[str, Any]], Iterator[Given]]
) -> tuple[list[Given], list[tuple[object, str]]]:
    """The answers of all records, and the problems of those that cannot be read."""
    found: list[Given] = []
    problems: list[tuple[object, str]] = []
    for number, record in enumerate(records):
        try:
            found.extend(read(str(number), record))
        except DataError as error:
            problems.append((number, str(error)))
    return found, problems


def _names(fields: Mapping[str, Any], *more: Any) -> tuple[str, ...]:
    """All possible names of an item: short texts of its fields, and its ids."""
    texts = [value for value in fields.values() if isinstance(value, str)]
    urls = [value.get("url") for value in fields.values() if isinstance(value, Mapping)]
    texts += [url for url in urls if isinstance(url, str)]
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
