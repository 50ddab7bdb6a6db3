"""Answers of people to items, each safe on the disk before anybody hears that it is saved."""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import threading
import time
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, NamedTuple

from gaussianmlr.annotations._schema import FILE, connect, readable
from gaussianmlr.annotations.items import Found
from gaussianmlr.errors import DataError, shorten
from gaussianmlr.orders import check_labels, to_ranks, to_text

__all__ = ["Answer", "Item", "Person", "State", "Store", "Suggestion"]

State = Literal["ranked", "skipped"]
_LONGEST_NAME, _LONGEST_NOTE = 80, 4_000


class Item(NamedTuple):
    """Something to rank labels for: its number, its name, and what is shown (a path, a text, cells)."""

    id: int
    name: str
    content: Any


class Person(NamedTuple):
    """Somebody who gives answers."""

    id: int
    name: str


class Answer(NamedTuple):
    """What a person says of an item: an order in text form, or that they skip it."""

    id: int
    item: int
    person: int
    state: State
    ranking: str
    note: str
    seconds: float
    at: float


class Suggestion(NamedTuple):
    """What a model says of an item, and how unsure it is."""

    ranking: str
    uncertainty: float
    model: str


class Store:
    """A folder with everybody's answers, in SQLite.

    Every method that changes something returns after the disk has it. Several threads may use one store,
    and several processes one folder.

    Parameters
    ----------
    folder : path-like
        Where it is kept.
    create : bool
        Make it where there is none.

    Examples
    --------
    >>> import tempfile
    >>> from gaussianmlr.annotations import Found, Store
    >>> with tempfile.TemporaryDirectory() as folder, Store(folder, create=True) as store:
    ...     store.bring(Found("text", "poems", {"haiku": "an old silent pond"}), ["calm", "sad", "wild"])
    ...     ann = store.person("Ann")
    ...     item = store.waiting(ann.id)[0]
    ...     _ = store.answer(item.id, ann.id, [["calm"], ["sad"]], token="1")
    ...     print(store.answers()[0].ranking, store.waiting(ann.id))
    calm > sad []
    """

    def __init__(self, folder: str | os.PathLike[str], *, create: bool = False) -> None:
        self.folder = Path(folder)
        self._lock = threading.RLock()
        self._connection = connect(self.folder, create=create)

    def close(self) -> None:
        """Let go of the file."""
        with self._lock:
            self._connection.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # What there is to rank

    def bring(self, found: Found, labels: Iterable[object] | None = None) -> None:
        """Add items and labels. Items that are there stay; those that `found` lacks are no longer asked.

        Labels can be added, never taken away: orders given before say nothing of labels added since.
        """
        wanted = None if labels is None else check_labels(labels)
        with self._change() as connection:
            about = self._about()
            if about.get("kind", found.kind) != found.kind:
                raise DataError(
                    f"{self.folder}: holds answers about items of kind {about['kind']!r}, "
                    f"not {found.kind!r}; choose another folder"
                )
            _bring_labels(connection, self.labels, wanted, self.folder)
            rows = [("kind", found.kind), ("source", str(found.source))]
            connection.executemany("INSERT OR REPLACE INTO about VALUES (?, ?)", rows)
            connection.execute("UPDATE items SET present = 0")
            connection.executemany(
                "INSERT INTO items (name, content) VALUES (?, ?) "
                "ON CONFLICT (name) DO UPDATE SET content = excluded.content, present = 1",
                [(name, json.dumps(content, ensure_ascii=False)) for name, content in found.items.items()],
            )

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels, in the order in which they were given."""
        return tuple(row[0] for row in self._rows("SELECT label FROM labels ORDER BY place"))

    @property
    def kind(self) -> str:
        """What items are: ``"image"``, ``"text"`` or ``"row"``."""
        return str(self._about().get("kind", ""))

    @property
    def source(self) -> Path:
        """The folder or file that items come from."""
        return Path(self._about().get("source", ""))

    def _about(self) -> dict[str, str]:
        return dict(self._rows("SELECT name, value FROM about"))

    def items(self, *, first: int = 0, count: int = -1, everything: bool = False) -> list[Item]:
        """Some items in their order; with `everything` also those that are asked no more."""
        some = "" if everything else "WHERE present = 1 "
        query = f"SELECT id, name, content FROM items {some}ORDER BY id LIMIT ? OFFSET ?"
        return [_item(row) for row in self._rows(query, count, first)]

    def item(self, number: int) -> Item:
        """One item by its number."""
        rows = self._rows("SELECT id, name, content FROM items WHERE id = ?", number)
        if not rows:
            raise DataError(f"there is no item {number}")
        return _item(rows[0])

    def count(self) -> int:
        """How many items are asked about."""
        return int(self._rows("SELECT count(*) FROM items WHERE present = 1")[0][0])

    def present(self) -> set[int]:
        """The numbers of the items that are asked about."""
        return {row[0] for row in self._rows("SELECT id FROM items WHERE present = 1")}

    # Who answers

    def person(self, name: str) -> Person:
        """The person of a name, new or known; capitals and spaces around it make no difference."""
        shown = " ".join(unicodedata.normalize("NFC", str(name)).split())
        if not shown or len(shown) > _LONGEST_NAME or not shown.isprintable():
            raise DataError(f"expected a name of 1 to {_LONGEST_NAME} characters, got {shorten(name)}")
        with self._change() as connection:
            key = shown.casefold()
            connection.execute("INSERT OR IGNORE INTO people (name, known_as) VALUES (?, ?)", (shown, key))
        return Person(*self._rows("SELECT id, name FROM people WHERE known_as = ?", key)[0])

    def people(self) -> list[Person]:
        """Everybody, in the order in which they came."""
        return [Person(*row) for row in self._rows("SELECT id, name FROM people ORDER BY id")]

    # What they say

    def answer(
        self,
        item: int,
        person: int,
        order: Sequence[Sequence[str]] | None,
        *,
        token: str,
        note: str = "",
        seconds: float = 0.0,
        at: float | None = None,
    ) -> Answer:
        """Keep what a person says of an item; when this returns, it survives a crash.

        Parameters
        ----------
        item, person : int
            Their numbers.
        order : sequence of buckets, or None
            Labels that apply, most significant first, tied ones in one bucket; None skips the item.
        token : str
            A name for this request: sent again, it counts once.
        note : str
            What else there is to say.
        seconds : float
            Time it took.
        at : float, optional
            When, as seconds since 1970; now without it.
        """
        labels = self.labels
        ranking = "" if order is None else write_order(order, labels)
        if len(note) > _LONGEST_NOTE:
            raise DataError(f"a note of {len(note):,} characters; expected at most {_LONGEST_NOTE:,}")
        if not 0 <= seconds < 1e9:
            raise DataError(f"{seconds} seconds; expected 0 or more")
        state = "skipped" if order is None else "ranked"
        when = time.time() if at is None else at
        row = (item, person, state, ranking, len(labels), note, seconds, when, token)
        with self._change() as connection:
            self.item(item)
            self._require(person)
            connection.execute(
                "INSERT OR IGNORE INTO history "
                "(item, person, state, ranking, labels, note, seconds, at, token) "
                "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                row,
            )
        saved = self._rows(f"SELECT {_COLUMNS} FROM history WHERE token = ?", token)[0]
        if saved[1:3] != (item, person):
            raise DataError(f"the token {shorten(token)} belongs to another answer; expected a new one")
        return Answer(*saved)

    def undo(self, person: int) -> Answer | None:
        """Take back the person's last answer, which is returned; what they said before it counts again."""
        query = f"SELECT {_COLUMNS} FROM history WHERE person = ? AND undone = 0 ORDER BY id DESC LIMIT 1"
        with self._change() as connection:
            last = connection.execute(query, (person,)).fetchone()
            if last is None:
                return None
            connection.execute("UPDATE history SET undone = 1 WHERE id = ?", (last[0],))
        return Answer(*last)

    def answers(self, item: int | None = None, person: int | None = None) -> list[Answer]:
        """The answers that count: one a person and item."""
        query = (
            f"SELECT {_COLUMNS} FROM answers WHERE (?1 IS NULL OR item = ?1) AND (?2 IS NULL OR person = ?2)"
        )
        if item is not None:  # said plainly, the index is used
            query = f"SELECT {_COLUMNS} FROM answers WHERE item = ?1 AND (?2 IS NULL OR person = ?2)"
        return [Answer(*row) for row in self._rows(f"{query} ORDER BY item, person", item, person)]

    def history(self, item: int, person: int) -> list[tuple[Answer, bool]]:
        """All a person ever said of an item, first to last, and whether it was undone."""
        query = f"SELECT {_COLUMNS}, undone FROM history WHERE item = ? AND person = ? ORDER BY id"
        return [(Answer(*row[:-1]), bool(row[-1])) for row in self._rows(query, item, person)]

    def waiting(self, person: int, count: int = -1, *, wanted: int = 0) -> list[Item]:
        """Items that the person has not answered, those a model is most unsure of first.

        Parameters
        ----------
        person : int
            Who asks.
        count : int
            How many at most; all of them below 0.
        wanted : int
            Leave out items that so many others have ranked; 0 asks everybody about everything.
        """
        query = """
            SELECT i.id, i.name, i.content FROM items AS i LEFT JOIN suggestions AS s ON s.item = i.id
            WHERE i.present = 1
            AND NOT EXISTS (SELECT 1 FROM history AS h WHERE h.item = i.id AND h.person = ?1 AND h.undone = 0)
            AND (?2 = 0 OR ?2 > (
                SELECT count(*) FROM answers AS a WHERE a.item = i.id AND a.state = 'ranked'
            ))
            ORDER BY s.uncertainty IS NULL, s.uncertainty DESC, i.id LIMIT ?3
        """
        self._require(person)
        return [_item(row) for row in self._rows(query, person, wanted, count)]

    def done(self, person: int) -> tuple[int, int]:
        """How many items the person has ranked, and how many skipped."""
        self._require(person)
        rows = self._rows(
            "SELECT a.state, count(*) FROM answers AS a JOIN items AS i ON i.id = a.item "
            "WHERE a.person = ? AND i.present = 1 GROUP BY a.state",
            person,
        )
        counts = dict(rows)
        return counts.get("ranked", 0), counts.get("skipped", 0)

    def revision(self) -> tuple[int, int, int]:
        """Changes whenever an answer comes, is undone, or labels are added."""
        row = self._rows("SELECT ifnull(max(id), 0), ifnull(sum(undone), 0) FROM history")[0]
        return int(row[0]), int(row[1]), len(self.labels)

    def known_labels(self) -> dict[int, int]:
        """How many labels there were when each answer that counts was given, by its number."""
        return dict(self._rows("SELECT id, labels FROM answers"))

    # What a model says

    def suggest(self, rows: Iterable[tuple[int, str, float]], model: str) -> None:
        """Keep a model's orders: rows of item, order as text, uncertainty."""
        with self._change() as connection:
            connection.executemany(
                "INSERT OR REPLACE INTO suggestions VALUES (?, ?, ?, ?)", [(*row, model) for row in rows]
            )

    def suggestion(self, item: int) -> Suggestion | None:
        """What a model said of an item, if one did."""
        rows = self._rows("SELECT ranking, uncertainty, model FROM suggestions WHERE item = ?", item)
        return Suggestion(*rows[0]) if rows else None

    def suggested(self, model: str) -> set[int]:
        """The items that this model has spoken of."""
        return {row[0] for row in self._rows("SELECT item FROM suggestions WHERE model = ?", model)}

    def forget_suggestions(self, but: str = "") -> None:
        """Drop what models said, but for one of them."""
        with self._change() as connection:
            connection.execute("DELETE FROM suggestions WHERE model != ?", (but,))

    # Underneath

    @contextlib.contextmanager
    def together(self) -> Iterator[None]:
        """Changes inside happen all or not at all."""
        with self._change():
            yield

    @contextlib.contextmanager
    def _change(self) -> Iterator[sqlite3.Connection]:
        with self._lock, readable(self.folder / FILE):
            if self._changing():  # within `together`
                yield self._connection
                return
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
                self._connection.execute("COMMIT")
            except BaseException:
                if self._changing():  # an error of SQLite may have ended it
                    self._connection.execute("ROLLBACK")
                raise

    def _changing(self) -> bool:
        return self._connection.in_transaction

    def _rows(self, query: str, *values: object) -> list[Any]:
        with self._lock, readable(self.folder / FILE):
            return self._connection.execute(query, values).fetchall()

    def _require(self, person: int) -> None:
        if not self._rows("SELECT 1 FROM people WHERE id = ?", person):
            raise DataError(f"there is no person {person}; give a name first")


_COLUMNS = "id, item, person, state, ranking, note, seconds, at"


def _item(row: tuple[int, str, str]) -> Item:
    return Item(row[0], row[1], json.loads(row[2]))


def write_order(order: Sequence[Sequence[str]], labels: Sequence[str]) -> str:
    """Buckets as text, after a check that they hold known labels, each once.

    Examples
    --------
    >>> write_order([["sky"], ["sea", "sun"]], ["sea", "sky", "sun"])
    'sky > sea = sun'
    """
    return to_text(to_ranks([[list(bucket) for bucket in order]], labels).ranks, labels)[0]


def _bring_labels(
    connection: sqlite3.Connection, known: tuple[str, ...], wanted: tuple[str, ...] | None, folder: Path
) -> None:
    if wanted is None:
        if not known:
            raise DataError(f"{folder}: has no labels yet; name a file with one label a line")
        return
    if gone := [label for label in known if label not in wanted]:
        raise DataError(
            f"{folder}: labels {shorten(gone)} are not in the list, and answers may use them; "
            "labels can be added, not taken away"
        )
    new = [label for label in wanted if label not in known]
    connection.executemany("INSERT INTO labels (label) VALUES (?)", [(label,) for label in new])
