"""A live cluster's pods, found by who they are and by who made them; and how ReplicaSets choose among theirs."""

from typing import NamedTuple

import numpy as np

from berth.cluster.arrays import NONE
from berth.cluster.cluster import Cluster
from berth.cluster.pods import FAILED, SUCCEEDED
from berth.module.services import controller_of_owners

LOWEST_COST = -(2**31)
"""A pod of this `pod-deletion-cost` goes before all others of its class."""

_PHASE_ORDER = {0: 0, 1: 0, 5: 1, 2: 2}  # Pending < Unknown < Running


def find_pod(cluster: Cluster, namespace: str, name: str, uid: str) -> int:
    """Return the pod of this name and uid; `NONE` if it is gone."""
    pod = cluster.pods.find(cluster.namespaces.find(namespace), name)
    return pod if pod != NONE and cluster.pods.uids[pod] == uid else NONE


def is_leaving(cluster: Cluster, pod: int) -> bool:
    """Tell whether a pod (`NONE`: one that is gone) is gone, is about to go, or has run to its end."""
    column = cluster.pods.column
    return pod == NONE or bool(column("terminating")[pod]) or column("phase")[pod] in (SUCCEEDED, FAILED)


def node_of(cluster: Cluster, pod: int) -> str | None:
    """Return the name of the node that a pod is bound to."""
    name_id = int(cluster.pods.column("node_name_id")[pod])
    return None if name_id == NONE else cluster.pods.node_names.items[name_id]


def active_pods(cluster: Cluster, namespace: str, controller: str) -> list[int]:
    """Return a controller's pods as its own count has them: neither finished nor terminating; none that are but assumed."""
    pods, namespace_id = cluster.pods, cluster.namespaces.find(namespace)
    owners = [
        owner_id
        for owner_id in range(len(cluster.owner_sets))
        if (owner := controller_of_owners(cluster, owner_id)) is not None and owner.uid == controller
    ]
    found = pods.active & (pods.column("namespace_id") == namespace_id) & (pods.column("terminating") == 0)
    found &= np.isin(pods.column("owner_id"), owners)
    return [
        pod
        for pod in np.flatnonzero(found).tolist()
        if pods.uids[pod] and pods.find(namespace_id, pods.names[pod]) == pod
    ]


class Rank(NamedTuple):
    """Where a pod stands when a ReplicaSet has too many: the lowest goes first (1.36, `ActivePodsWithRanks`)."""

    assigned: bool
    phase: int
    ready: bool
    cost: int


def rank_of(cluster: Cluster, pod: int, cost: int | None = None) -> Rank:
    """Return a pod's rank, with another deletion cost if one is given."""
    column = cluster.pods.column
    return Rank(
        assigned=column("node_name_id")[pod] != NONE,
        phase=_PHASE_ORDER.get(int(column("phase")[pod]), 2),
        ready=bool(column("ready")[pod]),
        cost=int(column("deletion_cost")[pod]) if cost is None else cost,
    )


def not_first(cluster: Cluster, chosen: list[int], others: list[int]) -> list[int]:
    """Return those of the chosen pods that another would be taken before (or might be), whatever their deletion cost."""
    if not others:
        return []
    first = min(rank_of(cluster, pod) for pod in others)
    return [pod for pod in chosen if rank_of(cluster, pod, LOWEST_COST) >= first]
