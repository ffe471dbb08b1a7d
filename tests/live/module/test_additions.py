"""Pods are added on a real control plane: exactly on the planned nodes, or not at all."""

import asyncio
import dataclasses
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from berth.cluster.arrays import NONE
from berth.sim.control_plane.plane import ControlPlane
from tests.live.module.shop import (
    LABELS,
    QUICK,
    Shop,
    a_shop,
    nodes_of,
    planned,
    reasons,
    template,
    workload,
)
from tests.live.real import until

Scenario = Callable[[Shop], Awaitable[None]]


def run(plane: ControlPlane, folder: Path, scenario: Scenario) -> None:
    async def inner() -> None:
        async with a_shop(plane, folder) as shop:
            await scenario(shop)

    asyncio.run(inner())


@pytest.mark.parametrize("kind", ["Deployment", "ReplicaSet", "StatefulSet", "ReplicationController"])
def test_pods_come_where_they_were_planned(plane: ControlPlane, tmp_path: Path, kind: str) -> None:
    async def scenario(shop: Shop) -> None:
        body = workload("web", 1)
        if kind == "ReplicationController":
            body["spec"]["selector"] = LABELS
        if kind == "StatefulSet":
            body["spec"]["serviceName"] = "web"
        await shop.create(kind, body)
        await shop.ready(1)
        before = await shop.pods()
        request = await shop.asked("add", 3)
        assert reasons(request) == {""}
        assert request.state == "applied"
        added = {name: pod for name, pod in (await shop.pods()).items() if name not in before}
        assert {d.pod: d.node for d in request.decisions} == {
            name: pod["spec"]["nodeName"] for name, pod in added.items()
        }
        assert nodes_of(added) == Counter(decision["node"] for decision in shop.plan())
        assert await shop.replicas(kind) == 4
        assert shop.live.state.n_assumed == 0
        await shop.ready(4)
        # Nothing is kept free any more.
        assert int(shop.live.cluster.requested.of(3).sum()) == 4

    run(plane, tmp_path, scenario)


def test_two_requests_in_a_round_and_pods_of_others_meanwhile(plane: ControlPlane, tmp_path: Path) -> None:
    async def scenario(shop: Shop) -> None:
        await shop.create("Deployment", workload("web", 1))
        other = workload("other", 0, labels={"app": "other"})
        other["spec"]["selector"] = {"matchLabels": {"app": "other"}}
        await shop.create("Deployment", other)
        await shop.ready(1)
        first, second = shop.submit("add", 2), shop.submit("add", 2)
        scaled = shop.client.patch(
            f"/apis/apps/v1/namespaces/{shop.namespace}/deployments/other", {"spec": {"replicas": 4}}
        )
        await asyncio.gather(shop.round(), scaled)
        decided = [d for name in (first, second) for d in shop.store.request(name).decisions]  # type: ignore[union-attr]
        assert [d.reason for d in decided] == [None] * 4
        pods = await shop.pods()
        added = {str(d.pod): pods[str(d.pod)] for d in decided}
        assert nodes_of(added) == Counter(decision["node"] for decision in shop.plan())
        await shop.ready(9)

    run(plane, tmp_path, scenario)


def test_a_node_that_goes_before_the_pod_comes(plane: ControlPlane, tmp_path: Path) -> None:
    async def scenario(shop: Shop) -> None:
        await shop.create("Deployment", workload("web", 1))
        await shop.ready(1)
        shop.submit("add", 1)
        loop = asyncio.get_running_loop()
        gone: list[str] = []

        def lose_node(action: Callable[[], None]) -> None:
            """The planned node goes once the plan is on record."""
            action()
            record = shop.store.round(1)
            if record is not None and record.plan is not None and not gone:
                gone.append(planned(record.plan)[0]["node"])
                deleted = shop.client.delete(f"/api/v1/nodes/{gone[0]}")
                asyncio.run_coroutine_threadsafe(deleted, loop).result()
                nodes = shop.live.cluster.nodes
                seen = until(lambda: nodes.row(gone[0]) == NONE, "the node to go")
                asyncio.run_coroutine_threadsafe(seen, loop).result()

        result = await shop.round(lose_node)
        (decided,) = result.outcomes[0].decisions
        assert decided.reason is None
        assert decided.node not in (None, *gone)
        assert decided.node == (await shop.pods())[str(decided.pod)]["spec"]["nodeName"]

    run(plane, tmp_path, scenario)


def test_what_a_quota_forbids_is_taken_back(plane: ControlPlane, tmp_path: Path) -> None:
    async def scenario(shop: Shop) -> None:
        await shop.stop()
        shop.patience = dataclasses.replace(QUICK, appear_s=4.0)
        await shop.start()
        await shop.create("Deployment", workload("web", 1))
        await shop.ready(1)
        quota = {"metadata": {"name": "two"}, "spec": {"hard": {"pods": "2"}}}
        path = f"/api/v1/namespaces/{shop.namespace}/resourcequotas"
        await shop.client.post(path, quota)
        for _ in range(100):
            if b'"used"' in await shop.client.get(f"{path}/two"):
                break
            await asyncio.sleep(0.1)
        request = await shop.asked("add", 3)
        assert [d.reason is None for d in request.decisions].count(True) == 1
        (reason,) = reasons(request) - {""}
        assert "exceeded quota: two" in reason
        assert reason.endswith("its replicas were put back")
        assert await shop.replicas() == 2
        await shop.ready(2)
        assert int(shop.live.cluster.requested.of(3).sum()) == 2

    run(plane, tmp_path, scenario)


def test_refusals(plane: ControlPlane, tmp_path: Path) -> None:
    async def scenario(shop: Shop) -> None:
        await shop.create("Deployment", workload("web", 1))
        await shop.ready(1)
        autoscaler = {
            "metadata": {"name": "auto"},
            "spec": {
                "maxReplicas": 5,
                "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
            },
        }
        path = f"/apis/autoscaling/v2/namespaces/{shop.namespace}/horizontalpodautoscalers"
        await shop.client.post(path, autoscaler)
        for operation in ("add", "remove"):
            request = await shop.asked(operation, 1)
            assert request.state == "failed"
            assert reasons(request) == {
                "HorizontalPodAutoscaler auto sets the replicas of deployment/web; `force` overrides that"
            }
        forced = await shop.asked("add", 1, force=True)
        assert reasons(forced) == {""}
        await shop.ready(2)
        await shop.client.delete(f"{path}/auto")

        # A template whose pods nobody binds: the rollout stands still.
        stuck = {"spec": {"template": template("nobody")}}
        await shop.client.patch(f"/apis/apps/v1/namespaces/{shop.namespace}/deployments/web", stuck)
        await shop.ready(2, n_not_ready=1)
        request = await shop.asked("remove", 1)
        (reason,) = reasons(request)
        assert reason.startswith("deployment/web is being rolled out: 1 of 2 pods are of its newest template")
        assert await shop.replicas() == 2

        await shop.client.delete(f"/apis/apps/v1/namespaces/{shop.namespace}/deployments/web")
        await shop.ready(0)
        await shop.create("Deployment", workload("web", 0, scheduler="default-scheduler"))
        await asyncio.sleep(0.5)
        request = await shop.asked("add", 1)
        (reason,) = reasons(request)
        assert reason == (
            "the pods of deployment/web name the scheduler default-scheduler: for Berth to place them,"
            " set spec.template.spec.schedulerName to berth"
        )

    run(plane, tmp_path, scenario)


def test_pods_come_to_the_room_that_others_leave(plane: ControlPlane, tmp_path: Path) -> None:
    async def scenario(shop: Shop) -> None:
        await shop.create("Deployment", workload("web", 4, cpu="15"))
        await shop.ready(4)
        other = workload("other", 0, cpu="15", labels={"app": "other"})
        other["spec"]["selector"] = {"matchLabels": {"app": "other"}}
        await shop.create("StatefulSet", other | {"spec": other["spec"] | {"serviceName": "other"}})
        service = {"spec": {"selector": {"app": "other"}, "ports": [{"port": 80}]}}
        await shop.create("Service", service | {"metadata": {"name": "other"}})
        objects = shop.live.cluster.objects
        await until(lambda: objects.services.get(shop.namespace, "other") is not None, "the service")
        await until(lambda: objects.stateful_sets.get(shop.namespace, "other") is not None, "the StatefulSet")
        added, removed = shop.submit("add", 2, "other"), shop.submit("remove", 2)
        await shop.round()
        decided = {name: shop.store.request(name).decisions for name in (added, removed)}  # type: ignore[union-attr]
        assert [d.reason for made in decided.values() for d in made] == [None] * 4
        assert {d.node for d in decided[added]} == {d.node for d in decided[removed]}
        assert [d["node"] for d in shop.plan()[2:]] == [d.node for d in decided[added]]
        await shop.ready(4)
        assert max(nodes_of(await shop.pods()).values()) == 1

    run(plane, tmp_path, scenario)
