"""Services to test, in a line each: on a small shop, with a store in a folder."""

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx

from berth.cluster.cluster import Cluster
from berth.config import Settings, load_settings
from berth.config.settings import ServerSettings
from berth.module.forecast import ForecastLimits
from berth.service.app import make_app
from berth.service.assembly import LoadFeed
from berth.service.origin import Origin
from berth.service.running import Service, assemble
from berth.service.server import address_of, bind, make_server
from berth.store.interface import Store
from berth.store.sqlite import SqliteStore
from tests.builders import a_cluster, a_deployment, a_node, a_pod, a_service, a_stateful_set, replica_set_of

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
PATIENCE = 20.0  # s


def a_shop() -> Cluster:
    """Three nodes; shop/web is a Deployment of two pods, shop/db a StatefulSet of one, shop/outside has no selector."""
    web = a_deployment("web", namespace="shop", replicas=2, cpu="500m", memory="256Mi")
    pods_of_web = replica_set_of(web)
    db = a_stateful_set("db", namespace="shop", replicas=1, cpu="1", memory="1Gi")
    labels = {"app": "web", "pod-template-hash": "1"}
    return a_cluster(
        *(a_node(f"n{i}", cpu="4", memory="8Gi") for i in (1, 2, 3)),
        pods=[
            a_pod(
                "web-1-a",
                namespace="shop",
                node="n1",
                owner=pods_of_web,
                labels=labels,
                cpu="500m",
                created=1,
            ),
            a_pod(
                "web-1-b",
                namespace="shop",
                node="n2",
                owner=pods_of_web,
                labels=labels,
                cpu="500m",
                created=2,
            ),
            a_pod("db-0", namespace="shop", node="n3", owner=db, labels={"app": "db"}, cpu="1", created=3),
        ],
        services=[
            a_service("web", namespace="shop"),
            a_service("db", namespace="shop"),
            a_service("outside", {}, namespace="shop"),
        ],
        objects=[web, pods_of_web, db],
    )


def an_origin(load: Callable[[], Cluster] = a_shop, description: str = "the shop") -> Origin:
    return Origin(description, load, LoadFeed(None, None, ForecastLimits()), {})


def settings_with(**overrides: object) -> Settings:
    """Settings without a pause between rounds; ``module__ties="name"`` sets ``module.ties``."""
    told = {name.replace("__", "."): value for name, value in overrides.items()}
    return load_settings(None, {}, {"module.roundInterval": "0s", **told})


def a_store(folder: Path) -> SqliteStore:
    return SqliteStore(folder / "berth.db", timeout=1.0)


class Client(httpx.Client):
    """A client of a service that runs, with words for what tests do."""

    service: Service

    def schedule(self, *changes: dict[str, Any], **headers: str) -> Any:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.post("/schedulePod", json={"podList": list(changes)}, headers=named)

    def settle(self, *changes: dict[str, Any]) -> dict[str, Any]:
        """Post a list, wait until its round is over, and return the request."""
        answer = self.schedule(*changes).json()
        assert answer["isSucceed"] is True, answer
        return self.ended(answer["requestId"])

    def ended(self, request_id: str) -> dict[str, Any]:
        return until(
            lambda: (
                found
                if (found := self.get(f"/requests/{request_id}").json())["state"] in ("applied", "failed")
                else None
            )
        )


@contextmanager
def serving(
    folder: Path,
    *,
    store: Store | None = None,
    origin: Origin | None = None,
    settings: Settings | None = None,
    reset: bool = False,
    wait: bool = True,
) -> Iterator[Client]:
    """A service that runs in this process, and ends with the block."""
    service = assemble(
        settings or settings_with(),
        store or a_store(folder),
        origin or an_origin(),
        clock=lambda: NOON,
        reset=reset,
    )
    with bind(ServerSettings(port=0)) as bound:
        server = make_server(make_app(service))
        thread = threading.Thread(target=server.run, args=([bound],), daemon=True)
        thread.start()
        try:
            until(lambda: server.started)
            if wait:
                assert service.loop.wait_until_ready(PATIENCE), service.loop.failure
            with Client(base_url=address_of(bound), timeout=PATIENCE, trust_env=False) as client:
                client.service = service
                yield client
        finally:
            server.should_exit = True
            thread.join()


def until(found: Callable[[], Any]) -> Any:
    """Ask again and again until there is an answer."""
    deadline = time.monotonic() + PATIENCE
    while not (answer := found()):
        assert time.monotonic() < deadline, "it took too long"
        time.sleep(0.005)
    return answer


def own_environment() -> dict[str, str]:
    """The environment for a process of ours: without settings that somebody has for theirs."""
    return {name: value for name, value in os.environ.items() if not name.startswith("BERTH_")}


def adding(number: object = "1", service: str = "shop/web", **more: object) -> dict[str, Any]:
    namespace, name = service.split("/")
    return {"operation": 1, "namespace": namespace, "serviceName": name, "number": number, **more}


def removing(number: object = "1", service: str = "shop/web", **more: object) -> dict[str, Any]:
    return adding(number, service, **more) | {"operation": 2}
