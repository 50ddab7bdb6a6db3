"""Answers as JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel
from starlette.responses import JSONResponse

__all__ = ["ERRORS", "Json", "described", "encoded", "finite", "problem"]

_LONGEST = 2_000  # characters of an error message, which may echo what was sent


class Problem(BaseModel):
    """What went wrong."""

    error: str


def described(texts: Mapping[int, str]) -> dict[int | str, dict[str, Any]]:
    """Errors by status, as FastAPI takes their descriptions."""
    return {status: {"model": Problem, "description": text} for status, text in texts.items()}


ERRORS = described(
    {
        400: "The request is invalid; `error` says why.",
        401: "The token is missing or wrong.",
        403: "The request comes from a page of another site.",
        408: "The body took too long to arrive.",
        413: "The body is too long.",
        421: "The host is not this machine, and there is no token.",
        422: "The request does not have the expected form.",
        503: "Too many requests, or no answer in time; try again after `Retry-After` seconds.",
    }
)


def encoded(content: Any) -> bytes:
    r"""JSON in UTF-8, without NaN and Infinity; half a surrogate pair is written as JSON escapes it.

    Examples
    --------
    >>> encoded({"name": "\u00e9 \ud800"})
    b'{"name":"\xc3\xa9 \\ud800"}'
    """
    text = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.encode("utf-8", "backslashreplace")


class Json(JSONResponse):
    """A JSON answer that can hold any text."""

    def render(self, content: Any) -> bytes:
        """As `encoded`."""
        return encoded(content)


def problem(message: str, status: int, headers: Mapping[str, str] | None = None) -> Json:
    """An answer that says what went wrong, in at most 2,000 characters.

    Examples
    --------
    >>> len(problem("x" * 5_000, 400).body)
    2012
    """
    text = message if len(message) <= _LONGEST else f"{message[: _LONGEST - 4]} ..."
    return Json({"error": text}, status, headers)


def finite(value: Any) -> Any:
    """A copy of nested dicts and lists with None in place of NaN and Infinity, which JSON does not have.

    Examples
    --------
    >>> finite({"loss": [0.5, float("nan")]})
    {'loss': [0.5, None]}
    """
    if isinstance(value, dict):
        return {key: finite(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [finite(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
