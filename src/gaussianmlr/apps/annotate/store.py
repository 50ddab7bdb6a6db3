"""The store of people's answers; an answer is on disk before it is reported as saved."""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import time
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, NamedTuple

from gaussianmlr.apps.annotate.connections import Connections, StoreError
from gaussianmlr.apps.annotate.items import Found
from gaussianmlr.apps.annotate.orders import write_order
from gaussianmlr.errors import DataError, shorten
from gaussianmlr.orders import check_labels

__all__ = ["Answer", "Item", "Person", "State", "Store", "Suggestion"]

State = Literal["ranked", "skipped"]
_LONGEST_NAME, _LONGEST_NOTE = 80, 4_000


class Item(NamedTuple):
    """Something to rank labels for: number, name and content (a path, a text, or cells)."""

    id: int
    name: str
    content: Any


class Person(NamedTuple):
    """A person who ranks."""

    id: int
    name: str


class Answer(NamedTuple):
    """A person's answer to an item: an order as text, or a skip."""

    id: int
    item: int
    person: int
    state: State
    ranking: str
    note: str
    seconds: float
    at: float


class Suggestion(NamedTuple):
    """A model's order for an item, and its uncertainty."""

    ranking: str
    uncertainty: float
    model: str


class Store:
    """A folder with everybody's answers, in SQLite.

    Every change is on disk when its method returns. Several threads may use one store,
    and several processes one folder; reading does not wait for writing.

    Parameters
    ----------
    folder : path-like
        The folder.
    create : bool
        Create the store if it does not exist.
    patience : float
        Seconds to wait while another process writes.

    Raises
    ------
    StoreError
        By every method, if the store is locked for longer, its disk is full or failing, or it is damaged.

    Examples
    --------
    >>> import tempfile
    >>> from gaussianmlr.apps.annotate import Found, Store
    >>> with tempfile.TemporaryDirectory() as folder, Store(folder, create=True) as store:
    ...     store.bring(Found("text", "poems", {"haiku": "an old silent pond"}), ["calm", "sad", "wild"])
    ...     ann = store.person("Ann")
    ...     item = store.waiting(ann.id)[0]
    ...     _ = store.answer(item.id, ann.id, [["calm"], ["sad"]], token="1")
    ...     print(store.answers()[0].ranking, store.waiting(ann.id))
    calm > sad []
    """

    def __init__(
        self, folder: str | os.PathLike[str], *, create: bool = False, patience: float = 30.0
    ) -> None:
        self.folder = Path(folder)
        self._connections = Connections(self.folder, create=create, patience=patience)
        self._rows, self._change = self._connections.rows, self._connections.change

    def close(self) -> None:
        """Close the file."""
        self._connections.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # Items and labels

    def bring(self, found: Found, labels: Iterable[object] | None = None) -> None:
        """Add items and labels. Existing items stay; those not in `found` are no longer shown.

        Labels can be added, never removed; in earlier orders, labels added later are unknown.
        """
        wanted = None if labels is None else check_labels(labels)
        items = [(name, json.dumps(content, ensure_ascii=False)) for name, content in found.items.items()]
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
                items,
            )

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels, in the order in which they were added."""
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
        """Items in their order; with `everything` also those that are no longer shown."""
        some = "" if everything else "WHERE present = 1 "
        query = f"SELECT id, name, content FROM items {some}ORDER BY id LIMIT ? OFFSET ?"
        return [self._item(row) for row in self._rows(query, count, first)]

    def item(self, number: int) -> Item:
        """One item by its number."""
        rows = self._rows("SELECT id, name, content FROM items WHERE id = ?", number)
        if not rows:
            raise DataError(f"there is no item {number}")
        return self._item(rows[0])

    def neighbours(self, number: int) -> tuple[int | None, int | None]:
        """The items to rank before and after one, by their numbers; None where there is none."""
        before = self._rows("SELECT max(id) FROM items WHERE present = 1 AND id < ?", number)
        after = self._rows("SELECT min(id) FROM items WHERE present = 1 AND id > ?", number)
        return before[0][0], after[0][0]

    def count(self) -> int:
        """The number of items to rank."""
        return int(self._rows("SELECT count(*) FROM items WHERE present = 1")[0][0])

    def present(self) -> set[int]:
        """The numbers of the items to rank."""
        return {row[0] for row in self._rows("SELECT id FROM items WHERE present = 1")}

    # People

    def person(self, name: str) -> Person:
        """The person with a name, new or known; case and surrounding spaces are ignored."""
        shown = " ".join(unicodedata.normalize("NFC", str(name)).split())
        if not shown or len(shown) > _LONGEST_NAME or not shown.isprintable():
            raise DataError(f"expected a name of 1 to {_LONGEST_NAME} characters, got {shorten(name)}")
        with self._change() as connection:
            key = shown.casefold()
            connection.execute("INSERT OR IGNORE INTO people (name, known_as) VALUES (?, ?)", (shown, key))
            return Person(*self._rows("SELECT id, name FROM people WHERE known_as = ?", key)[0])

    def people(self) -> list[Person]:
        """All people, in the order in which they joined."""
        return [Person(*row) for row in self._rows("SELECT id, name FROM people ORDER BY id")]

    # Answers

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
        """Save a person's answer; when this returns, it survives a crash.

        Parameters
        ----------
        item, person : int
            Their numbers.
        order : sequence of buckets, or None
            Labels that apply, most significant first, tied ones in one bucket; None skips the item.
        token : str
            Identifies the request: sent again, it counts once.
        note : str
            A free text.
        seconds : float
            Time that the answer took.
        at : float, optional
            Time stamp, in seconds since 1970; now by default.
        """
        labels = self.labels
        ranking = "" if order is None else write_order(order, labels)
        if len(note) > _LONGEST_NOTE:
            raise DataError(f"a note of {len(note):,} characters; expected at most {_LONGEST_NOTE:,}")
        if "\0" in note:  # tables cannot hold it
            raise DataError(f"a note with a NUL character, {shorten(note)}; expected text")
        if not 0 <= seconds < 1e9:
            raise DataError(f"{seconds} seconds; expected 0 or more")
        state = "skipped" if order is None else "ranked"
        when = time.time() if at is None else at
        row = (item, person, state, ranking, len(labels), note, seconds, when, token)
        with self._change() as connection:
            self._require(person)
            if not self._rows("SELECT 1 FROM items WHERE id = ?", item):
                raise DataError(f"there is no item {item}")
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
        """Undo and return the person's last answer; their previous answer to the item counts again."""
        query = f"SELECT {_COLUMNS} FROM history WHERE person = ? AND undone = 0 ORDER BY id DESC LIMIT 1"
        with self._change() as connection:
            last = connection.execute(query, (person,)).fetchone()
            if last is None:
                return None
            connection.execute("UPDATE history SET undone = 1 WHERE id = ?", (last[0],))
        return Answer(*last)

    def answers(self, item: int | None = None, person: int | None = None) -> list[Answer]:
        """The current answers: one per person and item."""
        query = (
            f"SELECT {_COLUMNS} FROM answers WHERE (?1 IS NULL OR item = ?1) AND (?2 IS NULL OR person = ?2)"
        )
        if item is not None:  # this form uses the index
            query = f"SELECT {_COLUMNS} FROM answers WHERE item = ?1 AND (?2 IS NULL OR person = ?2)"
        return [Answer(*row) for row in self._rows(f"{query} ORDER BY item, person", item, person)]

    def history(self, item: int, person: int) -> list[tuple[Answer, bool]]:
        """All answers of a person to an item, oldest first, and whether each was undone."""
        query = f"SELECT {_COLUMNS}, undone FROM history WHERE item = ? AND person = ? ORDER BY id"
        return [(Answer(*row[:-1]), bool(row[-1])) for row in self._rows(query, item, person)]

    def waiting(self, person: int, count: int = -1, *, wanted: int = 0) -> list[Item]:
        """Items that the person has not answered, the most uncertain ones first.

        Parameters
        ----------
        person : int
            The person's number.
        count : int
            Maximum number; negative for all.
        wanted : int
            Leave out items that this many people have ranked; 0 = everybody ranks everything.
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
        return [self._item(row) for row in self._rows(query, person, wanted, count)]

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
        """Changes whenever an answer is added or undone, or labels are added."""
        row = self._rows("SELECT ifnull(max(id), 0), ifnull(sum(undone), 0) FROM history")[0]
        return int(row[0]), int(row[1]), len(self.labels)

    def known_labels(self) -> dict[int, int]:
        """The number of labels at the time of each current answer, by the answer's number."""
        return dict(self._rows("SELECT id, labels FROM answers"))

    # Suggestions

    def suggest(self, rows: Iterable[tuple[int, str, float]], model: str) -> None:
        """Save a model's orders: rows of item, order as text, uncertainty."""
        with self._change() as connection:
            connection.executemany(
                "INSERT OR REPLACE INTO suggestions VALUES (?, ?, ?, ?)", [(*row, model) for row in rows]
            )

    def suggestion(self, item: int) -> Suggestion | None:
        """The model's suggestion for an item, if any."""
        rows = self._rows("SELECT ranking, uncertainty, model FROM suggestions WHERE item = ?", item)
        return Suggestion(*rows[0]) if rows else None

    def suggested(self, model: str) -> set[int]:
        """The items that this model has suggestions for."""
        return {row[0] for row in self._rows("SELECT item FROM suggestions WHERE model = ?", model)}

    def forget_suggestions(self, but: str = "") -> None:
        """Delete all suggestions but those of one model."""
        with self._change() as connection:
            connection.execute("DELETE FROM suggestions WHERE model != ?", (but,))

    # Internals

    @contextlib.contextmanager
    def together(self) -> Iterator[None]:
        """Transaction: all changes inside are kept, or none."""
        with self._change():
            yield

    def _require(self, person: int) -> None:
        if not self._rows("SELECT 1 FROM people WHERE id = ?", person):
            raise DataError(f"there is no person {person}; enter a name first")

    def _item(self, row: tuple[int, str, str]) -> Item:
        try:
            # Files have infinities, JSON has none.
            return Item(row[0], row[1], json.loads(row[2], parse_constant=str))
        except (TypeError, ValueError, RecursionError):
            raise StoreError(
                f"{self.folder}: item {row[0]} is damaged: {shorten(row[2])}", "damaged"
            ) from None


_COLUMNS = "id, item, person, state, ranking, note, seconds, at"


def _bring_labels(
    connection: sqlite3.Connection, known: tuple[str, ...], wanted: tuple[str, ...] | None, folder: Path
) -> None:
    if wanted is None:
        if not known:
            raise DataError(f"{folder}: has no labels yet; give a file with one label per line")
        return
    if gone := [label for label in known if label not in wanted]:
        raise DataError(
            f"{folder}: labels {shorten(gone)} are not in the list, and answers may use them; "
            "labels can be added, not removed"
        )
    new = [label for label in wanted if label not in known]
    connection.executemany("INSERT INTO labels (label) VALUES (?)", [(label,) for label in new])
