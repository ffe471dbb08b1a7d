"""From a posted list to a changed cluster, and over restarts."""

import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from berth.cluster.cluster import Cluster
from berth.service.embedded import EmbeddedCluster
from berth.service.origin import recorded
from berth.service.results import changes_of
from berth.sources.writer import Row, cluster_objects, load_objects
from berth.store.interface import Entry, OpenRound
from tests.cli import worlds as snapshots
from tests.service.worlds import (
    NOON,
    Client,
    a_shop,
    a_store,
    adding,
    an_origin,
    removing,
    serving,
    settings_with,
    until,
)


def pods_of(client: Client, service: str = "web") -> list[str]:
    pods = client.service.rounds.cluster.pods
    return sorted(name for name in pods.names if name.startswith(f"{service}-"))


def replicas(cluster: Cluster, name: str = "web") -> tuple[int | None, int | None]:
    """Of the Deployment, and of its ReplicaSet."""
    deployment = cluster.objects.deployments.get("shop", name)
    replica_set = cluster.objects.replica_sets.get("shop", f"{name}-1")
    assert deployment is not None
    assert replica_set is not None
    return deployment.spec.replicas, replica_set.spec.replicas


def stored(folder: Path) -> Cluster:
    with a_store(folder) as store:
        return load_objects(store.objects())


def contents(cluster: Cluster) -> list[Row]:
    """All objects as they come out of a store."""
    return sorted(cluster_objects(load_objects(cluster_objects(cluster))))


def test_pods_are_added_and_replicas_follow(client: Client) -> None:
    request = client.settle(adding("3"))
    assert (request["state"], request["round"]) == ("applied", 1)
    created = [decision["pod"] for decision in request["decisions"]]
    assert len(set(created)) == 3
    assert set(created) < set(pods_of(client))
    assert {decision["node"] for decision in request["decisions"]} <= {"n1", "n2", "n3"}
    assert {decision["reason"] for decision in request["decisions"]} == {None}
    assert replicas(client.service.rounds.cluster) == (5, 5)


def test_pods_are_removed(client: Client) -> None:
    request = client.settle(removing("2"))
    assert {decision["pod"] for decision in request["decisions"]} == {"web-1-a", "web-1-b"}
    assert pods_of(client) == []
    assert replicas(client.service.rounds.cluster) == (0, 0)


def test_a_stateful_set_gets_the_next_ordinal(client: Client) -> None:
    request = client.settle(adding("2", "shop/db"))
    assert [decision["pod"] for decision in request["decisions"]] == ["db-1", "db-2"]
    request = client.settle(removing("1", "shop/db"))
    assert [decision["pod"] for decision in request["decisions"]] == ["db-2"]


def test_what_was_done_in_part_is_applied_with_its_reasons(client: Client) -> None:
    request = client.settle(removing("3"))
    assert request["state"] == "applied"
    reasons = [decision["reason"] for decision in request["decisions"]]
    assert reasons == [None, None, "service shop/web has no pod left to remove"]


def test_a_request_of_which_nothing_could_be_done_has_failed(client: Client) -> None:
    client.settle(removing("2"))
    request = client.settle(removing("1"))
    assert request["state"] == "failed"
    assert client.get("/rounds/2").json()["failed"] == 1


def test_what_does_not_fit_fails_with_the_reasons(client: Client) -> None:
    request = client.settle(adding("30"))
    reasons = Counter(decision["reason"] for decision in request["decisions"])
    assert reasons["0/3 nodes are available: 3 Insufficient cpu."] == sum(reasons.values()) - reasons[None]


def test_a_pod_that_stays_pending_is_made_where_the_settings_want_it(tmp_path: Path) -> None:
    with serving(tmp_path, settings=settings_with(module__onUnschedulable="pending")) as client:
        request = client.settle(adding("30"))
        pending = [decision for decision in request["decisions"] if decision["reason"]]
        assert pending
        assert all(decision["pod"] and decision["node"] is None for decision in pending)
        assert replicas(client.service.rounds.cluster) == (32, 32)
        assert len(client.settle(removing(str(len(pending))))["decisions"]) == len(pending)
        assert client.service.rounds.view().n_pending == 0


def test_the_plan_is_on_record(client: Client) -> None:
    client.settle(adding("1"), removing("1"))
    answer = client.get("/rounds/1").json()
    plan = answer.pop("plan")
    assert (answer["round"], answer["requests"], answer["added"], answer["removed"]) == (
        1,
        ["r-000001"],
        1,
        1,
    )
    assert answer["began"] == answer["finished"] == "2026-03-01T12:00:00.000Z"
    assert [decision["operation"] for decision in plan["decisions"]] == ["remove", "add"]
    assert plan["decisions"][1]["pod"] is None  # as it was planned: the request has the name
    assert client.get("/rounds").json()["rounds"][0]["round"] == 1


def test_a_dry_run_gives_the_plan_that_the_next_round_gets(client: Client) -> None:
    changes = [adding("4"), removing("1"), adding("1", "shop/db")]
    before = list(cluster_objects(client.service.rounds.cluster))
    dry = client.post("/plan", json={"podList": changes}).json()
    assert list(cluster_objects(client.service.rounds.cluster)) == before
    assert client.get("/rounds").json() == {"rounds": []}
    request = client.settle(*changes)
    planned = client.get("/rounds/1").json()["plan"]
    for decision in planned["decisions"]:
        assert decision.pop("request") == request["requestId"]
    for decision in dry["decisions"]:
        assert decision.pop("request") == "dry-run"
    assert planned == dry


def test_a_round_takes_all_that_waits(tmp_path: Path) -> None:
    with a_store(tmp_path) as store:
        for _ in range(3):
            store.submit([Entry("add", "shop", "web", 1)], NOON.timestamp())
    with serving(tmp_path) as client:
        assert [client.ended(f"r-00000{i}")["round"] for i in (1, 2, 3)] == [1, 1, 1]


def test_rounds_keep_their_distance(tmp_path: Path) -> None:
    with serving(tmp_path, settings=settings_with(module__roundInterval="1h")) as client:
        assert client.settle(adding())["round"] == 1
        waiting = client.schedule(adding()).json()["requestId"]
        assert client.get(f"/requests/{waiting}").json()["state"] == "waiting"


def test_a_restart_keeps_the_state(tmp_path: Path) -> None:
    with serving(tmp_path) as client:
        created = client.settle(adding("3"))["decisions"][0]["pod"]
        counter = client.service.store.tie_counter()
        nodes = client.get("/nodes").json()
    with serving(tmp_path) as client:
        assert created in pods_of(client)
        assert replicas(client.service.rounds.cluster) == (5, 5)
        assert client.get("/nodes").json() == nodes
        assert counter == 3
        assert "as earlier rounds left it" in client.service.rounds.notice
        assert client.settle(removing("5"))["state"] == "applied"
        assert pods_of(client) == []
    assert not [name for name in stored(tmp_path).pods.names if name.startswith("web-")]


def test_the_state_of_another_snapshot_is_used_and_told(tmp_path: Path) -> None:
    with serving(tmp_path) as client:
        client.settle(adding("1"))
    with serving(tmp_path, origin=an_origin(Cluster, "the bazaar")) as client:
        assert len(pods_of(client)) == 3
        notice = "holds the state of the shop, not of the bazaar"
        assert notice in client.service.rounds.notice
        assert notice in client.get("/").text


def test_reset_drops_the_state_and_keeps_the_record(tmp_path: Path) -> None:
    with serving(tmp_path) as client:
        client.settle(adding("3"))
    with serving(tmp_path, reset=True) as client:
        assert pods_of(client) == ["web-1-a", "web-1-b"]
        assert client.get("/rounds/1").status_code == 200
        assert client.settle(adding("1"))["round"] == 2
    assert replicas(stored(tmp_path)) == (3, 3)


def test_the_stored_state_is_the_cluster(client: Client) -> None:
    for changes in (
        [adding("3"), adding("2", "shop/db")],
        [removing("2"), removing("1", "shop/db"), adding("1")],
    ):
        client.settle(*changes)
        held = load_objects(client.service.store.objects())
        assert contents(held) == contents(client.service.rounds.cluster)


@pytest.mark.parametrize(("release", "milli_cpu", "maximum"), [("1.13", 1600, 10), ("1.36", 3100, 100)])
def test_pods_count_as_the_release_counts_them_after_a_restart_too(
    release: str, milli_cpu: int, maximum: int, tmp_path: Path
) -> None:
    world = snapshots.a_shop()
    (web,) = (item for item in world if item["metadata"]["name"] == "web-1")
    # It asks for half a core and still has two: it is being resized.
    has = {"requests": {"cpu": "2", "memory": "256Mi"}}
    web["status"]["containerStatuses"] = [
        {"name": "main", "resources": has, "allocatedResources": has["requests"]}
    ]
    path = snapshots.write_list(tmp_path / "shop.json", world)
    settings = settings_with(module__release=release, snapshot__paths=(path,))
    added = {"n1": 0, "n2": 0}
    for number in (1, 2):
        with serving(tmp_path, origin=recorded(settings), settings=settings) as client:
            cluster = client.service.rounds.cluster
            row = cluster.nodes.names.index("n1")
            assert int(cluster.requested.of(0)[row]) == milli_cpu + 500 * added["n1"]
            (decision,) = client.settle(adding("1"))["decisions"]
            added[decision["node"]] += 1
            (planned,) = client.get(f"/rounds/{number}").json()["plan"]["decisions"]
            assert planned["scores"]["TaintTolerationPriority"] == maximum


@pytest.mark.parametrize("planned", [False, True])
def test_a_round_that_a_dead_process_began_is_carried_out_once(tmp_path: Path, planned: bool) -> None:
    with serving(tmp_path):
        pass
    with a_store(tmp_path) as store:
        store.submit([Entry("add", "shop", "web", 2)], NOON.timestamp())
        taken = store.begin_round(NOON.timestamp())
        assert taken is not None
        if planned:
            store.record_plan(taken.number, b"{}", NOON.timestamp())
    with serving(tmp_path) as client:
        request = client.ended("r-000001")
        assert (request["state"], request["round"]) == ("applied", 1)
        assert replicas(client.service.rounds.cluster) == (4, 4)
        assert len(client.get("/rounds/1").json()["plan"]["decisions"]) == 2


def test_a_round_begun_again_is_decided_alike(tmp_path: Path) -> None:
    """What is decided hangs on the state and the round alone, the names of new pods too."""

    def decisions(folder: Path) -> Any:
        with serving(folder) as client:
            return client.settle(adding("4"), removing("1"))["decisions"]

    first, second = tmp_path / "first", tmp_path / "second"
    assert decisions(first) == decisions(second)


def test_a_round_that_breaks_fails_its_requests_and_leaves_the_cluster(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = contents(client.service.rounds.cluster)

    def broken(*_: object) -> Any:
        raise ZeroDivisionError("in the middle of applying")

    with monkeypatch.context() as patched:
        patched.setattr("berth.service.embedded.result_of", broken)
        request = client.settle(adding("2"), removing("1"))
    assert request["state"] == "failed"
    assert {decision["reason"] for decision in request["decisions"]} == {"internal error: see the log"}
    assert contents(client.service.rounds.cluster) == before
    assert client.get("/rounds/1").json()["failed"] == 3
    assert client.settle(adding("2"))["state"] == "applied"
    assert client.get("/readyz").status_code == 200


def test_a_round_under_way_ends_before_the_service_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    under_way, may_end = threading.Event(), threading.Event()

    def slow(taken: OpenRound) -> Any:
        under_way.set()
        may_end.wait(20)
        return changes_of(taken)

    monkeypatch.setattr("berth.service.embedded.changes_of", slow)
    with serving(tmp_path) as client:
        client.schedule(adding("2"))
        assert under_way.wait(20)
        threading.Timer(0.1, may_end.set).start()
    assert replicas(stored(tmp_path)) == (4, 4)


def test_a_cluster_that_can_not_be_loaded_ends_the_service(tmp_path: Path) -> None:
    def broken() -> Cluster:
        raise OSError("no such disk")

    ended = threading.Event()
    with serving(tmp_path, origin=an_origin(broken), wait=False) as client:
        client.service.on_failure = ended.set
        until(lambda: client.service.loop.failure)
        assert str(client.service.loop.failure) == "no such disk"
        assert client.get("/readyz").status_code == 503


def test_while_the_cluster_loads_lists_are_put_off(tmp_path: Path) -> None:
    loaded = threading.Event()

    def slowly() -> Cluster:
        loaded.wait(20)
        return a_shop()

    with serving(tmp_path, origin=an_origin(slowly), wait=False) as client:
        assert client.get("/healthz").status_code == 200
        assert client.get("/readyz").json()["reasons"] == ["the shop is being loaded and saved"]
        for path in ("/schedulePod", "/plan"):
            answer = client.post(path, json={"podList": [adding()]})
            assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
            assert answer.json()["isSucceed"] is False
        assert client.get("/nodes").status_code == 503
        assert client.get("/").status_code == 200
        loaded.set()
        assert client.service.loop.wait_until_ready(20)
        assert client.settle(adding())["state"] == "applied"


def test_a_cluster_is_saved_before_its_first_round(tmp_path: Path) -> None:
    store = a_store(tmp_path)
    embedded = EmbeddedCluster(store, an_origin(), settings_with(), lambda: NOON)
    embedded.open()
    assert store.held_state() == "the shop"
    assert contents(load_objects(store.objects())) == contents(a_shop())
    store.close()
