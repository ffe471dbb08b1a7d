"""Objects on a real kube-apiserver, and what a cluster is that is loaded from it."""

import asyncio
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from berth.cluster.cluster import Cluster
from berth.live.api_errors import ObjectMissingError
from berth.live.client import ApiClient, Limits
from berth.live.credentials import Credentials
from berth.live.resources import RESOURCES
from berth.sim.control_plane.plane import ControlPlane
from berth.sources.snapshot import load_snapshot
from tests.cluster.model import columns_of

_AT_ONCE = 32
_AT_ONCE_GONE = {"gracePeriodSeconds": 0}


def connect(plane: ControlPlane, port: int = 0, **limits: Any) -> ApiClient:
    """A client, straight to the API server or through a proxy on a port."""
    return ApiClient(Credentials(plane.kubeconfig_for(port or plane.port)), Limits(**limits))


@asynccontextmanager
async def a_namespace(client: ApiClient) -> AsyncIterator[str]:
    """A namespace of a test's own; what the test made in the cluster is taken away in the end."""
    name = f"test-{uuid.uuid4().hex[:8]}"
    await client.post("/api/v1/namespaces", {"metadata": {"name": name}})
    yield name
    for kind in ("PersistentVolumeClaim", "PersistentVolume"):
        for item in await names(client, kind, name):
            # Nothing runs that would lift the protection of what is in use.
            await client.patch(path_of(kind, name, item), {"metadata": {"finalizers": None}})
    for kind in RESOURCES.keys() - {"Namespace", "Service"}:
        await client.delete(path_of(kind, name), _AT_ONCE_GONE)
    for service in await names(client, "Service", name):
        await client.delete(path_of("Service", name, service))


async def names(client: ApiClient, kind: str, namespace: str) -> list[str]:
    return [item.name for item in RESOURCES[kind].page(await client.get(path_of(kind, namespace))).items]


def path_of(kind: str, namespace: str, name: str = "") -> str:
    """The path of a list, or of an object."""
    resource = RESOURCES[kind]
    path = resource.path
    if resource.kind.namespaced:
        head, _, plural = path.rpartition("/")
        path = f"{head}/namespaces/{namespace}/{plural}"
    return f"{path}/{name}" if name else path


async def all_at_once(jobs: Iterable[Callable[[], Awaitable[object]]]) -> None:
    """Do many things, a few dozen at a time."""
    waiting = iter(list(jobs))

    async def worker() -> None:
        for job in waiting:
            await job()

    await asyncio.gather(*(worker() for _ in range(_AT_ONCE)))


async def loaded(client: ApiClient, folder: Path) -> Cluster:
    """The cluster as a snapshot of all lists."""
    files = []
    for kind, resource in RESOURCES.items():
        try:
            data = await client.get(resource.path)
        except ObjectMissingError:
            continue
        files.append(folder / f"{kind}.json")
        files[-1].write_bytes(data)
    return load_snapshot(files).cluster


async def until(condition: Callable[[], bool], what: str, timeout_s: float = 60.0) -> None:
    """Wait until something has come about."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"waited in vain for {what}")
        await asyncio.sleep(0.05)


async def until_equal(cluster: Cluster, wanted: Cluster, timeout_s: float = 30.0) -> None:
    """Wait until a cluster has heard of all, and compare."""
    columns = columns_of(wanted)
    deadline = time.monotonic() + timeout_s
    while columns_of(cluster) != columns and time.monotonic() < deadline:
        await asyncio.sleep(0.2)
    have = columns_of(cluster)
    for part, value in columns.items():
        assert have[part] == value, part


# -- objects --------------------------------------------------------------------------------------------------------------


def node(i: int) -> dict[str, Any]:
    name = f"node-{i:04d}"
    offered = {"cpu": "16", "memory": "64Gi", "pods": "110", "ephemeral-storage": "100Gi"}
    return {
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, "zone": "abc"[i % 3]}},
        "spec": {"taints": [{"key": "spot", "effect": "NoSchedule"}]} if i % 10 == 0 else {},
        "status": {
            "capacity": offered,
            "allocatable": offered,
            "conditions": [{"type": "Ready", "status": "True"}],
            "images": [{"names": [f"registry.example/app:{i % 4}"], "sizeBytes": 1000}],
        },
    }


def pod(i: int, **spec: Any) -> dict[str, Any]:
    container = {
        "name": "main",
        "image": "registry.example/app:1",
        "resources": {"requests": {"cpu": f"{100 * (1 + i % 3)}m", "memory": "64Mi"}},
        "ports": [{"containerPort": 80, "hostPort": 8000 + i}] if i % 50 == 0 else [],
    }
    return {
        "metadata": {"name": f"pod-{i:05d}", "labels": {"app": f"app-{i % 20}"}},
        "spec": {"containers": [container], "terminationGracePeriodSeconds": 0, **spec},
    }


def binding(name: str, node_name: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": name},
        "target": {"apiVersion": "v1", "kind": "Node", "name": node_name},
    }


def others() -> dict[str, dict[str, Any]]:
    """One object of each kind but nodes, pods and namespaces."""
    selector = {"matchLabels": {"app": "it"}}
    template = {
        "metadata": {"labels": {"app": "it"}},
        "spec": pod(1)["spec"] | {"terminationGracePeriodSeconds": 1},
    }
    workload = {"replicas": 0, "selector": selector, "template": template}
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    bodies: dict[str, dict[str, Any]] = {
        "StorageClass": {"provisioner": "example.com/disk", "volumeBindingMode": "WaitForFirstConsumer"},
        "PersistentVolume": {
            "spec": {
                "capacity": {"storage": "1Gi"},
                "accessModes": ["ReadWriteOnce"],
                "csi": {"driver": "example.com", "volumeHandle": "v"},
            }
        },
        "PersistentVolumeClaim": {"spec": claim},
        "CSINode": {
            "spec": {"drivers": [{"name": "example.com", "nodeID": "1", "allocatable": {"count": 3}}]}
        },
        "CSIDriver": {"spec": {"storageCapacity": True}},
        "CSIStorageCapacity": {"storageClassName": "it", "capacity": "10Gi"},
        "VolumeAttachment": {
            "spec": {"attacher": "example.com", "nodeName": "n", "source": {"persistentVolumeName": "it"}}
        },
        "Service": {"spec": {"selector": {"app": "it"}, "ports": [{"port": 80}]}},
        "Deployment": {"spec": workload},
        "ReplicaSet": {"spec": workload},
        "StatefulSet": {"spec": workload | {"serviceName": "it"}},
        "ReplicationController": {"spec": workload | {"selector": {"app": "it"}}},
        "PodDisruptionBudget": {"spec": {"selector": selector, "minAvailable": 1}},
    }
    return {kind: body | {"metadata": {"name": "it"}} for kind, body in bodies.items()}
