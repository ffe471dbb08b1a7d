"""The live scheduler on a real control plane: every pod is bound once, and no node gets more than it has."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from berth.cluster.cluster import Cluster
from berth.live.client import ApiClient
from berth.live.live_cluster import LiveCluster
from berth.live.reflector import Pace
from berth.live.scheduler import LiveScheduler
from berth.releases.modern import RELEASE_1_36
from berth.releases.profiles import provider_profile
from berth.releases.release import Options
from tests.control_plane.plane import ControlPlane
from tests.live import real
from tests.live.real import path_of

QUICK = Pace(page=500, first_delay_s=0.1, longest_delay_s=0.5)
NAME = "berth"


@asynccontextmanager
async def scheduling(client: ApiClient, **more: Any) -> AsyncIterator[LiveScheduler]:
    """A scheduler named berth, with 1.36's default profile."""
    options = Options()
    live = LiveCluster(client, Cluster(RELEASE_1_36.accounting_for(options)), pace=QUICK)
    scheduler = LiveScheduler(client, live, {NAME: provider_profile(RELEASE_1_36, options)}, **more)
    async with live:
        await live.wait_synced()
        running = asyncio.create_task(scheduler.run())
        try:
            yield scheduler
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
            await scheduler.finish(5.0)


def a_pod(name: str, cpu: str = "100m", **spec: Any) -> dict[str, Any]:
    made = real.pod(1, schedulerName=NAME, **spec)
    made["spec"]["containers"][0]["resources"]["requests"]["cpu"] = cpu
    made["metadata"]["name"] = name
    return made


async def pods_of(client: ApiClient, namespace: str) -> dict[str, dict[str, Any]]:
    found = json.loads(await client.get(path_of("Pod", namespace)))["items"]
    return {item["metadata"]["name"]: item for item in found}


async def events_of(client: ApiClient, namespace: str) -> list[dict[str, Any]]:
    path = f"/apis/events.k8s.io/v1/namespaces/{namespace}/events"
    found: list[dict[str, Any]] = json.loads(await client.get(path))["items"]
    return found


async def until_bound(
    client: ApiClient, namespace: str, *names: str, timeout_s: float = 60.0
) -> dict[str, str]:
    """Wait until pods are bound (without names all of them); return their nodes."""
    async with asyncio.timeout(timeout_s):
        while True:
            pods = await pods_of(client, namespace)
            nodes = {name: pods[name]["spec"].get("nodeName", "") for name in names or pods if name in pods}
            if nodes and all(nodes.values()) and len(nodes) >= len(names):
                return nodes
            await asyncio.sleep(0.1)


def test_a_thousand_pods_are_bound_once_and_no_node_has_too_much(control_plane: ControlPlane) -> None:
    asyncio.run(_a_thousand(control_plane))


async def _a_thousand(plane: ControlPlane) -> None:
    async with real.connect(plane) as client, real.a_namespace(client) as namespace:
        await real.all_at_once(partial(client.post, "/api/v1/nodes", real.node(i)) for i in range(300))
        async with scheduling(client) as scheduler:
            pods = [a_pod(f"p{i}", cpu="4") for i in range(1000)]
            await real.all_at_once(partial(client.post, path_of("Pod", namespace), pod) for pod in pods)
            nodes = await until_bound(client, namespace)
            assert len(nodes) == 1000
            # 30 of the nodes are tainted; the others have room for four.
            on_node = [list(nodes.values()).count(name) for name in set(nodes.values())]
            assert max(on_node) == 4
            await real.until(lambda: not scheduler.queue.n_in_flight, "all bindings to be answered")
        events = await events_of(client, namespace)
        told = [e["regarding"]["name"] for e in events if e["reason"] == "Scheduled"]
        assert sorted(told) == sorted(nodes)
        one = next(e for e in events if e["regarding"]["name"] == "p0")
        assert one["note"] == f"Successfully assigned {namespace}/p0 to {nodes['p0']}"
        assert (one["type"], one["action"], one["reportingController"]) == ("Normal", "Binding", NAME)
