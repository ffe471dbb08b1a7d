"""A small shop on a real cluster, and Berth's rounds on it, beside its scheduler."""

import asyncio
import threading
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from berth.config.settings import ModuleSettings, Settings
from berth.live.client import ApiClient
from berth.live.live_cluster import LiveCluster
from berth.live.module.watching import Patience
from berth.live.scheduler import LiveScheduler
from berth.module.changes import Change
from berth.releases.modern import RELEASE_1_36
from berth.releases.profiles import provider_profile
from berth.releases.release import Options
from berth.service.assembly import empty_cluster
from berth.service.live import LiveRounds, live_settings
from berth.service.results import entry_of
from berth.sim.control_plane.plane import ControlPlane
from berth.store.interface import Request, RoundResult
from berth.store.sqlite import SqliteStore
from tests.live import real
from tests.live.real import path_of, until

QUICK = Patience(appear_s=20.0, leave_s=20.0, settle_s=10.0, pause_s=0.5, retry_s=0.2)
SETTINGS = live_settings(Settings(module=ModuleSettings(ties="name")))
LABELS = {"app": "web"}


def template(
    scheduler: str = "berth", cpu: str = "100m", labels: dict[str, str] = LABELS, **spec: Any
) -> dict[str, Any]:
    container = {"name": "main", "image": "web:1", "resources": {"requests": {"cpu": cpu, "memory": "64Mi"}}}
    return {
        "metadata": {"labels": labels},
        "spec": {
            "schedulerName": scheduler,
            "terminationGracePeriodSeconds": 0,
            "containers": [container],
            **spec,
        },
    }


def workload(name: str, replicas: int, **more: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": LABELS},
            "template": template(**more),
        },
    }


class Shop:
    """The cluster, and what a test asks of it."""

    def __init__(self, client: ApiClient, namespace: str, store: SqliteStore) -> None:
        self.client, self.namespace, self.store = client, namespace, store
        self.live: LiveCluster
        self.rounds: LiveRounds
        self.patience = QUICK
        self.settings = SETTINGS
        self.scheduler: LiveScheduler
        self._scheduling: asyncio.Task[None] | None = None

    async def start(self, client: ApiClient | None = None, store: SqliteStore | None = None) -> None:
        """Berth starts (again), with nothing in memory; the rounds may have a client and a store of their own."""
        self.live = LiveCluster(self.client, empty_cluster(SETTINGS))
        self.rounds = LiveRounds(
            self.live,
            client or self.client,
            store or self.store,
            self.settings,
            lambda: datetime.now(UTC),
            patience=self.patience,
        )
        profiles = {"berth": provider_profile(RELEASE_1_36, Options())}
        self.scheduler = LiveScheduler(
            self.client, self.live, profiles, reservations=self.rounds.reservations
        )
        self.live.start()
        await self.live.wait_synced()
        self.rounds.reservations.release = self.scheduler.release
        await self.rounds.prepare()
        self._scheduling = asyncio.create_task(self.scheduler.run())

    async def stop(self) -> None:
        """Berth ends at once."""
        if self._scheduling is not None:
            self._scheduling.cancel()
            await asyncio.gather(self._scheduling, return_exceptions=True)
            await self.scheduler.finish(0.0)
            await self.live.stop()

    async def create(self, kind: str, body: dict[str, Any]) -> None:
        await self.client.post(path_of(kind, self.namespace), body)

    async def get(self, kind: str, name: str) -> dict[str, Any]:
        found: dict[str, Any] = msgspec.json.decode(
            await self.client.get(path_of(kind, self.namespace, name))
        )
        return found

    async def replicas(self, kind: str = "Deployment", name: str = "web") -> int:
        return int((await self.get(kind, name))["spec"]["replicas"])

    async def pods(self) -> dict[str, dict[str, Any]]:
        """The pods that are there and stay, by name."""
        listed = msgspec.json.decode(await self.client.get(path_of("Pod", self.namespace)))
        return {
            pod["metadata"]["name"]: pod
            for pod in listed["items"]
            if "deletionTimestamp" not in pod["metadata"]
        }

    async def uids(self) -> set[str]:
        return {pod["metadata"]["uid"] for pod in (await self.pods()).values()}

    async def ready(self, n: int, n_not_ready: int = 0) -> None:
        """Wait until so many pods are ready, as Berth sees it, and no others are there."""

        def settled() -> bool:
            pods = self.live.cluster.pods
            mine = pods.active & (
                pods.column("namespace_id") == self.live.cluster.namespaces.find(self.namespace)
            )
            return bool(mine.sum() == n + n_not_ready and pods.column("ready")[mine].sum() == n)

        await until(settled, f"{n} pods to be ready")

    def submit(self, operation: str, number: int, service: str = "web", *, force: bool = False) -> str:
        change = Change("", operation, self.namespace, service, number, None, force)  # type: ignore[arg-type]
        return self.store.submit([entry_of(change)], 0.0).request

    async def round(
        self, insist: Callable[[Callable[[], None]], None] = lambda action: action()
    ) -> RoundResult:
        """Carry out what waits, from a thread, as the round loop does."""
        taken = self.store.unfinished_round() or self.store.begin_round(0.0)
        assert taken is not None
        return await asyncio.to_thread(self.rounds.carry_out, taken, insist)

    def plan(self) -> list[dict[str, Any]]:
        """What the last round had planned."""
        record = self.store.round(self.store.rounds(limit=1)[0].number)
        assert record is not None
        return planned(record.plan)

    async def asked(
        self, operation: str, number: int, service: str = "web", *, force: bool = False
    ) -> Request:
        """Have a request carried out."""
        name = self.submit(operation, number, service, force=force)
        await self.round()
        found = self.store.request(name)
        assert found is not None
        return found


def planned(plan: bytes | None) -> list[dict[str, Any]]:
    """The decisions of a round's plan."""
    assert plan is not None
    decisions: list[dict[str, Any]] = msgspec.json.decode(plan)["decisions"]
    return decisions


def reasons(request: Request) -> set[str]:
    return {decided.reason or "" for decided in request.decisions}


def nodes_of(pods: dict[str, dict[str, Any]]) -> Counter[str | None]:
    return Counter(pod["spec"].get("nodeName") for pod in pods.values())


@asynccontextmanager
async def a_shop(plane: ControlPlane, folder: Path, n_nodes: int = 4) -> AsyncIterator[Shop]:
    """Nodes, the service web, and rounds on it."""
    (folder / "store").mkdir(exist_ok=True)
    with SqliteStore(folder / "store" / f"{threading.get_ident()}-{id(plane)}.db") as store:
        async with real.connect(plane) as client, real.a_namespace(client) as namespace:
            for i in range(1, n_nodes + 1):
                await client.post("/api/v1/nodes", real.node(i))
            shop = Shop(client, namespace, store)
            service = {"metadata": {"name": "web"}, "spec": {"selector": LABELS, "ports": [{"port": 80}]}}
            await shop.create("Service", service)
            await shop.start()
            try:
                yield shop
            finally:
                await shop.stop()
                for kind in ("Deployment", "ReplicaSet", "StatefulSet", "ReplicationController", "Node"):
                    await client.delete(path_of(kind, namespace))
