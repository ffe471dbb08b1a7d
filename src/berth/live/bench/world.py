"""The nodes and pods that live schedulers are measured with, on a real API server. Pods have one shape, as in ``basic``."""

import asyncio
import time
from collections.abc import Awaitable, Iterable

import msgspec

from berth.live.client import ApiClient

PODS_PER_NODE = 110
_AT_ONCE = 32
_AT_ONCE_GONE = {"gracePeriodSeconds": 0}
_ALLOCATABLE = {"cpu": "32", "memory": "128Gi", "pods": str(PODS_PER_NODE)}


def node_name(i: int) -> str:
    """Return a node's name."""
    return f"node-{i:06d}"


def pod_name(i: int, prefix: str = "pod") -> str:
    """Return a pod's name."""
    return f"{prefix}-{i:06d}"


async def make_nodes(client: ApiClient, n: int) -> None:
    """Make nodes in three zones, all alike and ready."""
    await all_at_once(client.post("/api/v1/nodes", _node(i)) for i in range(n))


async def make_pods(client: ApiClient, namespace: str, scheduler: str, n: int) -> None:
    """Make pods for a scheduler, as fast as that goes."""
    path = _pods(namespace)
    await all_at_once(client.post(path, _pod(pod_name(i), scheduler)) for i in range(n))


async def make_pods_at(
    client: ApiClient, namespace: str, scheduler: str, prefix: str, n: int, per_second: float
) -> None:
    """Make pods that arrive one after another, so many a second, whatever their making takes."""
    path, start = _pods(namespace), time.monotonic()
    posts = []
    for i in range(n):
        await asyncio.sleep(start + i / per_second - time.monotonic())
        posts.append(asyncio.create_task(client.post(path, _pod(pod_name(i, prefix), scheduler))))
    await asyncio.gather(*posts)


async def make_namespace(client: ApiClient, name: str) -> None:
    """Make a namespace."""
    await client.post("/api/v1/namespaces", {"metadata": {"name": name}})


async def clear(client: ApiClient, namespace: str) -> None:
    """Delete a namespace's pods and events at once."""
    await client.delete(_pods(namespace), _AT_ONCE_GONE)
    await client.delete(_events(namespace), _AT_ONCE_GONE)


async def count_events(client: ApiClient, namespace: str) -> int:
    """Return how many events there are in a namespace."""
    page = msgspec.json.decode(await client.get(f"{_events(namespace)}?limit=1"))
    return len(page["items"]) + int(page["metadata"].get("remainingItemCount", 0))


async def all_at_once(jobs: Iterable[Awaitable[object]], at_once: int = _AT_ONCE) -> None:
    """Do many things, some dozen at a time, each begun when it is its turn."""
    waiting = iter(jobs)

    async def work() -> None:
        for job in waiting:
            await job

    await asyncio.gather(*(work() for _ in range(at_once)))


def watch_path(namespace: str, resource_version: str) -> str:
    """Return the path of a watch of a namespace's pods; without a version from those that are there on."""
    query = f"watch=1&allowWatchBookmarks=true&timeoutSeconds=7200&resourceVersion={resource_version}"
    return f"{_pods(namespace)}?{query}"


def _pods(namespace: str) -> str:
    return f"/api/v1/namespaces/{namespace}/pods"


def _events(namespace: str) -> str:
    return f"/apis/events.k8s.io/v1/namespaces/{namespace}/events"


def _node(i: int) -> dict[str, object]:
    name = node_name(i)
    labels = {"kubernetes.io/hostname": name, "topology.kubernetes.io/zone": f"zone-{i % 3}"}
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
    return {
        "metadata": {"name": name, "labels": labels},
        "status": {"capacity": _ALLOCATABLE, "allocatable": _ALLOCATABLE, "conditions": [ready]},
    }


def _pod(name: str, scheduler: str) -> dict[str, object]:
    requests = {"cpu": "100m", "memory": "256Mi"}
    container = {"name": "pause", "image": "pause", "resources": {"requests": requests}}
    return {
        "metadata": {"name": name, "labels": {"app": "x"}},
        "spec": {"schedulerName": scheduler, "containers": [container]},
    }
