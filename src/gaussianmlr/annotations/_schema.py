"""The file that answers are kept in: its tables, and how it is opened."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from gaussianmlr.errors import DataError

FILE = "answers.sqlite"
FORMAT = "gaussianmlr-annotations"
VERSION = 1

# History only grows: the answer of a person to an item is their last row that was not undone, so that no
# two people can touch the same row. A token makes a request that is sent twice count once.
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


def connect(folder: Path, *, create: bool) -> sqlite3.Connection:
    """Open the store in a folder; one that is not there is made, if asked to."""
    file = folder / FILE
    if not file.is_file():
        if not create:
            raise DataError(f"{folder}: no store of answers; expected a folder that `gmlr annotate` made")
        if folder.exists() and not folder.is_dir():
            raise DataError(f"{folder}: is a file; expected a folder, or a name that is free")
        # Another process may make the same store at this moment.
        if folder.is_dir() and any(not one.name.startswith(FILE) for one in folder.iterdir()):
            raise DataError(f"{folder} is not empty and holds no store of answers; choose another folder")
        folder.mkdir(parents=True, exist_ok=True)
    with readable(file):
        connection = sqlite3.connect(file, timeout=30, isolation_level=None, check_same_thread=False)
        try:
            _prepare(connection, file, create)
        except BaseException:
            connection.close()
            raise
    return connection


def _prepare(connection: sqlite3.Connection, file: Path, create: bool) -> None:
    connection.execute("PRAGMA journal_mode = WAL")
    # FULL makes every commit wait until the disk has it; WAL's default would lose the last ones.
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute("BEGIN IMMEDIATE")
    try:
        there = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        if there == 0 and create:
            for statement in TABLES.split(";\n"):
                connection.execute(statement)
            rows = [("format", FORMAT), ("version", str(VERSION))]
            connection.executemany("INSERT INTO about VALUES (?, ?)", rows)
        _check(connection, file)
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise


def _check(connection: sqlite3.Connection, file: Path) -> None:
    tables = {row[0] for row in connection.execute("SELECT name FROM sqlite_master")}
    about = dict(connection.execute("SELECT name, value FROM about")) if "about" in tables else {}
    if about.get("format") != FORMAT:
        raise DataError(f"{file}: is no store of answers; expected one that `gmlr annotate` made")
    if about.get("version") != str(VERSION):
        raise DataError(f"{file}: has version {about.get('version')}, and this gaussianmlr reads {VERSION}")


@contextlib.contextmanager
def readable(file: Path) -> Iterator[None]:
    """Errors of SQLite as errors that name the file."""
    try:
        yield
    except sqlite3.Error as error:
        raise DataError(f"{file}: cannot be used as a store of answers: {error}") from None
