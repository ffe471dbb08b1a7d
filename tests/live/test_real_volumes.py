"""Volumes that are bound on first use, on a real control plane."""

import asyncio
import dataclasses
import json
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from berth.framework.profile import NamedFilter, Profile
from berth.live.client import ApiClient
from berth.plugins.volume_binding import BIND_COMPLETED, SELECTED_NODE, VolumeBinding
from berth.releases.modern import RELEASE_1_36
from berth.releases.profiles import provider_profile
from berth.releases.release import Options
from berth.sim.control_plane.plane import ControlPlane
from tests.live import real
from tests.live.real import path_of
from tests.live.test_real_scheduler import a_pod, events_of, pods_of, scheduling, until_bound, until_told

PREBIND = 'running PreBind plugin "VolumeBinding": binding volumes: '
MODES = ["ReadWriteOnce"]


# -- objects --------------------------------------------------------------------------------------------------------------


def a_class(name: str, mode: str = "WaitForFirstConsumer", provisioner: str = "") -> dict[str, Any]:
    provisioner = provisioner or "kubernetes.io/no-provisioner"
    return {"metadata": {"name": name}, "provisioner": provisioner, "volumeBindingMode": mode}


def a_volume(name: str, class_name: str, node_name: str, size: str = "1Gi", **spec: Any) -> dict[str, Any]:
    on_node = {"key": "kubernetes.io/hostname", "operator": "In", "values": [node_name]}
    return {
        "metadata": {"name": name},
        "spec": {
            "capacity": {"storage": size},
            "accessModes": MODES,
            "storageClassName": class_name,
            "persistentVolumeReclaimPolicy": "Retain",
            "local": {"path": "/mnt/disk"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [on_node]}]}},
            **spec,
        },
    }


def claim_spec(class_name: str) -> dict[str, Any]:
    return {
        "accessModes": MODES,
        "storageClassName": class_name,
        "resources": {"requests": {"storage": "1Gi"}},
    }


def a_claim(name: str, class_name: str) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": claim_spec(class_name)}


def a_user(name: str, *claims: str) -> dict[str, Any]:
    """A pod with claims."""
    volumes = [{"name": f"v{i}", "persistentVolumeClaim": {"claimName": c}} for i, c in enumerate(claims)]
    return a_pod(name, volumes=volumes)


class Disks:
    """A namespace, three nodes and a class of a test's own."""

    def __init__(self, client: ApiClient, namespace: str) -> None:
        self.client, self.namespace, self.class_name = client, namespace, f"{namespace}-class"

    def path(self, kind: str, name: str = "") -> str:
        return path_of(kind, self.namespace, name)

    async def make(self, kind: str, *bodies: dict[str, Any]) -> None:
        await real.all_at_once(partial(self.client.post, self.path(kind), body) for body in bodies)

    async def get(self, kind: str, name: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(await self.client.get(self.path(kind, name)))
        return found

    async def bind_by_hand(self, claim: str, volume: str) -> None:
        """Do what the volume controller does, where it does not run."""
        body = {"metadata": {"annotations": {BIND_COMPLETED: "yes"}}, "spec": {"volumeName": volume}}
        await self.client.patch(self.path("PersistentVolumeClaim", claim), body)

    async def until(self, kind: str, name: str, what: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
        async with asyncio.timeout(30.0):
            while not what(found := await self.get(kind, name)):
                await asyncio.sleep(0.05)
            return found

    async def make_available(self, *volumes: dict[str, Any]) -> None:
        """Make volumes, and say that they are free, where no controller does."""
        await self.make("PersistentVolume", *volumes)
        for volume in volumes:
            path = self.path("PersistentVolume", volume["metadata"]["name"])
            await self.client.patch(f"{path}/status", {"status": {"phase": "Available"}})

    async def destroy_volume(self, name: str) -> None:
        path = self.path("PersistentVolume", name)
        await self.client.patch(path, {"metadata": {"finalizers": None}})
        await self.client.delete(path)


@asynccontextmanager
async def disks(
    plane: ControlPlane, mode: str = "WaitForFirstConsumer", provisioner: str = ""
) -> AsyncIterator[Disks]:
    async with real.connect(plane) as client, real.a_namespace(client) as namespace:
        made = Disks(client, namespace)
        await made.make("StorageClass", a_class(made.class_name, mode, provisioner))
        await made.make("Node", *(real.node(i) for i in (1, 2, 3)))
        yield made


def impatient(seconds: int) -> Profile:
    """1.36's profile, with that long to bind volumes."""
    profile = provider_profile(RELEASE_1_36, Options())
    filters = [
        NamedFilter(each.name, dataclasses.replace(each.plugin, bind_timeout_s=seconds))
        if isinstance(each.plugin, VolumeBinding)
        else each
        for each in profile.filters
    ]
    return dataclasses.replace(profile, filters=tuple(filters))


async def failures(disks: Disks) -> list[str]:
    events = await events_of(disks.client, disks.namespace)
    return [each["note"] for each in events if each["reason"] == "FailedScheduling"]


# -- volumes that are there -----------------------------------------------------------------------------------------------


def test_pods_go_where_their_volumes_are_and_none_is_given_twice(volume_plane: ControlPlane) -> None:
    asyncio.run(_local_volumes(volume_plane))


async def _local_volumes(plane: ControlPlane) -> None:
    async with disks(plane) as made:
        names = [f"{made.namespace}-v{i}" for i in range(12)]
        # Four pairs on one node, one on each of the others: without a look at what is taken pods would spread evenly.
        on = {name: f"node-000{'111111112233'[i]}" for i, name in enumerate(names)}
        await made.make("PersistentVolume", *(a_volume(v, made.class_name, node) for v, node in on.items()))
        await made.make("PersistentVolumeClaim", *(a_claim(f"c{i}", made.class_name) for i in range(14)))
        # They are there before the scheduler is: it takes them from the queue all at once.
        await made.make("Pod", *(a_user(f"p{i}", f"c{2 * i}", f"c{2 * i + 1}") for i in range(6)))
        async with scheduling(made.client) as scheduler:
            nodes = await until_bound(made.client, made.namespace, *(f"p{i}" for i in range(6)))
            assert sorted(Counter(nodes.values()).values()) == [1, 1, 4]
            taken = []
            for i in range(12):
                claim = await made.get("PersistentVolumeClaim", f"c{i}")
                taken.append(claim["spec"]["volumeName"])
                assert on[taken[-1]] == nodes[f"p{i // 2}"]
                volume = await made.get("PersistentVolume", taken[-1])
                assert volume["metadata"]["annotations"]["pv.kubernetes.io/bound-by-controller"] == "yes"
                assert volume["spec"]["claimRef"]["uid"] == claim["metadata"]["uid"]
            assert sorted(taken) == sorted(names)
            # Nothing is left for the next one, until there is.
            await made.make("Pod", a_user("late", "c12", "c13"))
            told = await until_told(made.client, made.namespace, "late", "Unschedulable")
            assert "3 node(s) didn't find available persistent volumes to bind" in told["message"]
            more = [a_volume(f"{made.namespace}-w{i}", made.class_name, "node-0002") for i in (1, 2)]
            await made.make("PersistentVolume", *more)
            assert await until_bound(made.client, made.namespace, "late") == {"late": "node-0002"}
            await real.until(lambda: not scheduler.queue.n_in_flight, "all bindings to be answered")
        assert all(PREBIND not in note for note in await failures(made))


def test_one_claim_takes_two_pods_to_one_node(volume_plane: ControlPlane) -> None:
    asyncio.run(_shared(volume_plane))


async def _shared(plane: ControlPlane) -> None:
    async with disks(plane) as made:
        volumes = [a_volume(f"{made.namespace}-v{i}", made.class_name, f"node-000{i}") for i in (1, 2, 3)]
        await made.make("PersistentVolume", *volumes)
        await made.make("PersistentVolumeClaim", a_claim("c", made.class_name))
        await made.make("Pod", *(a_user(f"p{i}", "c") for i in range(3)))
        async with scheduling(made.client):
            nodes = await until_bound(made.client, made.namespace, "p0", "p1", "p2")
            volume = (await made.get("PersistentVolumeClaim", "c"))["spec"]["volumeName"]
            assert set(nodes.values()) == {volume.replace(f"{made.namespace}-v", "node-000")}


def test_claims_that_are_bound_at_once_are_waited_for(volume_plane: ControlPlane) -> None:
    asyncio.run(_immediate(volume_plane))


async def _immediate(plane: ControlPlane) -> None:
    async with disks(plane, "Immediate") as made:
        await made.make("PersistentVolumeClaim", a_claim("c", made.class_name))
        await made.make("Pod", a_user("p", "c"))
        async with scheduling(made.client):
            told = await until_told(made.client, made.namespace, "p", "Unschedulable")
            assert told["message"].startswith(
                "0/3 nodes are available: pod has unbound immediate PersistentVolumeClaims."
            )
            await made.make("PersistentVolume", a_volume(f"{made.namespace}-v", made.class_name, "node-0002"))
            # The controller binds a claim that it knows when it looks at all again, or at the claim.
            await made.client.patch(
                made.path("PersistentVolumeClaim", "c"), {"metadata": {"labels": {"look": "again"}}}
            )
            assert await until_bound(made.client, made.namespace, "p") == {"p": "node-0002"}


# -- volumes that are provisioned -----------------------------------------------------------------------------------------


class Provisioner:
    """Makes a volume for each claim that names a node, after it has failed for some of them."""

    def __init__(self, disks: Disks, n_failures: int = 0) -> None:
        self._disks = disks
        self.n_failures = n_failures
        self.made: list[str] = []

    async def run(self) -> None:
        disks = self._disks
        query = disks.path("PersistentVolumeClaim")
        start = json.loads(await disks.client.get(query))["metadata"]["resourceVersion"]
        async with disks.client.watch(f"{query}?watch=1&resourceVersion={start}", idle_s=60.0) as chunks:
            rest = b""
            async for chunk in chunks:
                *lines, rest = (rest + chunk).split(b"\n")
                for line in filter(None, lines):
                    await self._take(json.loads(line)["object"])

    async def _take(self, claim: dict[str, Any]) -> None:
        meta, disks = claim["metadata"], self._disks
        node_name = meta.get("annotations", {}).get(SELECTED_NODE)
        volume = f"pvc-{meta['uid']}"
        if not node_name or volume in self.made or meta.get("deletionTimestamp"):
            return
        if self.n_failures:
            self.n_failures -= 1
            gone = {"metadata": {"annotations": {SELECTED_NODE: None}}}
            await disks.client.patch(disks.path("PersistentVolumeClaim", meta["name"]), gone)
            return
        self.made.append(volume)
        ref = {"kind": "PersistentVolumeClaim", "apiVersion": "v1", "uid": meta["uid"]}
        ref |= {"namespace": meta["namespace"], "name": meta["name"]}
        body = a_volume(volume, disks.class_name, node_name, claimRef=ref)
        body["metadata"]["annotations"] = {"pv.kubernetes.io/provisioned-by": "example.com/disk"}
        await disks.make("PersistentVolume", body)


@asynccontextmanager
async def provisioning(plane: ControlPlane, n_failures: int = 0) -> AsyncIterator[tuple[Disks, Provisioner]]:
    async with disks(plane, provisioner="example.com/disk") as made:
        provisioner = Provisioner(made, n_failures)
        running = asyncio.create_task(provisioner.run())
        try:
            yield made, provisioner
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)


def test_volumes_are_provisioned_where_pods_go(volume_plane: ControlPlane) -> None:
    asyncio.run(_provisioned(volume_plane))


async def _provisioned(plane: ControlPlane) -> None:
    async with provisioning(plane) as (made, provisioner), scheduling(made.client) as scheduler:
        await made.make("PersistentVolumeClaim", *(a_claim(f"c{i}", made.class_name) for i in range(6)))
        await made.make("Pod", *(a_user(f"p{i}", f"c{i}") for i in range(6)))
        nodes = await until_bound(made.client, made.namespace, *(f"p{i}" for i in range(6)))
        assert len(provisioner.made) == 6
        for i in range(6):
            claim = await made.get("PersistentVolumeClaim", f"c{i}")
            assert claim["metadata"]["annotations"][SELECTED_NODE] == nodes[f"p{i}"]
        await real.until(lambda: not scheduler.queue.n_in_flight, "all bindings to be answered")
        assert await failures(made) == []


def test_a_pod_whose_volume_can_not_be_provisioned_is_decided_again(volume_plane: ControlPlane) -> None:
    asyncio.run(_failing(volume_plane))


async def _failing(plane: ControlPlane) -> None:
    async with provisioning(plane, 1) as (made, provisioner), scheduling(made.client) as scheduler:
        await made.make("PersistentVolumeClaim", a_claim("c", made.class_name))
        await made.make("Pod", a_user("p", "c"))
        await until_bound(made.client, made.namespace, "p")
        assert (provisioner.n_failures, len(provisioner.made)) == (0, 1)
        await real.until(lambda: not scheduler.queue.n_in_flight, "all bindings to be answered")
        await asyncio.sleep(0.1)
        (why,) = await failures(made)
        assert why == f'{PREBIND}provisioning failed for PVC "c"'


def test_claims_that_come_with_a_pod(volume_plane: ControlPlane) -> None:
    asyncio.run(_ephemeral(volume_plane))


async def _ephemeral(plane: ControlPlane) -> None:
    async with provisioning(plane) as (made, _), scheduling(made.client):
        # Somebody else's claim has the name that the second pod's would have.
        await made.make("PersistentVolumeClaim", a_claim("q-data", made.class_name))
        volume = {
            "name": "data",
            "ephemeral": {"volumeClaimTemplate": {"spec": claim_spec(made.class_name)}},
        }
        await made.make("Pod", *(a_pod(name, volumes=[volume]) for name in ("p", "q")))
        nodes = await until_bound(made.client, made.namespace, "p")
        claim = await made.get("PersistentVolumeClaim", "p-data")
        assert claim["metadata"]["annotations"][SELECTED_NODE] == nodes["p"]
        assert claim["metadata"]["ownerReferences"][0]["name"] == "p"
        told = await until_told(made.client, made.namespace, "q", "Unschedulable")
        assert "was not created for pod" in told["message"]


# -- volumes that go wrong: no controller runs, what it does is done by hand ----------------------------------------------


def test_a_pod_whose_volume_vanishes_goes_back(control_plane: ControlPlane) -> None:
    asyncio.run(_vanishing(control_plane))


async def _vanishing(plane: ControlPlane) -> None:
    async with disks(plane) as made:
        small, big = f"{made.namespace}-small", f"{made.namespace}-big"
        await made.make_available(
            a_volume(small, made.class_name, "node-0001"), a_volume(big, made.class_name, "node-0002", "2Gi")
        )
        await made.make("PersistentVolumeClaim", a_claim("c", made.class_name))
        # A node selector does not do: where its volume is, the pod is kept by the volume alone.
        async with scheduling(made.client) as scheduler:
            await made.make("Pod", a_user("p", "c"))
            first = await _until_one_is_taken(made, small, big)
            assert (await pods_of(made.client, made.namespace))["p"]["spec"].get("nodeName") is None
            await made.destroy_volume(first)
            told = await until_told(made.client, made.namespace, "p", "SchedulerError")
            assert told["message"] == (
                f'{PREBIND}failed to check binding: persistentvolumes "{first}" not found'
            )
            second = small if first == big else big
            await made.until("PersistentVolume", second, lambda found: found["spec"].get("claimRef"))
            await made.bind_by_hand("c", second)
            nodes = await until_bound(made.client, made.namespace, "p")
            assert nodes["p"] == ("node-0001" if second == small else "node-0002")
            await real.until(lambda: not scheduler.queue.n_in_flight, "all bindings to be answered")


async def _until_one_is_taken(made: Disks, *names: str) -> str:
    async with asyncio.timeout(30.0):
        while True:
            for name in names:
                if (await made.get("PersistentVolume", name))["spec"].get("claimRef"):
                    return name
            await asyncio.sleep(0.05)


def test_nobody_waits_for_ever(control_plane: ControlPlane) -> None:
    asyncio.run(_timeout(control_plane))


async def _timeout(plane: ControlPlane) -> None:
    async with disks(plane) as made:
        await made.make_available(a_volume(f"{made.namespace}-v", made.class_name, "node-0003"))
        await made.make("PersistentVolumeClaim", a_claim("c", made.class_name))
        async with scheduling(made.client, impatient(1)):
            await made.make("Pod", a_user("p", "c"))
            told = await until_told(made.client, made.namespace, "p", "SchedulerError")
            assert told["message"] == f"{PREBIND}context deadline exceeded"
            # What was written stays, and so the next attempt takes the same volume.
            await made.bind_by_hand("c", f"{made.namespace}-v")
            assert await until_bound(made.client, made.namespace, "p") == {"p": "node-0003"}


def test_a_pod_that_goes_while_it_waits_gives_its_volume_back(control_plane: ControlPlane) -> None:
    asyncio.run(_deleted(control_plane))


async def _deleted(plane: ControlPlane) -> None:
    async with disks(plane) as made:
        volume = f"{made.namespace}-v"
        await made.make_available(a_volume(volume, made.class_name, "node-0003"))
        await made.make("PersistentVolumeClaim", a_claim("c", made.class_name), a_claim("d", made.class_name))
        async with scheduling(made.client) as scheduler:
            await made.make("Pod", a_user("p", "c"))
            await made.until("PersistentVolume", volume, lambda found: found["spec"].get("claimRef"))
            await made.make("Pod", a_user("q", "d"))
            await until_told(made.client, made.namespace, "q", "Unschedulable")
            await made.client.delete(made.path("Pod", "p"), {"gracePeriodSeconds": 0})
            await real.until(lambda: not scheduler.queue.n_in_flight, "the pod to be forgotten")
            # The controller would free the volume once the claim is gone.
            await made.client.patch(made.path("PersistentVolume", volume), {"spec": {"claimRef": None}})
            await made.until(
                "PersistentVolume", volume, lambda found: found["spec"].get("claimRef", {}).get("name") == "d"
            )
            await made.bind_by_hand("d", volume)
            assert await until_bound(made.client, made.namespace, "q") == {"q": "node-0003"}
