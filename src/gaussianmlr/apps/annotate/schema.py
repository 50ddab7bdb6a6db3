"""The tables of a store, and the check that a file has them."""

from __future__ import annotations

import functools
import sqlite3
from pathlib import Path

from gaussianmlr.errors import DataError, shorten

FILE = "answers.sqlite"
FORMAT = "gaussianmlr-annotations"
VERSION = 1

# History only grows: the answer of a person to an item is their last row that was not undone, so no
# two people change the same row. Tokens make a request that is sent twice count once.
TABLES = """
CREATE TABLE about (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE labels (place INTEGER PRIMARY KEY, label TEXT NOT NULL UNIQUE);
CREATE TABLE items (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    content TEXT NOT NULL,
    present INTEGER NOT NULL DEFAULT 1
);
CREATE TABLE people (id INTEGER PRIMARY KEY, name TEXT NOT NULL, known_as TEXT NOT NULL UNIQUE);
CREATE TABLE history (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    item INTEGER NOT NULL REFERENCES items (id),
    person INTEGER NOT NULL REFERENCES people (id),
    state TEXT NOT NULL CHECK (state IN ('ranked', 'skipped')),
    ranking TEXT NOT NULL,
    labels INTEGER NOT NULL,
    note TEXT NOT NULL,
    seconds REAL NOT NULL,
    at REAL NOT NULL,
    token TEXT NOT NULL UNIQUE,
    undone INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX history_of_answers ON history (item, person, id) WHERE undone = 0;
CREATE INDEX history_of_people ON history (person, id) WHERE undone = 0;
CREATE TABLE suggestions (
    item INTEGER PRIMARY KEY REFERENCES items (id),
    ranking TEXT NOT NULL,
    uncertainty REAL NOT NULL,
    model TEXT NOT NULL
);
CREATE VIEW answers AS
    SELECT * FROM history AS h WHERE undone = 0 AND NOT EXISTS (
        SELECT 1 FROM history AS n
        WHERE n.item = h.item AND n.person = h.person AND n.id > h.id AND n.undone = 0
    );
"""


def create_tables(connection: sqlite3.Connection) -> None:
    """Make the tables in an empty file; another process may do so at the same moment."""
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("BEGIN IMMEDIATE")
    try:
        if is_empty(connection):
            for statement in TABLES.split(";\n"):
                connection.execute(statement)
            rows = [("format", FORMAT), ("version", str(VERSION))]
            connection.executemany("INSERT INTO about VALUES (?, ?)", rows)
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def is_empty(connection: sqlite3.Connection) -> bool:
    """Whether the file has no tables."""
    return bool(connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0)


def check_tables(connection: sqlite3.Connection, file: Path) -> None:
    """Refuse a file that is foreign, newer or damaged; nothing is written to it."""
    ours, there = _expected(), _objects(connection)
    # Compared before it is read: a view of the same name could run for ever.
    about = {}
    if there.get("about") == ours["about"]:
        about = dict(connection.execute("SELECT name, value FROM about WHERE name IN ('format', 'version')"))
    if about.get("format") != FORMAT:
        raise DataError(f"{file}: is no store of answers; expected one that `gmlr annotate` made")
    if about.get("version") != str(VERSION):
        version = shorten(about.get("version"))
        raise DataError(f"{file}: has version {version}, and this gaussianmlr reads {VERSION}; upgrade it")
    different = [name for name, made in ours.items() if there.get(name) != made]
    # A trigger could change answers when they are saved.
    different += [name for name, (kind, _) in there.items() if kind == "trigger"]
    if different:
        raise DataError(f"{file}: damaged or changed in {shorten(different)}; restore a copy of it")
    # SQLite has no checksums, but this finds pages that are cut, zeroed or of something else.
    problem = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
    if problem != "ok":
        raise DataError(
            f"{file}: is damaged: {problem}; restore a copy, or see what `sqlite3 .recover` saves"
        )


def _objects(connection: sqlite3.Connection) -> dict[str, tuple[str, str]]:
    """Kind and definition of all that a file defines, by name."""
    rows = connection.execute(
        "SELECT name, type, sql FROM sqlite_master WHERE name NOT LIKE 'sqlite\\_%' ESCAPE '\\'"
    )
    return {name: (kind, sql) for name, kind, sql in rows}


@functools.cache
def _expected() -> dict[str, tuple[str, str]]:
    connection = sqlite3.connect(":memory:")
    try:
        connection.executescript(TABLES)
        return _objects(connection)
    finally:
        connection.close()
