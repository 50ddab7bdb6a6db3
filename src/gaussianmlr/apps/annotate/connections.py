"""Connections to the file of a store: one for writing, and a pool for reading."""

from __future__ import annotations

import contextlib
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

from gaussianmlr.apps.annotate.schema import FILE, check_tables, create_tables, is_empty
from gaussianmlr.errors import DataError, shorten

Cause = Literal["locked", "full", "damaged"]
_LOCKED = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL)
_FULL = (
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_PERM,
)
_KEPT = 8  # idle connections


class StoreError(DataError):
    """A store that cannot be used at the moment.

    Attributes
    ----------
    cause : {"locked", "full", "damaged"}
        Another program holds the lock; the disk is full, read-only or failing; the file is not a valid store,
        or is missing.
    """

    def __init__(self, message: str, cause: Cause) -> None:
        super().__init__(message)
        self.cause: Cause = cause


class Connections:
    """Open connections to the file of a store.

    Readers never wait for writers: each has a connection of its own, and SQLite's log of changes (WAL) shows
    them what was last committed.

    Parameters
    ----------
    folder : pathlib.Path
        The folder of the file.
    create : bool
        Create the file if it does not exist.
    patience : float
        Seconds to wait for a lock.
    """

    def __init__(self, folder: Path, *, create: bool, patience: float) -> None:
        self.file = folder / FILE
        self._patience = patience
        _check_place(folder, self.file, create)
        with usable(self.file):
            folder.mkdir(parents=True, exist_ok=True)
            self._writer = self._connect()
            try:
                if create and is_empty(self._writer):
                    create_tables(self._writer)
                check_tables(self._writer, self.file)
                self._writer.execute("PRAGMA journal_mode = WAL")  # only now: other files stay unchanged
                self._identity = self._identify()
            except BaseException:
                self._writer.close()
                raise
        self._writing = threading.Lock()
        self._owner: int | None = None  # the thread that is changing the store
        self._idle: list[sqlite3.Connection] = []
        self._closed = False

    def close(self) -> None:
        """Close all connections."""
        with self._writing:
            self._closed = True
            for connection in (*self._idle, self._writer):
                connection.close()
            self._idle.clear()

    def rows(self, query: str, *values: object) -> list[Any]:
        """The rows of a query; within `change` they include the thread's own changes."""
        with usable(self.file):
            if self._owner == threading.get_ident():
                return self._writer.execute(query, values).fetchall()
            with self._reader() as connection:
                return connection.execute(query, values).fetchall()

    @contextlib.contextmanager
    def change(self) -> Iterator[sqlite3.Connection]:
        """Transaction: all changes inside are on the disk at the end, or none."""
        if self._owner == threading.get_ident():
            yield self._writer
            return
        if not self._writing.acquire(timeout=self._patience):
            raise locked(self.file)
        try:
            with usable(self.file):
                self._begin()
                self._owner = threading.get_ident()
                try:
                    yield self._writer
                    self._writer.execute("COMMIT")
                except BaseException:
                    self._roll_back()
                    raise
        finally:
            self._owner = None
            self._writing.release()

    def _begin(self) -> None:
        if self._closed:
            raise DataError(f"{self.file}: the store is closed")
        if self._identify() != self._identity:
            # SQLite would keep writing to the deleted file.
            raise StoreError(f"{self.file}: was replaced by another file; start again", "damaged")
        if self._writer.in_transaction:  # an earlier rollback failed
            self._writer.execute("ROLLBACK")
        self._writer.execute("BEGIN IMMEDIATE")

    def _roll_back(self) -> None:
        with contextlib.suppress(sqlite3.Error):
            if self._writer.in_transaction:  # an error of SQLite may have ended it
                self._writer.execute("ROLLBACK")

    def _identify(self) -> tuple[int, int]:
        state = self.file.stat()
        return state.st_dev, state.st_ino

    @contextlib.contextmanager
    def _reader(self) -> Iterator[sqlite3.Connection]:
        if self._closed:
            raise DataError(f"{self.file}: the store is closed")
        try:
            connection = self._idle.pop()
        except IndexError:
            connection = self._connect()
            connection.execute("PRAGMA query_only = ON")
        try:
            yield connection
        except BaseException:
            connection.close()
            raise
        if self._closed or len(self._idle) >= _KEPT:
            connection.close()
        else:
            self._idle.append(connection)

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self.file, timeout=self._patience, isolation_level=None, check_same_thread=False
        )
        # FULL makes every commit wait until the disk has it; WAL's default would lose the last ones.
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA trusted_schema = OFF")  # the file may come from anybody
        connection.execute("PRAGMA cell_size_check = ON")
        return connection


def _check_place(folder: Path, file: Path, create: bool) -> None:
    with usable(file):
        if file.is_file():
            return
        if file.exists():
            raise DataError(f"{file}: is not a regular file; expected a store of answers")
        if not create:
            raise DataError(f"{folder}: no store of answers; expected a folder that `gmlr annotate` made")
        if folder.exists() and not folder.is_dir():
            raise DataError(f"{folder}: is a file; expected a folder, or a name that is free")
        # Another process may be creating the same store.
        if folder.is_dir() and any(not one.name.startswith(FILE) for one in folder.iterdir()):
            raise DataError(f"{folder} is not empty and holds no store of answers; choose another folder")


@contextlib.contextmanager
def usable(file: Path) -> Iterator[None]:
    """Turn errors of SQLite and of the system into errors that name the file and what to do."""
    try:
        yield
    except sqlite3.Error as error:
        raise _translated(error, file) from None
    except FileNotFoundError:
        raise StoreError(f"{file}: is gone", "damaged") from None
    except OSError as error:
        raise StoreError(f"{file}: cannot be used: {error.strerror or error}", "full") from None
    except OverflowError:
        raise DataError("a number that needs more than 64 bits; expected one that fits") from None
    except UnicodeEncodeError as error:
        text = shorten(error.object[max(0, error.start - 20) : error.end + 20])
        raise DataError(f"{text} holds half of a character; expected Unicode text") from None


def locked(file: Path) -> StoreError:
    """The error of a store that another program has locked."""
    return StoreError(f"{file}: is locked by another program; try again in a moment", "locked")


def _translated(error: sqlite3.Error, file: Path) -> StoreError:
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF  # without SQLite's extended codes
    if code in _LOCKED:
        return locked(file)
    if code == sqlite3.SQLITE_FULL:
        return StoreError(f"{file}: the disk is full; free some space, then try again", "full")
    if code in _FULL:
        what = f"cannot be written ({error}); is the disk full or read-only?"
        return StoreError(f"{file}: {what}", "full")
    return StoreError(f"{file}: cannot be used as a store of answers: {error}", "damaged")
