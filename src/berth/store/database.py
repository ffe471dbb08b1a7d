"""A SQLite file with transactions that threads may share: one connection writes, another reads.

Knows nothing of what the tables mean. Faults of the disk, the file or its locks become `StoreUnavailable`.
"""

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from berth.store.interface import StoreUnavailable
from berth.store.schema import migrate

# What can be wrong with the world; any other code is a mistake in Berth and passes through.
_FAULTS = {
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_CORRUPT,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_NOMEM,
    sqlite3.SQLITE_NOTADB,
    sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_PROTOCOL,
    sqlite3.SQLITE_READONLY,
}
# What the write-ahead log may keep on disk; a first start writes the whole cluster through it.
_KEPT_LOG_BYTES = 64 * 1024 * 1024


class Database:
    """The file, opened and migrated.

    Parameters
    ----------
    path
        The file; it is made where it is missing.
    timeout
        How long to wait for a lock, of another thread or another program. [s]

    Raises
    ------
    StoreVersionError
        See `berth.store.schema.migrate`.
    StoreUnavailable
        The file can't be opened, read or written.
    """

    def __init__(self, path: Path, timeout: float) -> None:
        self.path = path
        self._timeout = timeout
        self._closed = False
        self._writing = threading.Lock()
        self._reading = threading.Lock()
        with self._faults():
            self._writer = self._connect()
            try:
                # The version comes first: a file that is refused stays as it is.
                migrate(self._writer, path)
                self._writer.execute("PRAGMA journal_mode = WAL")
                self._writer.execute("PRAGMA synchronous = FULL")
                self._writer.execute(f"PRAGMA journal_size_limit = {_KEPT_LOG_BYTES}")
                self._reader = self._connect()
            except BaseException:
                self._writer.close()
                raise

    def _connect(self) -> sqlite3.Connection:
        return sqlite3.connect(
            self.path, timeout=self._timeout, isolation_level=None, check_same_thread=False
        )

    @contextmanager
    def write(self) -> Iterator[sqlite3.Connection]:
        """Run a block as one transaction: on disk when the block is left, undone when it raises."""
        with self._held(self._writing), self._faults():
            connection = self._writer
            if connection.in_transaction:  # an earlier rollback failed with its disk
                connection.rollback()
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                self._undo(connection)
                raise

    @contextmanager
    def read(self) -> Iterator[sqlite3.Connection]:
        """Run a block that sees one committed state throughout. It does not wait for a writer."""
        with self._held(self._reading), self._faults():
            self._reader.execute("BEGIN")
            try:
                yield self._reader
            finally:
                self._undo(self._reader)

    def stream(self, query: str) -> Iterator[tuple[Any, ...]]:
        """Iterate over more rows than should be held, of one committed state; it holds up nobody."""
        if self._closed:
            raise StoreUnavailable(self.path, "it is closed")
        with self._faults():
            connection = self._connect()
            try:
                yield from connection.execute(query)
            finally:
                connection.close()

    def truncate_log(self) -> None:
        """Move what the write-ahead log holds into the file, if that can be done now; worth it after bulk."""
        # What was committed stays committed, so that a failure here is nobody's business.
        with suppress(StoreUnavailable), self._held(self._writing), self._faults():
            self._writer.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    @property
    def is_closed(self) -> bool:
        """Whether it was closed."""
        return self._closed

    def close(self) -> None:
        """Wait for the transactions under way, then close; a second time does nothing."""
        with self._writing, self._reading:
            self._closed = True
            self._reader.close()
            self._writer.close()

    @contextmanager
    def _held(self, lock: threading.Lock) -> Iterator[None]:
        # Waiting has an end: behind a file locked from outside, threads would else queue up for minutes.
        if not lock.acquire(timeout=self._timeout):
            raise StoreUnavailable(self.path, "it is busy")
        try:
            if self._closed:
                raise StoreUnavailable(self.path, "it is closed")
            yield
        finally:
            lock.release()

    @contextmanager
    def _faults(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.DatabaseError as error:
            # The low byte is the primary code; the rest tells kinds of I/O errors and the like apart.
            if getattr(error, "sqlite_errorcode", 0) & 0xFF not in _FAULTS:
                raise
            raise StoreUnavailable(self.path, str(error)) from error

    @staticmethod
    def _undo(connection: sqlite3.Connection) -> None:
        # Where this fails, what led here says more; the next transaction tries again.
        with suppress(sqlite3.DatabaseError):
            connection.rollback()
