"""Exactly the chosen pods go, on a real control plane."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from berth.live.client import STRATEGIC_PATCH
from berth.sim.control_plane.plane import ControlPlane
from tests.live import real
from tests.live.module.shop import LABELS, Shop, reasons, template, workload
from tests.live.module.test_additions import run
from tests.live.real import path_of, until


async def chosen_go(shop: Shop, number: int, kind: str = "Deployment") -> set[str]:
    """Have pods removed; those that were planned are those that went, and nothing came in their place."""
    before = await shop.pods()
    request = await shop.asked("remove", number)
    assert reasons(request) == {""}
    planned = {decision["pod"] for decision in shop.plan()}
    assert len(planned) == number
    assert {d.pod for d in request.decisions} == planned
    await until(lambda: len(shop.live.cluster.pods) == len(before) - number, "the pods to go")
    after = await shop.pods()
    assert {name: pod["metadata"]["uid"] for name, pod in after.items()} == {
        name: pod["metadata"]["uid"] for name, pod in before.items() if name not in planned
    }
    assert await shop.replicas(kind) == len(after)
    return planned


def body_of(kind: str, replicas: int) -> dict[str, Any]:
    body = workload("web", replicas)
    if kind == "ReplicationController":
        body["spec"]["selector"] = LABELS
    if kind == "StatefulSet":
        body["spec"] |= {"serviceName": "web", "podManagementPolicy": "Parallel"}
    return body


async def make_unready(shop: Shop, name: str) -> None:
    """KWOK's kubelet leaves it so."""
    conditions = [{"type": "Ready", "status": "False"}, {"type": "ContainersReady", "status": "False"}]
    path = path_of("Pod", shop.namespace, name) + "/status"
    await shop.client.patch(path, {"status": {"conditions": conditions}}, STRATEGIC_PATCH)


@pytest.mark.parametrize("kind", ["Deployment", "ReplicaSet", "StatefulSet", "ReplicationController"])
def test_the_chosen_pods_go(plane: ControlPlane, tmp_path: Path, kind: str) -> None:
    async def scenario(shop: Shop) -> None:
        await shop.create(kind, body_of(kind, 6))
        await shop.ready(6)
        planned = await chosen_go(shop, 2, kind)
        if kind == "StatefulSet":
            assert planned == {"web-5", "web-4"}
        await chosen_go(shop, 1, kind)

    run(plane, tmp_path, scenario)


def test_a_sibling_that_is_not_ready_stays(plane: ControlPlane, tmp_path: Path) -> None:
    """The ReplicaSet would take it before any that is ready: so the chosen pod is deleted, and what replaces it is taken."""

    async def scenario(shop: Shop) -> None:
        await shop.create("Deployment", workload("web", 4))
        await shop.ready(4)
        pods = await shop.pods()
        # The module would choose the one that is not ready, too, where it is on the chosen node: it is of a service apart.
        frail = sorted(pods)[0]
        await shop.client.patch(
            path_of("Pod", shop.namespace, frail), {"metadata": {"labels": {"frail": "yes"}}}
        )
        selector = {"spec": {"selector": {"app": "web", "sound": "yes"}}}
        for name in sorted(pods)[1:]:
            await shop.client.patch(
                path_of("Pod", shop.namespace, name), {"metadata": {"labels": {"sound": "yes"}}}
            )
        await shop.client.patch(path_of("Service", shop.namespace, "web"), selector)
        await make_unready(shop, frail)
        await shop.ready(3, n_not_ready=1)
        await until(
            lambda: (
                shop.live.cluster.objects.services.get(shop.namespace, "web").spec.selector  # type: ignore[union-attr]
                == selector["spec"]["selector"]
            ),
            "the selector",
        )
        planned = await chosen_go(shop, 2)
        assert frail not in planned

    run(plane, tmp_path, scenario)


def test_a_sibling_that_is_not_ready_of_another_scheduler(plane: ControlPlane, tmp_path: Path) -> None:
    async def scenario(shop: Shop) -> None:
        await shop.create("Deployment", workload("web", 2, scheduler="other"))
        await shop.ready(0, n_not_ready=2)
        (first, second) = sorted(await shop.pods())
        for name in (first, second):
            await shop.client.post(
                path_of("Pod", shop.namespace, name) + "/binding", real.binding(name, "node-0001")
            )
        await shop.ready(2)
        await shop.client.patch(
            path_of("Pod", shop.namespace, first), {"metadata": {"labels": {"sound": "yes"}}}
        )
        selector = {"spec": {"selector": {"app": "web", "sound": "yes"}}}
        await shop.client.patch(path_of("Service", shop.namespace, "web"), selector)
        await make_unready(shop, second)
        await shop.ready(1, n_not_ready=1)
        await asyncio.sleep(0.3)
        request = await shop.asked("remove", 1)
        (reason,) = reasons(request)
        assert reason.startswith(f"deployment/web would lose another pod (such as {second}) before {first}")
        assert reason.endswith(
            "its pods name the scheduler other; set spec.template.spec.schedulerName to berth"
        )
        assert await shop.replicas() == 2
        assert set(await shop.pods()) == {first, second}
        annotations = (await shop.get("Pod", first))["metadata"].get("annotations", {})
        assert "controller.kubernetes.io/pod-deletion-cost" not in annotations

    run(plane, tmp_path, scenario)


def test_bare_pods_are_evicted_unless_a_budget_forbids_it(plane: ControlPlane, tmp_path: Path) -> None:
    async def scenario(shop: Shop) -> None:
        for i in range(3):
            await shop.create("Pod", {**template(), "metadata": {"name": f"bare-{i}", "labels": LABELS}})
        await shop.ready(3)
        before = set(await shop.pods())
        request = await shop.asked("remove", 1)
        assert reasons(request) == {""}
        await until(lambda: len(shop.live.cluster.pods) == 2, "the pod to go")
        assert before - set(await shop.pods()) == {d.pod for d in request.decisions}

        budget = {
            "spec": {"minAvailable": 2, "selector": {"matchLabels": LABELS}},
            "metadata": {"name": "both"},
        }
        await shop.create("PodDisruptionBudget", budget)
        await asyncio.sleep(1.0)
        request = await shop.asked("remove", 1)
        (reason,) = reasons(request)
        assert "violate the pod's disruption budget" in reason
        assert len(await shop.pods()) == 2

    run(plane, tmp_path, scenario)


def test_a_stateful_set_that_has_got_another_pod_on_top(plane: ControlPlane, tmp_path: Path) -> None:
    async def scenario(shop: Shop) -> None:
        await shop.create("StatefulSet", body_of("StatefulSet", 3))
        await shop.ready(3)
        shop.submit("remove", 1)
        loop = asyncio.get_running_loop()
        scaled: list[bool] = []

        def scale(action: Any) -> None:
            """Someone else adds a pod once the plan is on record."""
            action()
            record = shop.store.round(1)
            if record is not None and record.plan is not None and not scaled:
                scaled.append(True)

                async def add_one() -> None:
                    path = path_of("StatefulSet", shop.namespace, "web")
                    await shop.client.patch(path, {"spec": {"replicas": 4}})
                    await shop.ready(4)

                asyncio.run_coroutine_threadsafe(add_one(), loop).result()

        result = await shop.round(scale)
        (outcome,) = result.outcomes
        assert [d.reason for d in outcome.decisions] == ["statefulset/web would lose pod web-3 first"]
        assert len(outcome.requeue) == 1
        # It is decided anew, once.
        retry = await shop.round()
        assert [(d.pod, d.reason) for d in retry.outcomes[0].decisions] == [("web-3", None)]
        await until(lambda: len(shop.live.cluster.pods) == 3, "the pod to go")
        assert set(await shop.pods()) == {"web-0", "web-1", "web-2"}

    run(plane, tmp_path, scenario)
