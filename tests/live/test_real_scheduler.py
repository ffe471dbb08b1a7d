"""The live scheduler on a real control plane: every pod is bound once, and no node gets more than it has."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from berth.cluster.cluster import Cluster
from berth.framework.profile import Profile
from berth.live.client import ApiClient
from berth.live.live_cluster import LiveCluster
from berth.live.reflector import Pace
from berth.live.scheduler import LiveScheduler
from berth.live.volumes import VolumePreparation
from berth.releases.modern import RELEASE_1_36
from berth.releases.profiles import provider_profile
from berth.releases.release import Options
from berth.sim.control_plane.plane import ControlPlane
from tests.live import real
from tests.live.real import path_of

QUICK = Pace(page=500, first_delay_s=0.1, longest_delay_s=0.5)
NAME = "berth"


@asynccontextmanager
async def scheduling(
    client: ApiClient, profile: Profile | None = None, **more: Any
) -> AsyncIterator[LiveScheduler]:
    """A scheduler named berth, with 1.36's default profile."""
    options = Options()
    live = LiveCluster(client, Cluster(RELEASE_1_36.accounting_for(options)), pace=QUICK)
    profiles = {NAME: profile or provider_profile(RELEASE_1_36, options)}
    volumes = VolumePreparation(client, live, profiles)
    scheduler = LiveScheduler(client, live, profiles, preparations=(volumes,), **more)
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


async def a_priority(client: ApiClient, namespace: str, name: str, value: int) -> str:
    """A priority class of a test's own; returns its name."""
    full = f"{namespace}-{name}"
    body = {"metadata": {"name": full}, "value": value}
    await client.post("/apis/scheduling.k8s.io/v1/priorityclasses", body)
    return full


def condition_of(pod: dict[str, Any], type_: str = "PodScheduled") -> dict[str, Any]:
    """A condition of a pod; empty if it has none of the type."""
    conditions = pod["status"].get("conditions", [])
    return next((c for c in conditions if c["type"] == type_), {})


async def until_told(client: ApiClient, namespace: str, name: str, reason: str) -> dict[str, Any]:
    """Wait until a pod's condition has a reason; return the condition."""
    async with asyncio.timeout(30.0):
        while True:
            condition = condition_of((await pods_of(client, namespace))[name])
            if condition.get("reason") == reason:
                return condition
            await asyncio.sleep(0.1)


def test_what_holds_a_pod_back_is_told_and_what_helps_it_is_heard(control_plane: ControlPlane) -> None:
    asyncio.run(_held_back(control_plane))


async def _held_back(plane: ControlPlane) -> None:
    async with real.connect(plane) as client, real.a_namespace(client) as namespace:
        path = path_of("Pod", namespace)
        await real.all_at_once(partial(client.post, "/api/v1/nodes", real.node(i)) for i in (1, 2))
        high = await a_priority(client, namespace, "high", 1000)
        # Each fills a node. They are there before the scheduler is: it sees both, and takes the important one first.
        await client.post(path, a_pod("low", cpu="15", nodeSelector={"zone": "b"}))
        await client.post(path, a_pod("high", cpu="15", nodeSelector={"zone": "b"}, priorityClassName=high))
        await client.post(path, a_pod("gated", schedulingGates=[{"name": "example.com/wait"}]))
        await client.post(path, a_pod("other") | {"spec": real.pod(1, schedulerName="else")["spec"]})
        async with scheduling(client) as scheduler:
            assert await until_bound(client, namespace, "high") == {"high": "node-0001"}
            told = await until_told(client, namespace, "low", "Unschedulable")
            message = (
                "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) didn't match Pod's node affinity/selector. "
                "preemption: 0/2 nodes are available: 1 No preemption victims found for incoming pod, "
                "1 Preemption is not helpful for scheduling."
            )
            assert (told["status"], told["message"]) == ("False", message)
            pods = await pods_of(client, namespace)
            assert told["observedGeneration"] == pods["low"]["metadata"]["generation"]
            assert condition_of(pods["gated"])["reason"] == "SchedulingGated"  # the API server's own
            assert scheduler.queue.pending == {"active": 0, "backoff": 0, "unschedulable": 1, "gated": 1}
            for plugin in ("NodeResourcesFit", "NodeAffinity", "SchedulingGates"):
                line = f'scheduler_unschedulable_pods{{plugin="{plugin}",profile="berth"}} 1.0'
                assert line.encode() in scheduler.metrics.text()
            # A node comes, and the gate goes.
            await client.post("/api/v1/nodes", real.node(4))
            await client.patch(f"{path}/gated", {"spec": {"schedulingGates": None}})
            bound = await until_bound(client, namespace, "low", "gated")
            assert bound["low"] == "node-0004"
            assert "nodeName" not in (await pods_of(client, namespace))["other"]["spec"]
        assert b'scheduler_schedule_attempts_total{profile="berth",result="scheduled"} 3.0' in (
            scheduler.metrics.text()
        )
        failed = [e for e in await events_of(client, namespace) if e["reason"] == "FailedScheduling"]
        assert [(e["regarding"]["name"], e["note"], e["type"], e["action"]) for e in failed] == [
            ("low", message, "Warning", "Scheduling")
        ]


def test_less_important_pods_make_room(own_control_plane: ControlPlane) -> None:
    own_control_plane.start_kwok()
    asyncio.run(_preempting(own_control_plane))


async def _preempting(plane: ControlPlane) -> None:
    async with real.connect(plane) as client, real.a_namespace(client) as namespace:
        path = path_of("Pod", namespace)
        await client.post("/api/v1/nodes", real.node(1))
        low, high = [await a_priority(client, namespace, *of) for of in (("low", 1), ("high", 1000))]
        async with scheduling(client) as scheduler:
            for name in ("a", "b", "c", "d"):
                await client.post(path, a_pod(name, cpu="4", priorityClassName=low))
            await until_bound(client, namespace, "a", "b", "c", "d")
            await client.post(path, a_pod("vip", cpu="6", priorityClassName=high))
            assert await until_bound(client, namespace, "vip") == {"vip": "node-0001"}
            left = set(await pods_of(client, namespace))
            assert len(left) == 3
            await real.until(lambda: not scheduler.queue.n_in_flight, "the binding to be answered")
            assert len(scheduler.queue.nominator) == 0
        gone = {"a", "b", "c", "d"} - left
        events = await events_of(client, namespace)
        preempted = [e for e in events if e["reason"] == "Preempted"]
        assert {e["regarding"]["name"] for e in preempted} == gone
        uid = (await pods_of(client, namespace))["vip"]["metadata"]["uid"]
        assert {e["note"] for e in preempted} == {f"Preempted by pod {uid} on node node-0001"}
        (failed,) = (e for e in events if e["reason"] == "FailedScheduling")
        assert failed["note"] == "0/1 nodes are available: 1 Insufficient cpu."


def test_an_api_server_that_is_killed_amid_a_burst(own_control_plane: ControlPlane) -> None:
    asyncio.run(_killed(own_control_plane))


async def _killed(plane: ControlPlane) -> None:
    async with real.connect(plane) as client, real.a_namespace(client) as namespace:
        path = path_of("Pod", namespace)
        await real.all_at_once(partial(client.post, "/api/v1/nodes", real.node(i)) for i in range(1, 60))
        pods = [a_pod(f"p{i}", cpu="4") for i in range(200)]
        await real.all_at_once(partial(client.post, path, pod) for pod in pods)
        async with scheduling(client):
            await asyncio.sleep(0.1)
            plane.apiserver.kill()
            await asyncio.to_thread(plane.start_apiserver)
            nodes = await until_bound(client, namespace)
            assert len(nodes) == 200
            assert max(list(nodes.values()).count(name) for name in set(nodes.values())) <= 4
