"""How a table is to be read: its format, the roles of its columns, the form of its orders."""

from __future__ import annotations

import codecs
import difflib
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from gaussianmlr.errors import DataError, shorten
from gaussianmlr.orders.separators import check_separator

Missing = Literal["error", "unknown", "irrelevant"]
_NAMED_SEPARATORS = {"tab": "\t", r"\t": "\t", "comma": ",", "semicolon": ";", "pipe": "|", "space": " "}


@dataclass(frozen=True)
class Layout:
    r"""How a table is to be read; every field has the default of `read_table`.

    Attributes
    ----------
    sep, decimal, encoding, sheet : str or None
        Separator, decimal sign and encoding of a text file, sheet of an Excel file; found out if None.
    ranking, id, weight, split, ranker : str or None
        Columns with these roles. A column with the default name need not exist; None never uses it.
    features : str, tuple of str or None
        Feature columns, by name or by prefix; every column without another role if None.
    categories : tuple of str
        Columns whose numbers or texts are categories.
    texts : tuple of str
        Columns of texts that a model reads.
    drop : tuple of str
        Columns to leave out.
    order_separator : str or None
        What separates labels in orders, instead of ``>``.
    positions : bool
        Whether label columns hold positions (1 = best) instead of ranks.
    missing : {"error", "unknown", "irrelevant"}
        What an empty cell in a label column means.

    Examples
    --------
    >>> Layout(sep="tab", drop=("comment",)).sep
    '\t'
    >>> Layout(decimal="'")
    Traceback (most recent call last):
        ...
    gaussianmlr.errors.DataError: decimal is "'"; expected '.' or ','
    """

    sep: str | None = None
    decimal: str | None = None
    encoding: str | None = None
    sheet: str | None = None
    ranking: str | None = "ranking"
    id: str | None = "id"
    weight: str | None = "weight"
    split: str | None = "split"
    ranker: str | None = "ranker"
    features: str | tuple[str, ...] | None = None
    drop: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    order_separator: str | None = None
    positions: bool = False
    missing: Missing = "error"
    texts: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.sep is not None:
            sep = _NAMED_SEPARATORS.get(self.sep.lower(), self.sep)
            if len(sep) != 1 or sep in "\"'\r\n":
                raise DataError(f"sep is {self.sep!r}; expected one sign, such as ',', ';', '|' or 'tab'")
            object.__setattr__(self, "sep", sep)  # the dataclass is frozen
        if self.decimal not in (None, ".", ","):
            raise DataError(f"decimal is {self.decimal!r}; expected '.' or ','")
        if self.decimal == "," == self.sep:
            raise DataError("sep and decimal are both ','; a file can use a comma for one of them")
        if self.encoding is not None:
            check_encoding(self.encoding)
        if self.missing not in ("error", "unknown", "irrelevant"):
            raise DataError(f"missing is 'error', 'unknown' or 'irrelevant', not {self.missing!r}")
        check_separator(self.order_separator)


class ReadFrom(NamedTuple):
    """The file that data was read from, and how its columns and grades were read."""

    path: str
    threshold: float | None = None
    tolerance: float = 0.0
    layout: Layout = Layout()


def check_encoding(encoding: str) -> None:
    """Refuse names of encodings that Python does not know, and codecs that are not of texts.

    Examples
    --------
    >>> check_encoding("latin-9000")
    Traceback (most recent call last):
        ...
    gaussianmlr.errors.DataError: encoding is 'latin-9000'; expected one such as utf-8, latin-1 or cp1252
    """
    try:
        "".encode(encoding)
        codecs.lookup(encoding)
    except (LookupError, UnicodeError, ValueError):
        raise DataError(f"encoding is {encoding!r}; expected one such as utf-8, latin-1 or cp1252") from None


def match_name(wanted: str, names: Collection[str]) -> str | None:
    """The column of a name, without regard to case and outer spaces where only one fits.

    Examples
    --------
    >>> match_name("ranking", ["Age", " Ranking "]), match_name("age", ["sex"])
    (' Ranking ', None)
    >>> match_name("age", ["Age", "AGE"])
    Traceback (most recent call last):
        ...
    gaussianmlr.errors.DataError: 'age' may be any of the columns ['Age', 'AGE']; write it as one of them
    """
    if wanted in names:
        return wanted
    found = [name for name in names if fold(name) == fold(wanted)]
    if len(found) > 1:
        raise DataError(f"{wanted!r} may be any of the columns {shorten(found)}; write it as one of them")
    return found[0] if found else None


def fold(name: str) -> str:
    """A name without case and outer spaces, for comparison."""
    return name.strip().casefold()


def did_you_mean(wanted: str, names: Sequence[str]) -> str:
    """A hint that names the nearest column, or all of them.

    Examples
    --------
    >>> did_you_mean("rankng", ["age", "ranking"])
    "did you mean 'ranking'? The columns are ['age', 'ranking']"
    """
    folded = {fold(name): name for name in names}
    near = difflib.get_close_matches(fold(wanted), folded, n=1, cutoff=0.6)
    columns = f"the columns are {shorten(list(names))}"
    return f"did you mean {folded[near[0]]!r}? T{columns[1:]}" if near else columns
