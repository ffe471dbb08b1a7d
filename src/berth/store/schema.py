"""The tables and their versions. A new store runs through all steps, an older one through those it lacks."""

import sqlite3
from collections.abc import Sequence
from pathlib import Path

from berth.store.interface import StoreVersionError

APPLICATION_ID = 0x42657274  # "Bert", in the file's header: tells a Berth store from other SQLite files

_VERSION_1 = (
    f"PRAGMA application_id = {APPLICATION_ID}",
    # AUTOINCREMENT: numbers are never used again, also after the last rows are gone.
    """
    CREATE TABLE requests (
        seq INTEGER PRIMARY KEY AUTOINCREMENT,
        received REAL NOT NULL,
        state TEXT NOT NULL CHECK (state IN ('waiting', 'planned', 'applied', 'failed')),
        round INTEGER,  -- NULL: waits for a round to take it
        entries BLOB NOT NULL,  -- JSON, list of Entry
        decisions BLOB NOT NULL DEFAULT '[]'  -- JSON, list of Decided
    )
    """,
    "CREATE INDEX requests_by_round ON requests (round)",
    """
    CREATE TABLE rounds (
        number INTEGER PRIMARY KEY AUTOINCREMENT,
        began REAL NOT NULL,
        planned REAL,
        finished REAL,
        added INTEGER NOT NULL DEFAULT 0,
        removed INTEGER NOT NULL DEFAULT 0,
        failed INTEGER NOT NULL DEFAULT 0,
        plan BLOB
    )
    """,
    # One round at a time.
    "CREATE UNIQUE INDEX round_under_way ON rounds (finished IS NULL) WHERE finished IS NULL",
    """
    CREATE TABLE objects (
        seq INTEGER PRIMARY KEY,  -- the order in which they came
        kind TEXT NOT NULL,
        namespace TEXT NOT NULL,
        name TEXT NOT NULL,
        body BLOB NOT NULL,
        UNIQUE (kind, namespace, name)
    )
    """,
    "CREATE TABLE meta (key TEXT PRIMARY KEY, value NOT NULL) WITHOUT ROWID",
)

_VERSION_2 = (
    """
    CREATE TABLE idempotency_keys (
        key TEXT PRIMARY KEY,
        digest BLOB NOT NULL,
        received REAL NOT NULL,
        request INTEGER NOT NULL
    ) WITHOUT ROWID
    """,
    "CREATE INDEX idempotency_keys_by_age ON idempotency_keys (received)",
    "ALTER TABLE requests ADD COLUMN retry_of INTEGER",
    "ALTER TABLE requests ADD COLUMN retried_as INTEGER",
)

_VERSION_3 = (
    """
    CREATE TABLE notes (
        round INTEGER NOT NULL,
        key TEXT NOT NULL,
        body BLOB NOT NULL,  -- JSON; what it means is its writer's
        PRIMARY KEY (round, key)
    ) WITHOUT ROWID
    """,
)

MIGRATIONS: Sequence[Sequence[str]] = (_VERSION_1, _VERSION_2, _VERSION_3)
"""``MIGRATIONS[v]`` leads from version ``v`` to ``v + 1``; a new file has version 0."""


def migrate(connection: sqlite3.Connection, path: Path) -> None:
    """Bring the store to the newest version, all steps in one transaction.

    Raises
    ------
    StoreVersionError
        A newer Berth made it, or another program.
    """
    version = _version(connection)
    is_new = version == 0 and not _has_tables(connection)
    if not is_new and connection.execute("PRAGMA application_id").fetchone() != (APPLICATION_ID,):
        raise StoreVersionError(f"{path} is a SQLite file of another program, not a Berth store")
    newest = len(MIGRATIONS)
    if version > newest:
        raise StoreVersionError(
            f"store {path} has version {version}, of a newer Berth; this one reads up to version {newest}"
        )
    # Begun also with nothing to do: a file that can't be written is found at start, not by the first client.
    connection.execute("BEGIN IMMEDIATE")
    try:
        for step in MIGRATIONS[version:]:
            for statement in step:
                connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {newest}")
        connection.execute("COMMIT")
    except BaseException:
        connection.rollback()
        raise


def _version(connection: sqlite3.Connection) -> int:
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    return int(version)


def _has_tables(connection: sqlite3.Connection) -> bool:
    return connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone() is not None
