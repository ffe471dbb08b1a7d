"""Claims that wait for their first consumer, on a real control plane: bound with the pod, each volume once."""

import asyncio
import json
from typing import Any

import pytest

from berth.cluster.cluster import Cluster
from berth.live import volumes
from berth.live.client import ApiClient
from berth.live.volumes import VolumePreparation
from berth.sim.control_plane.plane import ControlPlane
from tests.live import real
from tests.live.real import path_of
from tests.live.test_real_scheduler import (
    a_pod,
    events_of,
    pods_of,
    scheduling,
    until_bound,
    until_told,
)

SELECTED = "volume.kubernetes.io/selected-node"


def a_volume(name: str, node: str, storage_class: str) -> dict[str, Any]:
    here = {"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}
    return {
        "metadata": {"name": name},
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": storage_class,
            "local": {"path": "/x"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [here]}]}},
        },
    }


def with_claim(name: str, claim: str) -> dict[str, Any]:
    return a_pod(name, volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": claim}}])


async def a_class(client: ApiClient, name: str, provisioner: str) -> None:
    body = {
        "metadata": {"name": name},
        "provisioner": provisioner,
        "volumeBindingMode": "WaitForFirstConsumer",
    }
    await client.post(path_of("StorageClass", ""), body)


async def a_claim(client: ApiClient, namespace: str, name: str, storage_class: str) -> None:
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
        "storageClassName": storage_class,
    }
    await client.post(path_of("PersistentVolumeClaim", namespace), {"metadata": {"name": name}, "spec": spec})


def test_claims_are_bound_with_their_pods(own_control_plane: ControlPlane) -> None:
    own_control_plane.start_controller_manager(("persistentvolume-binder",))
    asyncio.run(_bound(own_control_plane))


async def _bound(plane: ControlPlane) -> None:
    async with real.connect(plane) as client, real.a_namespace(client) as namespace:
        for i in (1, 2, 3):
            await client.post("/api/v1/nodes", real.node(i))
        await a_class(client, "local", "kubernetes.io/no-provisioner")
        await a_class(client, "made", "example.com/disk")
        for i in (1, 2):
            await client.post(path_of("PersistentVolume", ""), a_volume(f"v{i}", f"node-{i:04d}", "local"))
        for name in ("a", "b", "c"):
            await a_claim(client, namespace, name, "local")
        await a_claim(client, namespace, "d", "made")

        def preparing(live_cluster: Cluster) -> VolumePreparation:
            return VolumePreparation(client, live_cluster)

        async with scheduling(client, preparing=preparing):
            path = path_of("Pod", namespace)
            # Two volumes for three pods that come at once; the third one is told.
            for name in ("a", "b", "c", "d"):
                await client.post(path, with_claim(f"pod-{name}", name))
            await _provision(client, namespace, "d")
            assert (await until_bound(client, namespace, "pod-d"))["pod-d"] != ""
            await real.until_async(lambda: _n_bound(client, namespace, 3), "two more pods to be bound")
            pods = await pods_of(client, namespace)
            (left,) = (name for name, pod in pods.items() if "nodeName" not in pod["spec"])
            told = await until_told(client, namespace, left, "Unschedulable")
            assert "node(s) didn't find available persistent volumes to bind" in told["message"]
            nodes = {pods[f"pod-{n}"]["spec"].get("nodeName") for n in ("a", "b", "c")} - {None}
            assert nodes == {"node-0001", "node-0002"}
        failed = [e for e in await events_of(client, namespace) if "PreBind" in e["note"]]
        assert failed == []


async def _n_bound(client: ApiClient, namespace: str, n: int) -> bool:
    pods = await pods_of(client, namespace)
    return sum(bool(pod["spec"].get("nodeName")) for pod in pods.values()) == n


async def _provision(client: ApiClient, namespace: str, name: str) -> None:
    """Wait until a node is selected for a claim, and make its volume there."""
    path = path_of("PersistentVolumeClaim", namespace, name)
    async with asyncio.timeout(30.0):
        while True:
            claim = json.loads(await client.get(path))["metadata"]
            node = claim.get("annotations", {}).get(SELECTED, "")
            if node:
                break
            await asyncio.sleep(0.1)
    volume = a_volume("made", node, "made")
    volume["spec"]["claimRef"] = {"namespace": namespace, "name": name, "uid": claim["uid"]}
    await client.post(path_of("PersistentVolume", ""), volume)


def test_a_volume_that_does_not_come_in_time_fails_the_binding(
    control_plane: ControlPlane, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(volumes, "_LOOK_AGAIN_S", 0.05)
    asyncio.run(_late(control_plane))


async def _late(plane: ControlPlane) -> None:
    async with real.connect(plane) as client, real.a_namespace(client) as namespace:
        await client.post("/api/v1/nodes", real.node(1))
        await a_class(client, "never", "example.com/disk")
        await a_claim(client, namespace, "e", "never")

        def preparing(live_cluster: Cluster) -> VolumePreparation:
            return VolumePreparation(client, live_cluster, timeout_s=0.2)

        async with scheduling(client, preparing=preparing) as scheduler:
            await client.post(path_of("Pod", namespace), with_claim("pod-e", "e"))
            told = await until_told(client, namespace, "pod-e", "SchedulerError")
            assert told["message"] == (
                'running PreBind plugin "VolumeBinding": binding volumes: context deadline exceeded'
            )
            assert len(scheduler.queue) == 1
