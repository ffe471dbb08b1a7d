"""Removals: exactly the chosen pods go, and the replicas follow. What is alike for all kinds of workloads."""

import asyncio
import logging
from contextlib import suppress

from berth.cluster.arrays import NONE
from berth.live.api_errors import ApiError, ConflictError, ObjectMissingError
from berth.live.client import MERGE_PATCH, Repeat
from berth.live.module.orders import BARE, ChosenPod, Order, Outcome, Progress
from berth.live.module.pods import (
    LOWEST_COST,
    active_pods,
    find_pod,
    is_leaving,
    node_of,
    not_first,
)
from berth.live.module.scales import MovedError, RefusedError, Seen, path_of
from berth.live.module.tools import Tools
from berth.live.module.watching import each
from berth.module.templates import ordinal

DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"

log = logging.getLogger(__name__)


async def remove(order: Order, progress: Progress, tools: Tools) -> list[Outcome]:
    """Carry out a removal from where it stands, and return what became of each decision.

    Raises
    ------
    MovedError, RefusedError
        Nothing of it was done, nor will be.
    """
    if order.kind == BARE:
        return await _evict_all(order, progress, tools)
    nodes = {pod.uid: _node(order, pod, tools) for pod in order.pods}
    if progress.scaling is None:
        seen = await _settled(order, progress, tools)
        if order.kind == "StatefulSet":
            _check_highest(order, tools)
        else:
            await _make_first(order, progress, tools, seen)
        await tools.scales.change(order, progress, "scaling", seen.generation, -len(order.pods))
    else:
        # After a restart nobody may be able to tell any more whether it was done: the pods will.
        with suppress(MovedError):
            await tools.scales.change(
                order, progress, "scaling", progress.scaling.generation, -len(order.pods)
            )
    await tools.watching.until_all(
        lambda: sum(_is_gone(order, pod, tools) for pod in order.pods),
        len(order.pods),
        tools.patience.leave_s,
    )
    await tools.watching.until(lambda: not _extra(order, tools), tools.patience.settle_s)
    return await _verify(order, progress, tools, nodes)


def _node(order: Order, pod: ChosenPod, tools: Tools) -> str | None:
    found = find_pod(tools.cluster, order.namespace, pod.name, pod.uid)
    return None if found == NONE else node_of(tools.cluster, found)


def _is_gone(order: Order, pod: ChosenPod, tools: Tools) -> bool:
    return is_leaving(tools.cluster, find_pod(tools.cluster, order.namespace, pod.name, pod.uid))


# -- before the replicas are lowered ---------------------------------------------------------------------------------------


async def _settled(order: Order, progress: Progress, tools: Tools) -> Seen:
    """Wait until the workload has the pods that it is to have, and return it: one too few, and nothing would go."""
    deadline = asyncio.get_running_loop().time() + tools.patience.settle_s
    while True:
        seen = await tools.scales.read(order.namespace, order.workload)
        n_active = len(active_pods(tools.cluster, order.namespace, order.controller))
        on_the_way = bool(progress.deleting)  # their replacements may not have come yet
        if seen.is_observed and (on_the_way or seen.replicas == seen.status.replicas == n_active):
            break
        if asyncio.get_running_loop().time() > deadline:
            why = f": {found}" if (found := await tools.scales.why(order)) else ""
            raise MovedError(f"{order.workload} has {n_active} of {seen.replicas} pods{why}")
        await asyncio.sleep(0.1)
    gone = [p.name for p in order.pods if p.uid not in progress.deleting and _is_gone(order, p, tools)]
    if gone:
        raise MovedError(f"pod {gone[0]} is gone already")
    return seen


def _check_highest(order: Order, tools: Tools) -> None:
    """Refuse where a StatefulSet would take another pod than those chosen: it takes the highest ordinals."""
    chosen = {pod.name for pod in order.pods}
    lowest = min(map(ordinal, chosen))
    names = (
        tools.cluster.pods.names[pod] for pod in active_pods(tools.cluster, order.namespace, order.controller)
    )
    above = sorted((name for name in names if ordinal(name) > lowest and name not in chosen), key=ordinal)
    if above:
        raise MovedError(f"{order.workload} would lose pod {above[-1]} first")


async def _make_first(order: Order, progress: Progress, tools: Tools, seen: Seen) -> None:
    """See to it that a ReplicaSet takes the chosen pods before all others, or what comes in their place."""
    cluster = tools.cluster
    mine, before = {pod.uid: pod for pod in order.pods}, set(order.before)
    pods = active_pods(cluster, order.namespace, order.controller)
    chosen = [pod for pod in pods if cluster.pods.uids[pod] in mine]
    # Those that have come in the place of chosen ones are no others: they are to go.
    others = [pod for pod in pods if (uid := cluster.pods.uids[pod]) not in mine and uid in before]
    late = not_first(cluster, chosen, others)
    if late and not progress.deleting and tools.foreign(seen.spec.template.spec.scheduler_name):
        first = min(others, key=lambda pod: cluster.pods.names[pod])
        raise RefusedError(
            f"{order.workload} would lose another pod (such as {cluster.pods.names[first]}) before"
            f" {cluster.pods.names[late[0]]}, and what came in its place could not be held: its pods name the scheduler"
            f" {seen.spec.template.spec.scheduler_name}; set spec.template.spec.schedulerName to {tools.own_name}"
        )
    new = [cluster.pods.uids[pod] for pod in late if cluster.pods.uids[pod] not in progress.deleting]
    costs = {
        uid: int(cluster.pods.column("deletion_cost")[pod])
        for pod in chosen
        if (uid := cluster.pods.uids[pod]) not in progress.costs and uid not in new
    }
    if new or costs:
        progress.deleting += new
        progress.costs |= costs
        await tools.journal.note(order, progress)
    deleted = [mine[uid] for uid in progress.deleting]
    await each(_delete(order, pod, tools) for pod in deleted)
    await _lower_costs(order, [pod for pod in order.pods if pod.uid in progress.costs], tools)
    if deleted:
        # Their replacements tell that the controller knows of it, and are what it takes next.
        await tools.watching.until(lambda: len(_extra(order, tools)) >= len(deleted), tools.patience.leave_s)
        names = cluster.pods.names
        extra = [ChosenPod(names[pod], cluster.pods.uids[pod]) for pod in _extra(order, tools)]
        await _lower_costs(order, extra, tools)
    await asyncio.sleep(tools.patience.pause_s)


def _extra(order: Order, tools: Tools) -> list[int]:
    """Return the pods that came after the round was planned and have no node."""
    before = set(order.before)
    return [
        pod
        for pod in active_pods(tools.cluster, order.namespace, order.controller)
        if tools.cluster.pods.uids[pod] not in before and node_of(tools.cluster, pod) is None
    ]


async def _delete(order: Order, pod: ChosenPod, tools: Tools) -> None:
    options = {"preconditions": {"uid": pod.uid}}
    try:
        await tools.client.delete(path_of("Pod", order.namespace, pod.name), options)
    except (ObjectMissingError, ConflictError):
        log.debug("pod %s is gone already", pod.name)


async def _lower_costs(order: Order, pods: list[ChosenPod], tools: Tools) -> None:
    await each(_set_cost(order, pod, LOWEST_COST, tools) for pod in pods)
    costs = tools.cluster.pods.column

    def is_seen(pod: ChosenPod) -> bool:
        found = find_pod(tools.cluster, order.namespace, pod.name, pod.uid)
        return is_leaving(tools.cluster, found) or costs("deletion_cost")[found] == LOWEST_COST

    if not await tools.watching.until(lambda: all(map(is_seen, pods)), tools.patience.settle_s):
        raise MovedError("pods' deletion costs were changed by someone else meanwhile")


async def _set_cost(order: Order, pod: ChosenPod, cost: int | None, tools: Tools) -> None:
    found = find_pod(tools.cluster, order.namespace, pod.name, pod.uid)
    if found == NONE or tools.cluster.pods.column("deletion_cost")[found] == (cost or 0):
        return
    annotations = {DELETION_COST: None if cost is None else str(cost)}
    patch = {"metadata": {"uid": pod.uid, "annotations": annotations}}
    path = path_of("Pod", order.namespace, pod.name)
    try:
        await tools.client.patch(path, patch, MERGE_PATCH, repeat=Repeat.FREELY)
    except (ObjectMissingError, ConflictError):
        log.debug("pod %s is gone already", pod.name)


# -- afterwards ------------------------------------------------------------------------------------------------------------


async def _verify(
    order: Order, progress: Progress, tools: Tools, nodes: dict[str, str | None]
) -> list[Outcome]:
    """Tell who went; raise the replicas again by those that did not, unless others went in their place."""
    left = [pod for pod in order.pods if not _is_gone(order, pod, tools)]
    reason = ""
    if left or progress.putting_back is not None:
        reason = await _raise_again(order, progress, tools, left)
        await restore_costs(order, progress, tools)
    return [
        Outcome(pod.name, nodes[pod.uid], reason=f"pod {pod.name} did not go: {reason}")
        if pod in left
        else Outcome(pod.name, nodes[pod.uid])
        for pod in order.pods
    ]


async def _raise_again(order: Order, progress: Progress, tools: Tools, left: list[ChosenPod]) -> str:
    chosen = {pod.uid for pod in order.pods}
    there = active_pods(tools.cluster, order.namespace, order.controller)
    n_others = len(set(order.before) - chosen - {tools.cluster.pods.uids[pod] for pod in there})
    if n_others:
        return f"{n_others} other pods of {order.workload} went meanwhile"
    reason = await tools.scales.why(order) or f"nothing happened within {tools.patience.leave_s:g} s"
    assert progress.scaling is not None  # pods are waited for once it was lowered
    try:
        await tools.scales.change(order, progress, "putting_back", progress.scaling.generation + 1, len(left))
    except MovedError as error:
        return f"{reason}; the replicas stay: {error}"
    return f"{reason}; the replicas were put back"


async def restore_costs(order: Order, progress: Progress, tools: Tools) -> None:
    """Give the chosen pods that stay the deletion costs that they had."""
    for pod in order.pods:
        if pod.uid in progress.costs:
            await _set_cost(order, pod, progress.costs[pod.uid] or None, tools)


# -- pods without a controller ---------------------------------------------------------------------------------------------


async def _evict_all(order: Order, progress: Progress, tools: Tools) -> list[Outcome]:
    gone = {p.uid for p in order.pods if _is_gone(order, p, tools) and p.uid not in progress.deleting}
    if not progress.deleting:
        progress.deleting = [pod.uid for pod in order.pods if pod.uid not in gone]
        await tools.journal.note(order, progress)
    outcomes = []
    for pod in order.pods:
        if pod.uid in gone:
            outcomes.append(Outcome(pod.name, reason=f"pod {pod.name} is gone already", again=True))
        else:
            outcomes.append(await _evict(order, pod, tools))
    return outcomes


async def _evict(order: Order, pod: ChosenPod, tools: Tools) -> Outcome:
    node = _node(order, pod, tools)
    body = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": pod.name, "namespace": order.namespace},
        "deleteOptions": {"preconditions": {"uid": pod.uid}},
    }
    path = path_of("Pod", order.namespace, pod.name)
    try:
        await tools.client.post(f"{path}/eviction", body, repeat=Repeat.NEVER)
    except (ObjectMissingError, ConflictError):
        log.debug("pod %s is gone already", pod.name)
    except ApiError as error:
        if error.status != 429:
            raise
        return Outcome(pod.name, node, reason=error.message)
    if await tools.watching.until(lambda: _is_gone(order, pod, tools), tools.patience.leave_s):
        return Outcome(pod.name, node)
    return Outcome(pod.name, node, reason=f"pod {pod.name} did not go within {tools.patience.leave_s:g} s")
