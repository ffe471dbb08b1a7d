"""A cluster that is fed by watches equals one that is loaded from lists of the same objects, whatever happened meanwhile."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

import pytest

from berth.live.api_errors import ConflictError, ConnectionLostError
from berth.live.client import STRATEGIC_PATCH, ApiClient, Limits
from berth.live.credentials import Credentials
from berth.live.events import Event
from berth.live.live_cluster import LiveCluster
from berth.live.reflector import Pace
from berth.sim.control_plane.plane import ControlPlane
from tests.control_plane.proxy import proxying
from tests.live import real
from tests.live.real import path_of

QUICK = Pace(page=200, first_delay_s=0.1, longest_delay_s=0.5)


async def create_pods(client: ApiClient, namespace: str, count: range) -> None:
    path = path_of("Pod", namespace)
    await real.all_at_once(partial(client.post, path, real.pod(i)) for i in count)


async def bind(client: ApiClient, namespace: str, i: int, node: int) -> None:
    name = f"pod-{i:05d}"
    path = path_of("Pod", namespace, name) + "/binding"
    await client.post(path, real.binding(name, f"node-{node:04d}"))


async def finish(client: ApiClient, namespace: str, i: int, phase: str) -> None:
    path = path_of("Pod", namespace, f"pod-{i:05d}") + "/status"
    await client.patch(path, {"status": {"phase": phase}}, STRATEGIC_PATCH)


def test_all_kinds_come_change_and_go(control_plane: ControlPlane, tmp_path: Path) -> None:
    asyncio.run(_all_kinds(control_plane, tmp_path))


async def _all_kinds(plane: ControlPlane, folder: Path) -> None:
    async with real.connect(plane) as client, real.a_namespace(client) as namespace:
        await real.all_at_once(partial(client.post, "/api/v1/nodes", real.node(i)) for i in range(400))
        await create_pods(client, namespace, range(1500))
        async with LiveCluster(client, pace=Pace(page=200)) as live:
            assert not live.synced
            await live.wait_synced()
            await real.until_equal(live.cluster, await real.loaded(client, folder))
            assert len(live.cluster.pods) == 1500

            await real.all_at_once(
                [partial(client.post, "/api/v1/nodes", real.node(i)) for i in range(400, 500)]
                + [partial(bind, client, namespace, i, i % 500) for i in range(1000)]
            )
            await create_pods(client, namespace, range(1500, 2000))
            for kind, body in real.others().items():
                await client.post(path_of(kind, namespace), body)
            await real.until_equal(live.cluster, await real.loaded(client, folder))
            assert len(live.cluster.nodes) == 500
            assert sum(live.cluster.requested.of(3)) == 1000
            assert all(len(shelf) for shelf in live.cluster.objects.by_kind().values())

            await _change_everything(client, namespace)
            await real.until_equal(live.cluster, await real.loaded(client, folder))
            assert len(live.cluster.nodes) == 480
            assert live.cluster.n_homeless > 0
            assert {reflector.n_lists for reflector in live.reflectors.values()} == {1}


async def _change_everything(client: ApiClient, namespace: str) -> None:
    node_patches = (
        {"metadata": {"labels": {"zone": "z"}}},
        {"spec": {"unschedulable": True}},
        {"metadata": {"annotations": {"beat": "1"}}},
    )
    jobs: list[Callable[[], Awaitable[object]]]
    jobs = [partial(finish, client, namespace, i, "Running") for i in range(0, 600)]
    jobs += [partial(finish, client, namespace, i, "Succeeded") for i in range(600, 700)]
    jobs += [
        partial(client.delete, path_of("Pod", namespace, f"pod-{i:05d}"), {"gracePeriodSeconds": 0})
        for i in (*range(700, 800), *range(1600, 1700))
    ]
    jobs += [
        partial(client.patch, f"/api/v1/nodes/node-{i:04d}", node_patches[i % 3]) for i in range(100, 160)
    ]
    jobs += [partial(client.delete, f"/api/v1/nodes/node-{i:04d}") for i in range(20)]
    jobs += [
        partial(client.patch, path_of("Service", namespace, "it"), {"spec": {"selector": {"app": "other"}}}),
        partial(client.patch, path_of("Deployment", namespace, "it"), {"spec": {"replicas": 3}}),
        partial(client.delete, path_of("StorageClass", namespace, "it")),
        partial(client.delete, path_of("ReplicaSet", namespace, "it")),
    ]
    await real.all_at_once(jobs)
    # The name is another pod's now.
    await client.post(path_of("Pod", namespace), real.pod(700, nodeName="node-0200"))


def test_a_cluster_that_lives(own_control_plane: ControlPlane, tmp_path: Path) -> None:
    """Controllers make the pods, kube-scheduler binds them, KWOK's kubelets run them; the cluster follows."""
    plane = own_control_plane
    plane.start_controller_manager()
    plane.start_kwok()
    plane.start_scheduler()
    asyncio.run(_living(plane, tmp_path))


async def _living(plane: ControlPlane, folder: Path) -> None:
    async with (
        real.connect(plane) as client,
        real.a_namespace(client) as namespace,
        LiveCluster(client, pace=QUICK) as live,
    ):
        await real.all_at_once(partial(client.post, "/api/v1/nodes", real.node(i)) for i in range(1, 6))
        body = real.others()["Deployment"]
        await client.post(path_of("Deployment", namespace), body | {"spec": body["spec"] | {"replicas": 8}})
        pods = live.cluster.pods
        await real.until(lambda: int(pods.column("ready")[pods.alive].sum()) == 8, "eight pods to be ready")
        # Heartbeats, which go on meanwhile, are no differences.
        await real.until_equal(live.cluster, await real.loaded(client, folder))
        assert live.cluster.requested.of(3).sum() == 8
        await client.patch(path_of("Deployment", namespace, "it"), {"spec": {"replicas": 2}})
        await real.until(lambda: len(pods) == 2, "six pods to go")
        await real.until_equal(live.cluster, await real.loaded(client, folder))


def test_a_certificate_of_an_unknown_authority_is_refused(
    control_plane: ControlPlane, tmp_path: Path
) -> None:
    file = control_plane.kubeconfig
    other = tmp_path / "kubeconfig"
    authority = Path(__file__).with_name("authority.crt")
    text = file.read_text("utf-8")
    right = text.split('certificate-authority: "')[1].split('"')[0]
    other.write_text(text.replace(right, str(authority)), "utf-8")

    async def get() -> None:
        async with ApiClient(Credentials(other), Limits(attempts=1)) as client:
            await client.get("/version")

    with pytest.raises(ConnectionLostError, match="certificate verify failed"):
        asyncio.run(get())


def test_what_exists_already_is_a_conflict_in_the_api_servers_words(control_plane: ControlPlane) -> None:
    async def create() -> None:
        async with real.connect(control_plane) as client:
            await client.post("/api/v1/namespaces", {"metadata": {"name": "default"}})

    with pytest.raises(ConflictError, match=r'^409 AlreadyExists: namespaces "default" already exists$'):
        asyncio.run(create())


def test_an_api_server_that_is_killed_and_comes_again(
    own_control_plane: ControlPlane, tmp_path: Path
) -> None:
    asyncio.run(_killed(own_control_plane, tmp_path))


async def _killed(plane: ControlPlane, folder: Path) -> None:
    async with real.connect(plane) as client, real.a_namespace(client) as namespace:
        await real.all_at_once(partial(client.post, "/api/v1/nodes", real.node(i)) for i in range(20))
        async with LiveCluster(client, pace=QUICK) as live:
            await live.wait_synced()
            pods = live.reflectors["Pod"]
            for start in (0, 50):
                # Killed while pods come: what was answered is there, of the rest nobody knows.
                creating = asyncio.create_task(_try_to_create(client, namespace, range(start, start + 50)))
                await asyncio.sleep(0.05)
                plane.apiserver.kill()
                await creating
                await real.until(lambda: bool(pods.trouble), "the loss to be noticed")
                await asyncio.to_thread(plane.start_apiserver)
                await real.until_equal(live.cluster, await real.loaded(client, folder))
            await client.delete("/api/v1/nodes/node-0003")
            await real.until_equal(live.cluster, await real.loaded(client, folder))
            reflectors = live.reflectors.values()
            await real.until(lambda: not any(r.trouble for r in reflectors), "all watches to be open again")


async def _try_to_create(client: ApiClient, namespace: str, count: range) -> None:
    async def create(i: int) -> None:
        with contextlib.suppress(ConnectionLostError):
            await client.post(path_of("Pod", namespace), real.pod(i))

    await real.all_at_once(partial(create, i) for i in count)


def test_a_version_that_etcd_has_forgotten_is_listed_anew_with_what_went_meanwhile(
    own_control_plane: ControlPlane, tmp_path: Path
) -> None:
    asyncio.run(_compacted(own_control_plane, tmp_path))


async def _compacted(plane: ControlPlane, folder: Path) -> None:
    gone: list[str] = []

    def note(event: Event) -> None:
        if event.type == "DELETED":
            gone.append(event.name)

    async with (
        real.connect(plane) as client,
        real.a_namespace(client) as namespace,
        proxying(plane.port) as proxy,
        real.connect(plane, proxy.port) as watching,
    ):
        await real.all_at_once(partial(client.post, "/api/v1/nodes", real.node(i)) for i in range(20))
        await create_pods(client, namespace, range(60))
        await real.all_at_once(partial(bind, client, namespace, i, i % 20) for i in range(40))
        async with LiveCluster(watching, pace=QUICK) as live:
            live.subscribe("Pod", note)
            await live.wait_synced()
            await real.until_equal(live.cluster, await real.loaded(client, folder))
            proxy.silent = True
            now = {"gracePeriodSeconds": 0}
            meanwhile: list[Callable[[], Awaitable[object]]]
            meanwhile = [
                partial(client.delete, path_of("Pod", namespace, f"pod-{i:05d}"), now) for i in range(30)
            ]
            meanwhile += [partial(client.delete, f"/api/v1/nodes/node-{i:04d}") for i in range(5)]
            meanwhile += [
                partial(client.post, path_of(k, namespace), body) for k, body in real.others().items()
            ]
            await real.all_at_once(meanwhile)
            await client.post(path_of("Pod", namespace), real.pod(29))
            plane.apiserver.kill()
            plane.compact()
            await asyncio.to_thread(plane.start_apiserver)
            wanted = await real.loaded(client, folder)
            assert gone == []
            proxy.silent = False
            proxy.cut()
            await real.until_equal(live.cluster, wanted)
            assert sorted(gone) == [f"pod-{i:05d}" for i in range(30)]
            assert live.reflectors["Pod"].n_lists == live.reflectors["Node"].n_lists == 2
            await client.post(path_of("Pod", namespace), real.pod(99))
            await real.until_equal(live.cluster, await real.loaded(client, folder))
