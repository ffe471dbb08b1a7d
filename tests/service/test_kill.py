"""The real ``berth serve`` is killed at random; every list that it acknowledged is carried out exactly once.

Seeded by ``KILL_TEST_SEED``, 7 by default: the moments of the kills and what is asked for.
"""

import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from berth.cluster.cluster import Cluster
from berth.sources.writer import load_objects, write_snapshot
from berth.store.sqlite import SqliteStore
from tests.builders import a_cluster, a_deployment, a_node, a_pod, a_service, replica_set_of
from tests.service.worlds import adding, own_environment, removing

SEED = int(os.environ.get("KILL_TEST_SEED", "7"))
N_KILLS = 20
N_CLIENTS = 2
N_PODS = 400
PATIENCE = 30.0  # s
COMMAND = [sys.executable, "-c", "from berth.cli import main; main()", "serve"]


def a_roomy_cluster() -> Cluster:
    """Room for all that may be asked for: so what is asked for is what happens."""
    web = a_deployment("web", namespace="shop", replicas=N_PODS, cpu="1m", memory="1Mi")
    pods_of_web = replica_set_of(web)
    labels = {"app": "web", "pod-template-hash": "1"}
    return a_cluster(
        *(a_node(f"n{i}", cpu="1000", memory="1000Gi", pods=10_000) for i in range(8)),
        pods=[
            a_pod(f"web-{i}", namespace="shop", node=f"n{i % 8}", owner=pods_of_web, labels=labels, cpu="1m")
            for i in range(N_PODS)
        ],
        services=[a_service("web", namespace="shop")],
        objects=[web, pods_of_web],
    )


class Served:
    """A folder with a snapshot and a store, and the process that serves them for the time being."""

    def __init__(self, folder: Path) -> None:
        self.snapshot, self.store = folder / "cluster.json", folder / "berth.db"
        with self.snapshot.open("wb") as file:
            write_snapshot(a_roomy_cluster(), file)
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.log = folder / "log"

    @contextmanager
    def process(self) -> Iterator["subprocess.Popen[bytes]"]:
        options = ["--snapshot", str(self.snapshot), "--store", str(self.store), "--port", str(self.port)]
        environment = own_environment() | {"BERTH_MODULE_ROUND_INTERVAL": "20ms"}
        with self.log.open("ab") as log:
            process = subprocess.Popen([*COMMAND, *options], stdout=log, stderr=log, env=environment)
        try:
            yield process
        finally:
            process.kill()
            process.wait()


class Poster(threading.Thread):
    """Posts one list after another, each again and again until it is acknowledged."""

    def __init__(self, url: str, number: int) -> None:
        super().__init__(daemon=True)
        self.acknowledged: dict[str, list[dict[str, Any]]] = {}
        self.stopping = threading.Event()
        self._url = url
        self._name = f"poster-{number}"
        self._random = random.Random(SEED + number)

    def run(self) -> None:
        n_removals = 0
        while not self.stopping.is_set():
            changes = [adding(str(self._random.randint(1, 3))) for _ in range(self._random.randint(1, 2))]
            if n_removals < N_PODS // N_CLIENTS // 2 and self._random.random() < 0.5:
                changes.append(removing(str(self._random.randint(1, 2))))
                n_removals += 2
            request_id = self._post(f"{self._name}/{len(self.acknowledged)}", changes)
            assert request_id not in self.acknowledged
            self.acknowledged[request_id] = changes

    def _post(self, key: str, changes: list[dict[str, Any]]) -> str:
        while True:
            try:
                answer = httpx.post(
                    f"{self._url}/schedulePod",
                    json={"podList": changes},
                    headers={"Idempotency-Key": key},
                    timeout=PATIENCE,
                    trust_env=False,
                )
            except httpx.TransportError:
                time.sleep(0.02)
                continue
            if answer.status_code == 200:
                assert answer.json()["isSucceed"] is True
                return str(answer.json()["requestId"])
            assert answer.status_code == 503, answer.text
            time.sleep(0.02)


@pytest.mark.timeout(240)
def test_every_acknowledged_list_is_carried_out_exactly_once(tmp_path: Path) -> None:
    served = Served(tmp_path)
    posters = [Poster(served.url, number) for number in range(N_CLIENTS)]
    for poster in posters:
        poster.start()
    kill_at_random(served, posters)
    with served.process() as process:
        for poster in posters:
            poster.stopping.set()
            poster.join(PATIENCE)
            assert not poster.is_alive()
        acknowledged = {key: asked for poster in posters for key, asked in poster.acknowledged.items()}
        assert len(acknowledged) == sum(len(poster.acknowledged) for poster in posters)
        ended = {request_id: end_of(served.url, request_id) for request_id in acknowledged}
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == 0
    assert len(acknowledged) > N_KILLS
    for request_id, asked in acknowledged.items():
        check_request(ended[request_id], asked)
    check_state(served.store, ended)
    assert "Traceback" not in served.log.read_text()


def kill_at_random(served: Served, posters: list[Poster]) -> None:
    moments = random.Random(SEED)
    for _ in range(N_KILLS):
        with served.process() as process:
            if moments.random() < 0.75:
                wait_for_acknowledgement(posters)
                time.sleep(moments.uniform(0, 0.25))
            else:
                time.sleep(moments.uniform(0.2, 1.5))  # perhaps while it starts
            assert process.poll() is None, served.log.read_text()
            process.send_signal(signal.SIGKILL)
            assert process.wait() == -signal.SIGKILL


def wait_for_acknowledgement(posters: list[Poster]) -> None:
    before = sum(len(poster.acknowledged) for poster in posters)
    deadline = time.monotonic() + PATIENCE
    while sum(len(poster.acknowledged) for poster in posters) == before:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def end_of(url: str, request_id: str) -> dict[str, Any]:
    deadline = time.monotonic() + PATIENCE
    while True:
        found: dict[str, Any] = httpx.get(
            f"{url}/requests/{request_id}", timeout=PATIENCE, trust_env=False
        ).json()
        if found["state"] in ("applied", "failed"):
            return found
        assert time.monotonic() < deadline
        time.sleep(0.05)


def check_request(request: dict[str, Any], asked: list[dict[str, Any]]) -> None:
    """Each list became as many decisions as it asked for, and all went well."""
    assert request["state"] == "applied"
    operations = [decision["operation"] for decision in request["decisions"]]
    for operation, code in (("add", 1), ("remove", 2)):
        wanted = sum(int(change["number"]) for change in asked if change["operation"] == code)
        assert operations.count(operation) == wanted
    assert {decision["reason"] for decision in request["decisions"]} == {None}


def check_state(path: Path, ended: dict[str, dict[str, Any]]) -> None:
    """The pods are those of the beginning, and those that were made, less those that went; replicas tell their number."""
    decisions = [decision for request in ended.values() for decision in request["decisions"]]
    created = [decision["pod"] for decision in decisions if decision["operation"] == "add"]
    removed = [decision["pod"] for decision in decisions if decision["operation"] == "remove"]
    assert len(set(created)) == len(created)
    assert len(set(removed)) == len(removed)
    with SqliteStore(path) as store:
        assert {request.id for request in store.requests(limit=1_000_000)} == set(ended)
        assert store.unfinished_round() is None
        cluster = load_objects(store.objects())
    expected = {f"web-{i}" for i in range(N_PODS)} | set(created)
    assert set(removed) <= expected
    assert set(filter(None, cluster.pods.names)) == expected - set(removed)
    deployment = cluster.objects.deployments.get("shop", "web")
    replica_set = cluster.objects.replica_sets.get("shop", "web-1")
    assert deployment is not None
    assert replica_set is not None
    assert deployment.spec.replicas == replica_set.spec.replicas == N_PODS + len(created) - len(removed)
