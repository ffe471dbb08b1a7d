"""Services: which pods are theirs, and which workload makes them."""

from dataclasses import dataclass

import numpy as np

from berth.cluster.arrays import NONE
from berth.cluster.cluster import Cluster
from berth.cluster.pods import FAILED, SUCCEEDED, PodIds
from berth.errors import BerthError, NotFoundError
from berth.module.changes import Change, WorkloadName
from berth.objects.base import OwnerReference
from berth.objects.selectors import Selector, from_map
from berth.objects.workloads import (
    Deployment,
    ReplicaSet,
    ReplicationController,
    Service,
    StatefulSet,
    Workload,
)

WORKLOAD_KINDS = ("Deployment", "ReplicaSet", "StatefulSet", "ReplicationController")


class ServiceError(BerthError):
    """A service of which pods can't be added or removed, for a reason that its message says."""


@dataclass(frozen=True, slots=True)
class Members:
    """The pods that a service selects.

    Attributes
    ----------
    own : intp[n]
        Its pods: on a known node or on none yet, neither Succeeded nor Failed nor terminating.
    telling : intp[m]
        Those whose controllers tell which workload the service has: its pods and the terminating ones.
    """

    own: PodIds
    telling: PodIds


def find_service(cluster: Cluster, namespace: str, name: str) -> Service:
    """Return a service by name.

    Raises
    ------
    NotFoundError
        There is none.
    ServiceError
        It has no selector: nobody knows which pods are its own.
    """
    service = cluster.objects.services.get(namespace, name)
    if service is None:
        raise NotFoundError(f"there is no service {namespace}/{name}")
    if not service.spec.selector:
        raise ServiceError(f"service {namespace}/{name} has no selector")
    return service


def check_change(cluster: Cluster, change: Change) -> None:
    """Check that what a change names is there, before it is queued.

    Raises
    ------
    NotFoundError
        The service or the workload is not there.
    ServiceError
        The service has no selector, or does not select the workload's pods.
    """
    service = find_service(cluster, change.namespace, change.service)
    if change.workload is not None:
        workload = find_workload(cluster, change.namespace, change.workload)
        if workload is None:
            raise NotFoundError(f"there is no {change.workload} in namespace {change.namespace}")
        if not selector_of(service).matches(workload.spec.template.metadata.labels):
            raise ServiceError(
                f"service {change.namespace}/{change.service} does not select {change.workload}"
            )


def selector_of(service: Service) -> Selector:
    """Return a service's selector."""
    return from_map(service.spec.selector or {})


def members(cluster: Cluster, service: Service) -> Members:
    """Find the pods that a service selects, as the cluster is now."""
    pods = cluster.pods
    selected = cluster.pods_matching(service.metadata.namespace, selector_of(service))
    phase = pods.column("phase")[selected]
    placed_nowhere_known = (pods.node_row[selected] == NONE) & (pods.column("node_name_id")[selected] != NONE)
    telling = selected[(phase != SUCCEEDED) & (phase != FAILED) & ~placed_nowhere_known]
    return Members(own=telling[~pods.column("terminating")[telling]], telling=telling)


def find_workload(cluster: Cluster, namespace: str, name: WorkloadName) -> Workload | None:
    """Return a workload by name."""
    shelf = cluster.objects.by_kind()[name.kind]
    found = shelf.get(namespace, name.name)
    return found if isinstance(found, Deployment | ReplicaSet | StatefulSet | ReplicationController) else None


def name_of(workload: Workload) -> WorkloadName:
    """Return a workload's name."""
    return WorkloadName(type(workload).__name__, workload.metadata.name)


def resolve_workload(
    cluster: Cluster,
    service: Service,
    override: WorkloadName | None = None,
    its_members: Members | None = None,
) -> Workload | None:
    """Find the workload of a service; None if it has none.

    Parameters
    ----------
    its_members : Members, optional
        The service's, where they have been found already.

    Raises
    ------
    NotFoundError
        The workload that the request names is not there.
    ServiceError
        All that its pods belong to is of another kind, such as a DaemonSet.
    """
    namespace = service.metadata.namespace
    if override is not None:
        workload = find_workload(cluster, namespace, override)
        if workload is None:
            raise NotFoundError(f"there is no {override} in namespace {namespace}")
        return workload
    telling = (its_members or members(cluster, service)).telling
    if len(telling) == 0:
        return _preferred(_selected_by_template(cluster, service))
    found: list[Workload] = []
    others: list[OwnerReference] = []
    for controller in controllers(cluster, telling):
        workload = controlled_by(cluster, namespace, controller)
        if workload is not None:
            found.append(workload)
        elif controller.kind not in WORKLOAD_KINDS:
            others.append(controller)
    if not found and others:
        other = min(others, key=lambda owner: (owner.kind, owner.name))
        raise ServiceError(
            f"service {namespace}/{service.metadata.name} belongs to {other.kind} {other.name}: "
            "its pods can't be added or removed"
        )
    return _preferred(found)


def controllers(cluster: Cluster, pods: PodIds) -> list[OwnerReference]:
    """Return the distinct controllers of pods."""
    owner_ids = np.unique(cluster.pods.column("owner_id")[pods]).tolist()
    found = (controller_of_owners(cluster, owner_id) for owner_id in owner_ids)
    return [controller for controller in found if controller is not None]


def controller_of_owners(cluster: Cluster, owner_id: int) -> OwnerReference | None:
    """Return the controller among interned owners."""
    return next((owner for owner in cluster.owner_sets.items[owner_id] if owner.controller), None)


def controlled_by(cluster: Cluster, namespace: str, controller: OwnerReference) -> Workload | None:
    """Return the workload that a controller is, for a Deployment's ReplicaSet the Deployment; None if it is not known."""
    if controller.kind not in WORKLOAD_KINDS:
        return None
    found = find_workload(cluster, namespace, WorkloadName(controller.kind, controller.name))
    above = found.metadata.controller() if isinstance(found, ReplicaSet) else None
    if above is not None and above.kind == "Deployment":
        return cluster.objects.deployments.get(namespace, above.name) or found
    return found


def replicas(workload: Workload) -> int:
    """Return how many pods a workload is to have; 1 where it does not say."""
    return 1 if workload.spec.replicas is None else workload.spec.replicas


def _selected_by_template(cluster: Cluster, service: Service) -> list[Workload]:
    objects, namespace = cluster.objects, service.metadata.namespace
    selector = selector_of(service)
    all_workloads: list[Workload] = [
        *objects.deployments.within(namespace),
        *objects.replica_sets.within(namespace),
        *objects.stateful_sets.within(namespace),
        *objects.replication_controllers.within(namespace),
    ]
    deployments = {id(w) for w in all_workloads if isinstance(w, Deployment)}
    chosen = [w for w in all_workloads if selector.matches(w.spec.template.metadata.labels)]
    return [
        w
        for w in chosen
        if id(w) in deployments or (owner := w.metadata.controller()) is None or owner.kind != "Deployment"
    ]


def _preferred(workloads: list[Workload]) -> Workload | None:
    def order(workload: Workload) -> tuple[int, str, int]:
        kind = WORKLOAD_KINDS.index(type(workload).__name__)
        return -replicas(workload), workload.metadata.name, kind

    return min(workloads, key=order, default=None)
