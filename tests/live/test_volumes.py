"""Volumes that are bound on first use, and what may happen to them meanwhile; the API server is scripted."""

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from berth.cluster.cluster import Cluster, Incoming
from berth.live.client import ApiClient
from berth.live.events import Event
from berth.live.live_cluster import LiveCluster
from berth.live.preparing import PrepareError
from berth.live.resources import RESOURCES
from berth.live.volumes import BOUND_BY_CONTROLLER, VolumePreparation
from berth.plugins.volume_binding import BIND_COMPLETED, SELECTED_NODE
from berth.releases.modern import RELEASE_1_36
from berth.releases.profiles import provider_profile
from berth.releases.release import Options
from tests.live.fake_api import Answer, FakeApi, a_client, answer, cut, refusal, serving

Json = dict[str, Any]
HOST = "kubernetes.io/hostname"
CLAIM_PATH = "/api/v1/namespaces/default/persistentvolumeclaims/c"
FAILED = "binding volumes: "


def a_claim(class_name: str, volume: str = "", uid: str = "uid-c", **annotations: str) -> Json:
    spec: Json = {"storageClassName": class_name, "accessModes": ["ReadWriteOnce"]}
    spec |= {"resources": {"requests": {"storage": "1Gi"}}, "volumeName": volume}
    if volume:
        annotations = {BIND_COMPLETED: "yes"} | annotations
    return {
        "metadata": {"name": "c", "namespace": "default", "uid": uid, "annotations": annotations},
        "spec": spec,
    }


def a_volume(name: str, claim_uid: str | None = None, on: str = "n1") -> Json:
    here = {"key": HOST, "operator": "In", "values": [on]}
    spec: Json = {
        "storageClassName": "local",
        "accessModes": ["ReadWriteOnce"],
        "capacity": {"storage": "1Gi"},
    }
    spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [{"matchExpressions": [here]}]}}
    if claim_uid is not None:
        spec["claimRef"] = {"namespace": "default", "name": "c", "uid": claim_uid}
    return {"metadata": {"name": name, "uid": f"uid-{name}"}, "spec": spec, "status": {"phase": "Available"}}


def a_node(name: str, host: str = "") -> Json:
    allocatable = {"cpu": "4", "memory": "8Gi", "pods": "10"}
    return {
        "metadata": {"name": name, "uid": f"uid-{name}", "labels": {HOST: host or name}},
        "status": {"allocatable": allocatable},
    }


def a_pod(name: str = "p") -> Json:
    volume = {"name": "v", "persistentVolumeClaim": {"claimName": "c"}}
    meta = {"name": name, "namespace": "default", "uid": f"uid-{name}"}
    return {"metadata": meta, "spec": {"volumes": [volume], "containers": [{"name": "main"}]}}


@dataclass
class World:
    """Pod p, its claim c, and node n1 with volume v; objects are told as if a watch did."""

    api: FakeApi
    live: LiveCluster
    volumes: VolumePreparation

    def tell(self, kind: str, version: int, item: Json, type_: Any = "MODIFIED") -> None:
        item = item | {"metadata": item["metadata"] | {"resourceVersion": str(version)}}
        line = RESOURCES[kind].line(json.dumps({"type": "ADDED", "object": item}).encode())
        assert line.arrived is not None
        arrived = line.arrived
        event = Event(
            type_, kind, arrived.namespace, arrived.name, arrived.uid, arrived.item, version=str(version)
        )
        self.live.state.apply(event)
        self.live.tell(event)

    @property
    def cluster(self) -> Cluster:
        return self.live.cluster

    def pod(self, name: str = "p") -> Incoming:
        cluster = self.cluster
        return cluster.incoming_of(
            cluster.pods.get(cluster.pods.find(cluster.namespaces.id("default"), name))
        )

    def claim_of(self, volume: str) -> str | None:
        found = self.cluster.objects.persistent_volumes.get("", volume)
        return found.spec.claim_ref.name if found and found.spec.claim_ref else None

    def node_of_claim(self) -> str | None:
        found = self.cluster.objects.persistent_volume_claims.get("default", "c")
        return found.metadata.annotations.get(SELECTED_NODE) if found else None

    async def prepare(self, *meanwhile: Callable[["World"], None]) -> str:
        """Prepare p for n1; what happens meanwhile happens one after another. Returns what went wrong."""
        pod = self.pod()
        assert self.volumes.concerns(pod)
        self.volumes.reserve(pod, "n1")
        task = asyncio.create_task(self.volumes.prepare(pod, "n1"))
        for step in meanwhile:
            await self._until_idle()
            assert not task.done()
            step(self)
        try:
            async with asyncio.timeout(5.0):
                await task
        except PrepareError as error:
            self.volumes.unreserve(pod)
            return str(error)
        self.volumes.settle(pod)
        return ""

    async def _until_idle(self) -> None:
        while self.api.script:
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.02)


def in_a_world(folder: Path, test: Callable[[World], Any], *script: Answer, class_name: str = "local") -> Any:
    async def run() -> Any:
        async with serving() as api, a_client(folder, api.url, attempts=1) as client:
            api.script = list(script)
            return await test(_a_world(api, client, class_name))

    return asyncio.run(run())


def _a_world(api: FakeApi, client: ApiClient, class_name: str) -> World:
    options = Options()
    live = LiveCluster(client, Cluster(RELEASE_1_36.accounting_for(options)))
    profiles = {"default-scheduler": provider_profile(RELEASE_1_36, options)}
    world = World(api, live, VolumePreparation(client, live, profiles))
    for name, provisioner in (("local", "kubernetes.io/no-provisioner"), ("made", "example.com/disk")):
        body = {"metadata": {"name": name}, "provisioner": provisioner}
        world.tell("StorageClass", 1, body | {"volumeBindingMode": "WaitForFirstConsumer"})
    for name in ("n1", "n2"):
        world.tell("Node", 1, a_node(name))
    world.tell("PersistentVolume", 2, a_volume("v"))
    world.tell("PersistentVolumeClaim", 3, a_claim(class_name))
    world.tell("Pod", 4, a_pod())
    return world


def written(version: int) -> Answer:
    return answer(body={"metadata": {"resourceVersion": str(version)}})


Step = Callable[[World], None]


def volume_told(version: int, **more: Any) -> Step:
    return lambda world: world.tell("PersistentVolume", version, a_volume("v", **more))


def claim_told(version: int, class_name: str = "local", volume: str = "", **more: str) -> Step:
    return lambda world: world.tell("PersistentVolumeClaim", version, a_claim(class_name, volume, **more))


def node_told(host: str) -> Step:
    return lambda world: world.tell("Node", 9, a_node("n1", host))


def gone(kind: str, item: Json) -> Step:
    return lambda world: world.tell(kind, 9, item, "DELETED")


HERE = {SELECTED_NODE: "n1"}
NO_MATCH = 'pv "v" node affinity doesn\'t match node "n1": no matching NodeSelectorTerms'


@pytest.mark.parametrize(
    ("steps", "why"),
    [
        ([volume_told(5, claim_uid="uid-c"), claim_told(6, volume="v")], ""),
        # The claim's event may be first; until the volume's is there, the pod waits.
        ([claim_told(6, volume="v"), volume_told(5, claim_uid="uid-c")], ""),
        # What was told before the write counts for nothing.
        ([volume_told(2), volume_told(5, claim_uid="uid-c"), claim_told(6, volume="v")], ""),
        ([volume_told(6, claim_uid="")], 'ClaimRef got reset for pv "v"'),
        ([volume_told(6)], 'ClaimRef got reset for pv "v"'),
        ([volume_told(5, claim_uid="uid-c"), node_told("elsewhere")], NO_MATCH),
        ([gone("PersistentVolume", a_volume("v"))], 'failed to check binding: persistentvolumes "v" not found'),
        (
            [gone("PersistentVolumeClaim", a_claim("local"))],
            'failed to check binding: persistentvolumeclaims "default/c" not found',
        ),
        (
            [claim_told(8, volume="v", uid="uid-other")],
            'failed to check binding: persistentvolumeclaims "default/c" not found',
        ),
        ([gone("Node", a_node("n1"))], 'failed to get node "n1": node "n1" not found'),
        ([gone("Pod", a_pod())], 'pod does not exist any more: pod "p" not found'),
    ],
)  # fmt: skip
def test_a_volume_that_is_there(tmp_path: Path, steps: list[Step], why: str) -> None:
    asked: list[Json] = []

    async def write(request: web.Request) -> web.StreamResponse:
        assert (request.method, request.path) == ("PATCH", "/api/v1/persistentvolumes/v")
        asked.append(json.loads(await request.read()))
        return await written(5)(request)

    async def test(world: World) -> None:
        assert await world.prepare(*steps) == (why and FAILED + why)

    in_a_world(tmp_path, test, write)
    (body,) = asked
    assert body["metadata"] == {
        "resourceVersion": "2", "uid": "uid-v", "annotations": {BOUND_BY_CONTROLLER: "yes"},
    }  # fmt: skip
    assert body["spec"]["claimRef"] == {
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": "default", "name": "c",
        "uid": "uid-c", "resourceVersion": "3",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("steps", "why"),
    [
        ([claim_told(5, "made", **HERE), claim_told(7, "made", "v", **HERE)], ""),
        # The volume's event comes after its claim's.
        (
            [
                gone("PersistentVolume", a_volume("v")),
                claim_told(7, "made", "v", **HERE),
                volume_told(8, claim_uid="uid-c"),
            ],
            "",
        ),
        ([claim_told(6, "made", other="x")], 'provisioning failed for PVC "c"'),
        ([claim_told(6, "made")], 'selectedNode annotation reset for PVC "c"'),
        ([claim_told(6, "made", **{SELECTED_NODE: "n2"})], 'provisioning failed for PVC "c"'),
        ([volume_told(6, on="n2"), claim_told(7, "made", "v", **HERE)], NO_MATCH),
        (
            [gone("PersistentVolumeClaim", a_claim("made"))],
            'failed to check provisioning pvc: persistentvolumeclaims "default/c" not found',
        ),
    ],
)  # fmt: skip
def test_a_volume_that_is_provisioned(tmp_path: Path, steps: list[Step], why: str) -> None:
    async def test(world: World) -> None:
        assert await world.prepare(*steps) == (why and FAILED + why)
        assert world.api.asked == [f"PATCH {CLAIM_PATH}"]

    in_a_world(tmp_path, test, written(5), class_name="made")


@pytest.mark.parametrize("refused", [refusal(409), refusal(404), cut, answer(body=b"?")])
@pytest.mark.parametrize("class_name", ["local", "made"])
def test_what_could_not_be_written_is_given_back(tmp_path: Path, refused: Answer, class_name: str) -> None:
    told: list[Event] = []

    async def test(world: World) -> None:
        for kind in ("PersistentVolume", "PersistentVolumeClaim"):
            world.live.subscribe(kind, told.append)
        assert await world.prepare()
        assert (world.claim_of("v"), world.node_of_claim(), len(world.live.state.objects)) == (None, None, 0)

    in_a_world(tmp_path, test, refused, class_name=class_name)
    (change,) = told
    assert change.changed
    assert change.kind == ("PersistentVolume" if class_name == "local" else "PersistentVolumeClaim")


def test_what_is_written_is_not_given_back_before_the_watch_has_told_of_it(tmp_path: Path) -> None:
    async def test(world: World) -> None:
        assert await world.prepare(gone("Node", a_node("n1")))
        assert world.claim_of("v") == "c"
        volume_told(5, claim_uid="uid-c")(world)
        assert (world.claim_of("v"), len(world.live.state.objects)) == ("c", 0)

    in_a_world(tmp_path, test, written(5))


def test_two_pods_with_one_claim_take_one_volume_and_write_once(tmp_path: Path) -> None:
    async def test(world: World) -> None:
        world.tell("Pod", 5, a_pod("q"))
        world.tell("PersistentVolume", 2, a_volume("w"))
        for name in ("p", "q"):
            assert world.volumes.concerns(world.pod(name))
            world.volumes.reserve(world.pod(name), "n1")
        assert sorted([world.claim_of("v") or "", world.claim_of("w") or ""]) == ["", "c"]
        taken = "v" if world.claim_of("v") else "w"
        tasks = [asyncio.create_task(world.volumes.prepare(world.pod("p"), "n1"))]
        while world.api.script:
            await asyncio.sleep(0.01)
        world.tell("PersistentVolume", 5, a_volume(taken, "uid-c"))
        tasks.append(asyncio.create_task(world.volumes.prepare(world.pod("q"), "n1")))
        await asyncio.sleep(0.02)
        claim_told(6, volume=taken)(world)
        await asyncio.gather(*tasks)
        assert len(world.api.asked) == 1

    in_a_world(tmp_path, test, written(5))


def test_pods_without_such_claims_are_none_of_its_business(tmp_path: Path) -> None:
    async def test(world: World) -> None:
        claim_told(5, volume="v")(world)
        assert not world.volumes.concerns(world.pod())
        world.volumes.unreserve(world.pod())

    in_a_world(tmp_path, test)
