"""JSON that every program can read: no ``NaN`` or ``Infinity``, no half characters, limited nesting."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator, Mapping
from typing import Any

from gaussianmlr._utils.bounded import read_regular
from gaussianmlr.errors import DataError

__all__ = ["differences", "dumps", "loads", "read_json"]


def read_json(path: str | os.PathLike[str], most: int = 16 << 20) -> Any:
    """The value of a JSON file, read by `read_regular`; numbers that are not finite become None.

    Raises
    ------
    DataError
        For a file that is not JSON, or is nested too deeply; an `OSError` where it cannot be read.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "numbers.json"
    ...     _ = file.write_text('{"good": 1.5, "bad": NaN, "huge": 1e999}')
    ...     read_json(file)
    {'good': 1.5, 'bad': None, 'huge': None}
    """
    data = read_regular(path, most)
    try:
        return loads(data.decode("utf-8"), parse_constant=lambda _: None, parse_float=_finite_number)
    except ValueError as error:
        raise DataError(f"{path} cannot be read as JSON: {error}") from None


def loads(text: str, **options: Any) -> Any:
    r"""The value of a JSON text; a `ValueError` if it is malformed.

    The options are those of `json.loads`.

    Examples
    --------
    >>> loads("[" * 100_000)
    Traceback (most recent call last):
        ...
    gaussianmlr.errors.DataError: nested too deeply; expected values in a few levels
    >>> loads(r'["\ud83d\ude00", "\ud83d"]')
    Traceback (most recent call last):
        ...
    gaussianmlr.errors.DataError: '\ud83d' is half of a character; expected both halves
    """
    try:
        value = json.loads(text, **options)
        if "\\ud" in text.lower():
            json.dumps(value, ensure_ascii=False).encode()
    except RecursionError:
        raise DataError("nested too deeply; expected values in a few levels") from None
    except UnicodeEncodeError as error:
        raise DataError(
            f"{error.object[error.start]!r} is half of a character; expected both halves"
        ) from None
    return value


def dumps(value: Any, *, indent: int | None = None, ensure_ascii: bool = True) -> str:
    """A value as JSON; NaN and infinity, which JSON does not know, become null.

    Examples
    --------
    >>> dumps({"tau_b": float("nan"), "ece": 0.5})
    '{"tau_b": null, "ece": 0.5}'
    """
    try:
        return json.dumps(value, indent=indent, ensure_ascii=ensure_ascii, allow_nan=False)
    except ValueError:  # rare, so values are only copied here
        return json.dumps(_finite(value), indent=indent, ensure_ascii=ensure_ascii, allow_nan=False)


def _finite_number(text: str) -> float | None:
    return number if math.isfinite(number := float(text)) else None


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _finite(one) for key, one in value.items()}
    return [_finite(one) for one in value] if isinstance(value, list | tuple) else value


def differences(was: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    """Fields that differ, with both values; those of fields that hold fields by their own names.

    Examples
    --------
    >>> list(differences({"a": 1, "b": {"c": 2}}, {"a": 1, "b": {"c": 3}}))
    [('c', 2, 3)]
    """
    for name in now:
        if isinstance(now[name], dict) and isinstance(was.get(name), dict):
            yield from differences(
                {**dict.fromkeys(now[name]), **was[name]}, {**dict.fromkeys(was[name]), **now[name]}
            )
        elif was.get(name) != now[name]:
            yield name, was.get(name), now[name]
