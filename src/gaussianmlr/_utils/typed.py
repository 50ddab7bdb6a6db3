"""JSON files with typed fields; a mismatch is reported in one line."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Annotated, TypeVar

from pydantic import BeforeValidator, TypeAdapter, ValidationError

from gaussianmlr._utils.strict_json import read_json
from gaussianmlr.errors import DataError, shorten

__all__ = ["Number", "as_typed", "problem", "read_typed"]

# JSON has no NaN, so an undefined metric is null there.
Number = Annotated[float, BeforeValidator(lambda value: math.nan if value is None else value)]

Kind = TypeVar("Kind")


def read_typed(kind: type[Kind], file: Path) -> Kind:
    """A dataclass object from a JSON file, strictly checked against the types of its fields.

    Raises
    ------
    DataError
        If a field does not fit, without the name of the file; an `OSError` if it cannot be read.

    Examples
    --------
    >>> import tempfile
    >>> from dataclasses import dataclass
    >>> @dataclass
    ... class Point:
    ...     x: int
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = (Path(folder) / "point.json").write_text('{"x": "three"}')
    ...     read_typed(Point, Path(folder) / "point.json")
    Traceback (most recent call last):
        ...
    gaussianmlr.errors.DataError: x is 'three'; Input should be a valid integer
    """
    return as_typed(kind, read_json(file))


def as_typed(kind: type[Kind], value: object) -> Kind:
    """A dataclass object from a JSON value, strictly checked against the types of its fields."""
    try:
        return TypeAdapter(kind).validate_json(json.dumps(value), strict=True)
    except ValidationError as error:
        raise DataError(problem(error)) from None


def problem(error: ValidationError) -> str:
    """The first problem that pydantic found, with its value."""
    first = error.errors(include_url=False, include_context=False)[0]
    message = first["msg"].removeprefix("Value error, ")
    if first["type"] == "value_error" or not first["loc"]:
        return message
    where = ".".join(map(str, first["loc"]))
    if first["type"] in ("missing", "extra_forbidden"):
        return f"{where}: {message}"
    return f"{where} is {shorten(first['input'])}; {message}"
