"""A look at a cluster's nodes, taken between rounds: plain values that any thread may read."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from berth.cluster.accounting import CPU, PODS
from berth.cluster.cluster import Cluster
from berth.objects.quantities import format_quantity


@dataclass(frozen=True, slots=True)
class NodeView:
    """A node.

    Attributes
    ----------
    requested, allocatable : dict of resource name to int
        What its pods request, and what it offers. [milli-CPU for cpu, else bytes or counts]
    """

    name: str
    ready: bool
    schedulable: bool
    pods: int
    requested: Mapping[str, int]
    allocatable: Mapping[str, int]

    def share(self, resource: str) -> float:
        """Return how much of a resource is requested (1: all of it; 0 if the node offers none)."""
        offered = self.allocatable.get(resource, 0)
        return self.requested.get(resource, 0) / offered if offered else 0.0


@dataclass(frozen=True, slots=True)
class ClusterView:
    """A cluster in figures, and its nodes by name."""

    nodes: tuple[NodeView, ...]
    n_pods: int
    n_pending: int
    n_services: int

    def total(self, resource: str) -> tuple[int, int]:
        """Return what is requested of a resource on all nodes, and what they offer."""
        requested = sum(node.requested.get(resource, 0) for node in self.nodes)
        return requested, sum(node.allocatable.get(resource, 0) for node in self.nodes)


def view_of(cluster: Cluster) -> ClusterView:
    """Look at a cluster."""
    objects, table = cluster.objects, cluster.nodes
    rows = sorted(np.flatnonzero(table.alive).tolist(), key=table.names.__getitem__)
    ready = [
        any(c.type == "Ready" and c.status == "True" for c in conditions)
        for conditions in table.condition_sets.items
    ]
    pods = cluster.pods
    return ClusterView(
        nodes=tuple(_node(cluster, row, ready[table.conditions_id[row]]) for row in rows),
        n_pods=int(pods.active.sum()),
        n_pending=int((pods.active & (pods.column("node_name_id") < 0)).sum()),
        n_services=len(objects.services),
    )


def quantities(amounts: Mapping[str, int]) -> dict[str, str]:
    """Write amounts as Kubernetes does: ``{"cpu": "3900m", "memory": "2Gi"}``."""
    return {name: format_quantity(amount, milli=name == CPU) for name, amount in amounts.items()}


def _node(cluster: Cluster, row: int, ready: bool) -> NodeView:
    requested, allocatable = cluster.requested.get(row), cluster.nodes.allocatable.get(row)
    return NodeView(
        name=cluster.nodes.names[row],
        ready=ready,
        schedulable=not bool(cluster.nodes.unschedulable[row]),
        pods=requested.get(PODS, 0),
        requested={name: requested.get(name, 0) for name in dict.fromkeys((*allocatable, *requested))},
        allocatable=allocatable,
    )
