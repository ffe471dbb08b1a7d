import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from berth.store import schema
from berth.store.interface import StoreVersionError
from berth.store.sqlite import SqliteStore
from tests.store.builders import NOON, a_key, an_entry, run_round


@contextmanager
def raw(path: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        yield connection


def make_version_1(path: Path) -> None:
    """A store as version 1 left it: one finished round, and a request that waits."""
    entries = b'[{"operation":"add","namespace":"shop","service":"web","number":2,"workload":null}]'
    with raw(path) as db:
        for statement in schema.MIGRATIONS[0]:
            db.execute(statement)
        db.execute("PRAGMA user_version = 1")
        db.execute("INSERT INTO rounds (began, planned, finished, added, plan) VALUES (1, 2, 3, 2, x'7b7d')")
        db.execute(
            "INSERT INTO requests (received, state, round, entries) VALUES (1, 'applied', 1, ?)", (entries,)
        )
        db.execute("INSERT INTO requests (received, state, entries) VALUES (4, 'waiting', ?)", (entries,))
        db.execute("INSERT INTO meta VALUES ('tieCounter', 7)")


def test_a_new_store_has_the_newest_version(path: Path) -> None:
    SqliteStore(path).close()
    with raw(path) as db:
        assert db.execute("PRAGMA user_version").fetchone() == (len(schema.MIGRATIONS),)


def test_an_older_store_is_migrated_and_goes_on(path: Path) -> None:
    make_version_1(path)
    with SqliteStore(path) as store:
        assert [(r.id, r.state, r.entries) for r in store.requests()] == [
            ("r-000002", "waiting", (an_entry(number=2),)),
            ("r-000001", "applied", (an_entry(number=2),)),
        ]
        assert store.tie_counter() == 7
        assert store.submit([an_entry()], NOON, a_key()).request == "r-000003"
        assert store.submit([an_entry()], NOON, a_key()).repeated
        assert run_round(store) == 2


def test_a_migrated_store_has_the_tables_of_a_new_one(path: Path, tmp_path: Path) -> None:
    make_version_1(path)
    new = tmp_path / "new.db"
    for each in (path, new):
        SqliteStore(each).close()
    with raw(path) as old_db, raw(new) as new_db:
        query = "SELECT type, name, sql FROM sqlite_master ORDER BY name"
        assert old_db.execute(query).fetchall() == new_db.execute(query).fetchall()


def test_a_migration_that_fails_changes_nothing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_version_1(path)
    with monkeypatch.context() as patch:
        patch.setattr(schema, "MIGRATIONS", (*schema.MIGRATIONS, ("CREATE TABLE new (a)", "nonsense")))
        with pytest.raises(sqlite3.OperationalError, match="syntax error"):
            SqliteStore(path)
    with raw(path) as db:
        assert db.execute("PRAGMA user_version").fetchone() == (1,)
        assert (
            db.execute("SELECT 1 FROM sqlite_master WHERE name IN ('new', 'idempotency_keys')").fetchall()
            == []
        )
    SqliteStore(path).close()


def test_a_newer_store_is_refused_and_left_alone(path: Path) -> None:
    SqliteStore(path).close()
    with raw(path) as db:
        db.execute("PRAGMA user_version = 99")
    before = path.read_bytes()
    with pytest.raises(
        StoreVersionError, match=r"berth\.db has version 99, of a newer Berth; this one reads"
    ):
        SqliteStore(path)
    assert path.read_bytes() == before


@pytest.mark.parametrize("version", [0, 1, 2])
def test_another_programs_file_is_refused_and_left_alone(path: Path, version: int) -> None:
    with raw(path) as db:
        db.execute("CREATE TABLE requests (mine)")
        db.execute(f"PRAGMA user_version = {version}")
    before = path.read_bytes()
    with pytest.raises(StoreVersionError, match="of another program, not a Berth store"):
        SqliteStore(path)
    assert path.read_bytes() == before


def test_an_empty_file_becomes_a_store(path: Path) -> None:
    path.touch()
    SqliteStore(path).close()


def test_every_commit_is_synced(path: Path) -> None:
    with SqliteStore(path) as store, store._database.write() as db:
        assert db.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert db.execute("PRAGMA synchronous").fetchone() == (2,)
