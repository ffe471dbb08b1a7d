"""Whether the workloads of a change may be scaled at all; asked before a round is planned."""

import asyncio
from collections.abc import Sequence

import msgspec

from berth.cluster.cluster import Cluster
from berth.errors import BerthError
from berth.live.api_errors import ApiError, ObjectMissingError
from berth.live.client import ApiClient
from berth.live.module.scales import RefusedError, Scales, Seen
from berth.live.module.tools import Tools
from berth.module.changes import Change, WorkloadName
from berth.module.services import (
    controlled_by,
    controllers,
    find_service,
    members,
    name_of,
    resolve_workload,
)
from berth.module.templates import current_replica_set
from berth.objects.base import OwnerReference
from berth.objects.workloads import Deployment

_POLL_S = 0.2


class _Ref(msgspec.Struct):
    kind: str = ""
    name: str = ""


class _HpaSpec(msgspec.Struct, rename="camel"):
    scale_target_ref: _Ref = msgspec.field(default_factory=_Ref)


class _HpaMeta(msgspec.Struct):
    name: str = ""


class _Hpa(msgspec.Struct):
    metadata: _HpaMeta
    spec: _HpaSpec


class _Hpas(msgspec.Struct):
    items: list[_Hpa]


async def refusals(changes: Sequence[Change], tools: Tools) -> dict[int, str]:
    """Return why changes can't be carried out, by their places.

    What is wrong with them in other ways (a service that is gone, say) is found when they are planned.
    """
    found = await asyncio.gather(*(_refusal(change, tools) for change in changes))
    return {i: reason for i, reason in enumerate(found) if reason}


async def _refusal(change: Change, tools: Tools) -> str:
    try:
        for workload in _workloads(change, tools.cluster):
            await _check(change, workload, tools)
    except RefusedError as error:
        return str(error)
    except ApiError as error:
        if error.status >= 500:
            raise
        return str(error)
    return ""


def _workloads(change: Change, cluster: Cluster) -> list[WorkloadName]:
    """Return the workloads that a change may scale."""
    try:
        service = find_service(cluster, change.namespace, change.service)
        its_members = members(cluster, service)
        resolved = resolve_workload(cluster, service, change.workload, its_members)
    except BerthError:
        return []
    if change.operation == "add":
        if resolved is None:
            raise RefusedError(
                f"service {change.namespace}/{change.service} has no workload, and pods are added to workloads alone"
            )
        if isinstance(resolved, Deployment) and current_replica_set(cluster, resolved) is None:
            raise RefusedError(f"{name_of(resolved)} has no ReplicaSet yet")
        return [_scaled(change.namespace, name_of(resolved), cluster)]
    if change.workload is not None:
        return [_scaled(change.namespace, change.workload, cluster)]
    owners = (
        controlled_by(cluster, change.namespace, owner) for owner in controllers(cluster, its_members.own)
    )
    return sorted({name_of(owner) for owner in owners if owner is not None}, key=str)


def _scaled(namespace: str, workload: WorkloadName, cluster: Cluster) -> WorkloadName:
    """Return whose replicas change: of a Deployment's ReplicaSet the Deployment's."""
    above = controlled_by(cluster, namespace, OwnerReference(kind=workload.kind, name=workload.name))
    return workload if above is None else name_of(above)


async def _check(change: Change, workload: WorkloadName, tools: Tools) -> None:
    autoscaler = None if change.force else await _autoscaler(change.namespace, workload, tools.client)
    if autoscaler is not None:
        raise RefusedError(
            f"HorizontalPodAutoscaler {autoscaler} sets the replicas of {workload}; `force` overrides that"
        )
    try:
        seen = await _known(change.namespace, workload, tools.scales, tools.patience.settle_s)
    except ObjectMissingError:
        raise RefusedError(f"{workload} is gone") from None
    if (rollout := rollout_of(workload, seen)) is not None:
        raise RefusedError(f"{workload} is being rolled out: {rollout}")
    name = seen.spec.template.spec.scheduler_name
    if change.operation == "add" and tools.foreign(name):
        raise RefusedError(
            f"the pods of {workload} name the scheduler {name}: for Berth to place them,"
            f" set spec.template.spec.schedulerName to {tools.own_name}"
        )


async def _autoscaler(namespace: str, workload: WorkloadName, client: ApiClient) -> str | None:
    path = f"/apis/autoscaling/v2/namespaces/{namespace}/horizontalpodautoscalers"
    try:
        found = msgspec.json.decode(await client.get(path), type=_Hpas)
    except ObjectMissingError:
        return None
    for autoscaler in found.items:
        target = autoscaler.spec.scale_target_ref
        if (target.kind, target.name) == (workload.kind, workload.name):
            return autoscaler.metadata.name
    return None


async def _known(namespace: str, workload: WorkloadName, scales: Scales, timeout_s: float) -> Seen:
    """Return a workload once its status tells of its last change, or when that takes long."""
    deadline = asyncio.get_running_loop().time() + timeout_s
    while True:
        seen = await scales.read(namespace, workload)
        on_the_way = not seen.is_observed or (_is_short(workload, seen) and not seen.failure())
        if not on_the_way or asyncio.get_running_loop().time() > deadline:
            return seen
        await asyncio.sleep(_POLL_S)


def _is_short(workload: WorkloadName, seen: Seen) -> bool:
    """Tell whether a Deployment has none but new pods, and too few of them: just scaled, or between two templates."""
    status = seen.status
    return workload.kind == "Deployment" and status.replicas == status.updated_replicas < seen.replicas


def rollout_of(workload: WorkloadName, seen: Seen) -> str | None:
    """Say how far a rollout is that is under way; None if there is none."""
    status = seen.status
    if not seen.is_observed:
        return "its controller does not know of its last change yet"
    if workload.kind == "Deployment":
        under_way = status.replicas > status.updated_replicas or (
            _is_short(workload, seen) and not seen.failure()
        )
    elif workload.kind == "StatefulSet":
        rolling = seen.spec.update_strategy.rolling_update if seen.spec.update_strategy else None
        under_way = (
            rolling is not None
            and rolling.partition == 0
            and status.current_revision != status.update_revision
        )
    else:
        under_way = False
    if not under_way:
        return None
    paused = " (it is paused)" if seen.spec.paused else ""
    return f"{status.updated_replicas} of {seen.replicas} pods are of its newest template{paused}"
