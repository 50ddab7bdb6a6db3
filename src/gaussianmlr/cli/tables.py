"""Options of all commands that read tables, under the same names."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from enum import StrEnum
from typing import Annotated, Any

import typer


class Missing(StrEnum):
    """What an empty cell of a label column means."""

    error = "error"
    unknown = "unknown"
    irrelevant = "irrelevant"


def _text(help_: str, *names: str) -> Any:
    return Annotated[str | None, typer.Option(*names, help=help_, rich_help_panel="Tables")]


FORMAT = ("sep", "decimal", "encoding", "sheet", "id_column")
# A model knows its feature columns.
OF_A_MODEL = (*FORMAT, "ranking", "drop", "split_column", "ranker", "order_separator", "positions", "missing")
OPTIONS: dict[str, tuple[Any, Any]] = {
    "ranking": (_text("The column of orders; 'ranking' by default.", "--ranking"), None),
    "features": (
        _text("The feature columns: a,b,c. By default every column without another role.", "--features"),
        None,
    ),
    "drop": (_text("Columns to leave out: x,y.", "--drop"), None),
    "categories": (
        _text("Columns whose numbers or texts are categories: zip,code.", "--categories"),
        None,
    ),
    "texts": (
        _text("Columns of texts to read: title,body. By default one that is called so.", "--texts"),
        None,
    ),
    "id_column": (_text("The column that names instances; 'id' by default.", "--id", "--id-column"), None),
    "weight": (_text("The column of weights; 'weight' by default.", "--weight"), None),
    "split_column": (_text("The column of parts; 'split' by default.", "--split", "--split-column"), None),
    "ranker": (_text("The column of rankers; 'ranker' by default.", "--ranker"), None),
    "sep": (_text("Separator of columns: , ; | or tab. By default found out.", "--sep"), None),
    "decimal": (_text("Decimal sign: . or a comma. By default found out.", "--decimal"), None),
    "encoding": (_text("Encoding of a text file, such as latin-1; UTF-8 by default.", "--encoding"), None),
    "sheet": (_text("Sheet of an Excel file, by name or number; the first by default.", "--sheet"), None),
    "order_separator": (
        _text(
            "What stands between the labels of an order, beside >; ',' reads 'sky, sea'.", "--order-separator"
        ),
        None,
    ),
    "positions": (
        Annotated[
            bool,
            typer.Option(
                "--positions", help="Label columns hold positions: 1 = best.", rich_help_panel="Tables"
            ),
        ],
        False,
    ),
    "missing": (
        Annotated[
            Missing,
            typer.Option(help="What an empty cell of a label column means.", rich_help_panel="Tables"),
        ],
        Missing.error,
    ),
}


def reads_tables(*names: str, part: bool = False) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command the options of tables, collected in its parameter `layout`.

    Parameters
    ----------
    *names : str
        The options; all of them if left out.
    part : bool
        Whether ``--split`` of the command is the part to measure on, so that the column is
        ``--split-column`` alone.
    """
    chosen = {name: OPTIONS[name] for name in names or OPTIONS}
    if part and "split_column" in chosen:
        chosen["split_column"] = (_text("The column of parts; 'split' by default.", "--split-column"), None)

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(command)
        def run(**given: Any) -> None:
            command(
                **{key: value for key, value in given.items() if key not in chosen}, layout=_layout(given)
            )

        signature = inspect.signature(command, eval_str=True)
        own = [one for one in signature.parameters.values() if one.name != "layout"]
        added = [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
            for name, (annotation, default) in chosen.items()
        ]
        run.__signature__ = signature.replace(parameters=[*own, *added])  # type: ignore[attr-defined]
        run.__annotations__ = {one.name: one.annotation for one in (*own, *added)} | {"return": None}
        return run

    return decorate


def _layout(given: dict[str, Any]) -> Any:
    from gaussianmlr.data.readers.layout import Layout

    said: dict[str, Any] = {
        name: given[name]
        for name in ("sep", "decimal", "encoding", "sheet", "ranking", "weight", "ranker", "order_separator")
        if given.get(name) is not None
    }
    for option, field in (("id_column", "id"), ("split_column", "split")):
        if given.get(option) is not None:
            said[field] = given[option]
    for name in ("features", "drop", "categories", "texts"):
        if given.get(name) is not None:
            said[name] = tuple(quoted_list(given[name], name))
    if "missing" in given:
        said["missing"] = given["missing"].value
    return Layout(**said, positions=given.get("positions", False))


def quoted_list(text: str, what: str) -> list[str]:
    """The entries of a list with commas; an entry that holds a comma is quoted, as in CSV.

    Examples
    --------
    >>> quoted_list('"red, dark", blue', "labels")
    ['red, dark', 'blue']
    """
    import csv

    from gaussianmlr.errors import DataError

    try:
        (row,) = csv.reader([text], skipinitialspace=True, strict=True)
    except (csv.Error, ValueError) as error:
        raise DataError(f'--{what} {text!r} cannot be read: {error}; expected a,b or "a, b",c') from None
    return [entry.strip() for entry in row or [text]]
