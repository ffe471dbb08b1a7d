"""A store that can't be written says so, changes nothing, and works again when the cause has gone."""

import resource
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path

import pytest

from berth.store.interface import RoundSummary, StoreUnavailable
from berth.store.sqlite import SqliteStore
from tests.store.builders import NOON, a_change, a_key, a_result, all_applied, an_entry, an_object

Fault = Callable[[SqliteStore], AbstractContextManager[None]]


def set_pragma(store: SqliteStore, pragma: str) -> None:
    store._database._writer.execute(f"PRAGMA {pragma}").fetchall()


@contextmanager
def disk_full(store: SqliteStore) -> Iterator[None]:
    set_pragma(store, "max_page_count = 1")  # SQLite takes the present size for it
    try:
        yield
    finally:
        set_pragma(store, "max_page_count = 1000000")


@contextmanager
def read_only(store: SqliteStore) -> Iterator[None]:
    set_pragma(store, "query_only = 1")
    try:
        yield
    finally:
        set_pragma(store, "query_only = 0")


@contextmanager
def locked_by_another(store: SqliteStore) -> Iterator[None]:
    with closing(sqlite3.connect(store._database.path, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        yield


@contextmanager
def files_at_their_limit(store: SqliteStore) -> Iterator[None]:
    size = Path(f"{store._database.path}-wal").stat().st_size
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@contextmanager
def held_by_another_thread(store: SqliteStore) -> Iterator[None]:
    leave, entered = threading.Event(), threading.Event()

    def hold() -> None:
        with store._database.write():
            entered.set()
            leave.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    entered.wait()
    try:
        yield
    finally:
        leave.set()
        thread.join()


FAULTS = [
    (disk_full, "database or disk is full"),
    (read_only, "attempt to write a readonly database"),
    (locked_by_another, "database is locked"),
    (files_at_their_limit, "disk I/O error"),
    (held_by_another_thread, "it is busy"),
]


@pytest.fixture
def store(path: Path) -> Iterator[SqliteStore]:
    with SqliteStore(path, timeout=0.05) as opened:
        yield opened


@pytest.mark.parametrize(("fault", "reason"), FAULTS)
def test_a_list_is_not_accepted(store: SqliteStore, fault: Fault, reason: str) -> None:
    # Larger than the free room in the file's pages.
    entries = [an_entry()] * 1000
    store.submit([an_entry()], NOON)
    with fault(store):
        for _ in range(2):
            with pytest.raises(StoreUnavailable) as caught:
                store.submit(entries, NOON, a_key())
            assert caught.value.reason == reason
            assert str(store._database.path) in str(caught.value)
        assert store.waiting_count() == 1
    accepted = store.submit(entries, NOON, a_key())
    assert not accepted.repeated
    assert store.waiting_count() == 2


@pytest.mark.parametrize(("fault", "reason"), FAULTS)
def test_a_round_is_finished_whole_or_not_at_all(store: SqliteStore, fault: Fault, reason: str) -> None:
    store.save_objects([an_object("a")], "snapshot")
    store.submit([an_entry()], NOON)
    taken = store.begin_round(NOON)
    assert taken is not None
    store.record_plan(1, b"plan", NOON)
    planned = store.unfinished_round()
    result = a_result(
        all_applied(taken), plan=b"x" * 100_000, tie_counter=3, changes=[a_change("b", "y" * 100_000)]
    )
    with fault(store):
        with pytest.raises(StoreUnavailable) as caught:
            store.finish_round(1, result, NOON)
        assert caught.value.reason == reason
        assert store.unfinished_round() == planned
        assert list(store.objects()) == [an_object("a")]
        assert store.tie_counter() == 0
    store.finish_round(1, result, NOON)
    assert store.rounds() == [RoundSummary(1, NOON, NOON, NOON, 1, 0, 0)]
    assert len(list(store.objects())) == 2


def test_a_store_locked_at_start_is_told(path: Path) -> None:
    SqliteStore(path).close()
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(StoreUnavailable, match="database is locked"):
            SqliteStore(path, timeout=0.05)
    SqliteStore(path).close()


def test_a_damaged_file_is_told(path: Path) -> None:
    with SqliteStore(path) as store:
        store.save_objects([an_object(f"pod-{n}", "x" * 500) for n in range(200)], "snapshot")
    content = bytearray(path.read_bytes())
    content[4096:] = b"\xff" * (len(content) - 4096)
    path.write_bytes(content)
    with pytest.raises(StoreUnavailable, match="malformed"), SqliteStore(path) as store:
        store.submit([an_entry()], NOON)


def test_a_mistake_in_berth_is_no_fault_of_the_disk(store: SqliteStore) -> None:
    with pytest.raises(sqlite3.OperationalError, match="no such table"), store._database.write() as db:
        db.execute("SELECT * FROM nonsense")
    store.submit([an_entry()], NOON)
