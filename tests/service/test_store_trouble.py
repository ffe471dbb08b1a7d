"""A store that can't be written: 503, never ``isSucceed: true``, and nothing half done."""

import sqlite3
from pathlib import Path

import pytest

from berth.service import loop
from berth.store.interface import StoreUnavailable
from berth.store.sqlite import SqliteStore
from tests.service.worlds import a_store, adding, serving, until


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop, "RETRY_SECONDS", 0.01)


class Locked:
    """Another program that holds the file's write lock."""

    def __init__(self, path: Path) -> None:
        self._connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)

    def __enter__(self) -> "Locked":
        self._connection.execute("BEGIN IMMEDIATE")
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()


def test_a_locked_store_answers_503_until_it_is_free(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "berth.db", timeout=0.1)
    with serving(tmp_path, store=store) as client:
        with Locked(tmp_path / "berth.db"):
            answer = client.schedule(adding())
            assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
            assert answer.json()["isSucceed"] is False
            assert "is not available" in answer.json()["message"]
            ready = client.get("/readyz")
            assert ready.status_code == 503
            assert "is not available" in ready.json()["reasons"][0]
            assert client.get("/healthz").status_code == 200
            assert client.post("/plan", json={"podList": [adding()]}).status_code == 200
        assert store.waiting_count() == 0
        assert client.schedule(adding()).status_code == 200
        assert client.get("/readyz").status_code == 200


def test_a_full_disk_answers_503(tmp_path: Path) -> None:
    store = a_store(tmp_path)
    with serving(tmp_path, store=store) as client:
        writer = store._database._writer
        pages = writer.execute("PRAGMA page_count").fetchone()[0]
        writer.execute(f"PRAGMA max_page_count = {pages}")
        answers = [client.schedule(*[adding()] * 3000) for _ in range(3)]
        assert answers[-1].status_code == 503
        assert answers[-1].json()["isSucceed"] is False
        assert len(store.requests()) == sum(answer.status_code == 200 for answer in answers)
        writer.execute("PRAGMA max_page_count = 1000000")
        assert client.settle(adding())["state"] == "applied"


@pytest.mark.parametrize("method", ["begin_round", "record_plan", "finish_round"])
@pytest.mark.parametrize("reported_only", [False, True])
def test_a_round_is_written_down_once_the_store_is_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str, reported_only: bool
) -> None:
    """Also when the commit had gone through, and only its report was bad."""
    store = a_store(tmp_path)
    original, calls = getattr(store, method), 0

    def failing(*args: object) -> object:
        nonlocal calls
        calls += 1
        if calls > 3:
            return original(*args)
        if reported_only and calls == 1:
            original(*args)
        raise StoreUnavailable("berth.db", "disk I/O error")

    monkeypatch.setattr(store, method, failing)
    with serving(tmp_path, store=store) as client:
        request = client.settle(adding("2"))
        assert (request["state"], request["round"], len(request["decisions"])) == ("applied", 1, 2)
        deployment = client.service.rounds.cluster.objects.deployments.get("shop", "web")
        assert deployment is not None
        assert deployment.spec.replicas == 4
        assert until(lambda: client.get("/readyz").status_code == 200)


def test_a_service_ends_although_the_store_does_not_come_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = a_store(tmp_path)

    def never(*_: object) -> None:
        raise StoreUnavailable("berth.db", "disk I/O error")

    with monkeypatch.context() as patched:
        patched.setattr(store, "finish_round", never)
        with serving(tmp_path, store=store) as client:
            client.schedule(adding("2"))
            until(lambda: "disk I/O error" in client.get("/readyz").text)
            assert client.get("/requests/r-000001").json()["state"] == "planned"
    with serving(tmp_path) as client:
        assert client.ended("r-000001")["state"] == "applied"
        assert len(client.service.rounds.cluster.pods) == 5


def test_a_round_that_can_not_be_written_down_is_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = a_store(tmp_path)
    original, calls = store.finish_round, 0

    def broken(*args: object) -> None:
        nonlocal calls
        calls += 1
        if calls == 1:
            raise ZeroDivisionError("a mistake of ours")
        original(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(store, "finish_round", broken)
    with serving(tmp_path, store=store) as client:
        assert client.settle(adding("2"))["state"] == "failed"
        assert len(client.service.rounds.cluster.pods) == 3
        assert client.settle(adding("2"))["state"] == "applied"
