from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

from berth.store.interface import Accepted, Entry, IdempotencyConflict, Store, StoreUnavailable
from berth.store.sqlite import SqliteStore
from tests.store.builders import NOON, a_key, an_entry, run_round

HOUR = 3600.0


def test_a_submitted_list_waits_with_all_that_was_said(store: Store) -> None:
    entries = (Entry("add", "shop", "web", 3, "deployment/web"), Entry("remove", "shop", "bücher", 1))
    accepted = store.submit(entries, NOON)
    assert accepted == Accepted("r-000001", repeated=False)
    request = store.request("r-000001")
    assert request is not None
    assert (request.received, request.state, request.entries, request.round) == (
        NOON,
        "waiting",
        entries,
        None,
    )
    assert store.waiting_count() == 1


def test_it_is_there_after_a_restart(path: Path) -> None:
    with SqliteStore(path) as store:
        store.submit([an_entry()], NOON)
    with SqliteStore(path) as store:
        assert store.request("r-000001") is not None
        assert store.submit([an_entry()], NOON).request == "r-000002"


@pytest.mark.parametrize(
    "unknown",
    [
        "r-000002",
        "r-1",
        "r-0000001",
        "r-",
        "",
        "r-" + "9" * 30,
        "r-00000\u0661",
        "r-000001\n",
        "1",
    ],
)
def test_an_unknown_id_is_no_request(store: Store, unknown: str) -> None:
    store.submit([an_entry()], NOON)
    assert store.request(unknown) is None


def test_ids_go_on_beyond_six_digits(path: Path) -> None:
    with SqliteStore(path) as store:
        store.submit([an_entry()], NOON)
        with store._database.write() as db:
            db.execute("UPDATE sqlite_sequence SET seq = 999999 WHERE name = 'requests'")
        assert store.submit([an_entry()], NOON).request == "r-1000000"
        assert store.request("r-1000000") is not None


def test_requests_are_listed_newest_first_and_by_state(store: Store) -> None:
    store.submit([an_entry()], NOON)
    run_round(store)
    for _ in range(3):
        store.submit([an_entry()], NOON)
    assert [r.id for r in store.requests()] == ["r-000004", "r-000003", "r-000002", "r-000001"]
    assert [r.id for r in store.requests("waiting", limit=2)] == ["r-000004", "r-000003"]
    assert [r.id for r in store.requests("applied")] == ["r-000001"]
    assert store.requests("failed") == []


def test_a_repeated_key_gives_the_first_request_and_queues_nothing(store: Store) -> None:
    first = store.submit([an_entry()], NOON, a_key())
    assert store.submit([an_entry()], NOON + 1, a_key()) == Accepted(first.request, repeated=True)
    assert store.recall(a_key(), NOON + 1) == Accepted(first.request, repeated=True)
    assert store.waiting_count() == 1


def test_an_unknown_key_recalls_nothing(store: Store) -> None:
    assert store.recall(a_key(), NOON) is None


def test_a_key_with_another_body_is_a_conflict(store: Store) -> None:
    store.submit([an_entry()], NOON, a_key(body="one"))
    with pytest.raises(IdempotencyConflict, match="'k' was used before with a different body"):
        store.submit([an_entry()], NOON, a_key(body="two"))
    with pytest.raises(IdempotencyConflict):
        store.recall(a_key(body="two"), NOON)
    assert store.waiting_count() == 1


def test_a_key_is_forgotten_after_its_lifetime(path: Path) -> None:
    with SqliteStore(path, key_lifetime=24 * HOUR) as store:
        store.submit([an_entry()], NOON, a_key(body="one"))
        assert store.submit([an_entry()], NOON + 24 * HOUR - 1, a_key(body="one")).repeated
        assert store.recall(a_key(body="two"), NOON + 24 * HOUR) is None
        assert not store.submit([an_entry()], NOON + 24 * HOUR, a_key(body="two")).repeated


def test_forgotten_keys_leave_the_file(path: Path) -> None:
    with SqliteStore(path, key_lifetime=HOUR) as store:
        for n in range(10):
            store.submit([an_entry()], NOON + n * HOUR, a_key(f"k{n}"))
        with store._database.read() as db:
            assert db.execute("SELECT key FROM idempotency_keys").fetchall() == [("k9",)]


def test_threads_that_post_one_key_at_once_queue_one_request(store: Store) -> None:
    n_threads = 8
    start = Barrier(n_threads)

    def post(key: str) -> Accepted:
        start.wait()
        return store.submit([an_entry()], NOON, a_key(key))

    with ThreadPoolExecutor(n_threads) as pool:
        for n in range(10):
            answers = list(pool.map(post, [f"key {n}"] * n_threads))
            assert len({answer.request for answer in answers}) == 1
            assert sum(not answer.repeated for answer in answers) == 1
    assert store.waiting_count() == 10


def test_threads_submit_while_rounds_run(store: Store) -> None:
    def post(_: int) -> str:
        return store.submit([an_entry()], NOON).request

    with ThreadPoolExecutor(4) as pool:
        futures = [pool.submit(post, n) for n in range(60)]
        while store.waiting_count() or not all(future.done() for future in futures):
            if store.waiting_count():
                run_round(store)
        ids = [future.result() for future in futures]
    assert sorted(ids) == [f"r-{n:06d}" for n in range(1, 61)]
    taken = [
        i for summary in store.rounds() if (record := store.round(summary.number)) for i in record.requests
    ]
    assert sorted(taken) == sorted(ids)
    assert {request.state for request in store.requests()} == {"applied"}


def test_a_closed_store_says_so(path: Path) -> None:
    store = SqliteStore(path)
    objects = store.objects()
    store.close()
    for use in (store.waiting_count, store.reset, lambda: next(objects)):
        with pytest.raises(StoreUnavailable, match="it is closed"):
            use()
