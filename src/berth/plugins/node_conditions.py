"""Predicates on what a node says of itself: CheckNodeCondition and the three pressures.

Source: 1.13, ``algorithm/predicates/predicates.go``.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from berth.cluster.arrays import ALL_ROWS, IntColumn, Rows
from berth.cluster.cluster import Cluster, Incoming
from berth.cluster.nodes import by_interned
from berth.framework.plugin import FITS, BatchKind, FilterPlugin
from berth.objects.nodes import NodeCondition
from berth.objects.pods import PodSpec
from berth.objects.quantities import parse_quantity

NOT_READY = "node(s) were not ready"
OUT_OF_DISK = "node(s) were out of disk space"
NETWORK_UNAVAILABLE = "node(s) had unavailable network"
UNSCHEDULABLE = "node(s) were unschedulable"

_HEALTHY = {
    "Ready": ("True", NOT_READY),
    "OutOfDisk": ("False", OUT_OF_DISK),
    "NetworkUnavailable": ("False", NETWORK_UNAVAILABLE),
}


@dataclass(frozen=True, slots=True)
class CheckNodeCondition(FilterPlugin[Cluster]):
    """Ready, disk, network, and not cordoned; a condition that is absent does no harm."""

    name = "CheckNodeCondition"
    reads_pods = False

    def prepare(self, pod: Incoming, cluster: Cluster) -> Cluster:
        return cluster

    def filter(self, state: Cluster, rows: Rows = ALL_ROWS, placed: IntColumn | int = 0) -> IntColumn:
        nodes = state.nodes
        sets, ids, cordoned = nodes.condition_sets.items, nodes.conditions_id[rows], nodes.unschedulable[rows]
        blocked = by_interned(ids, len(sets), lambda i: bool(_blocking(sets[i]))) + cordoned
        return np.where(blocked > 0, (ids.astype(np.int64) << 1 | cordoned) + 1, FITS)

    def reasons(self, state: Cluster, code: int) -> tuple[str, ...]:
        if code == FITS:
            return ()
        conditions_id, cordoned = divmod(code - 1, 2)
        found = _blocking(state.nodes.condition_sets.items[conditions_id])
        return (*found, UNSCHEDULABLE) if cordoned else found

    def batch(self, state: Cluster, feasible: NDArray[np.bool_]) -> BatchKind:
        return BatchKind.CONSTANT


def _blocking(conditions: tuple[NodeCondition, ...]) -> tuple[str, ...]:
    """Return a reason for each condition that keeps pods away, in the node's order; one given twice counts twice."""
    return tuple(
        _HEALTHY[condition.type][1]
        for condition in conditions
        if condition.type in _HEALTHY and condition.status != _HEALTHY[condition.type][0]
    )


@dataclass(frozen=True, slots=True)
class Pressure:
    """State of a pressure predicate: the cluster, or None where the predicate does not concern the pod."""

    cluster: Cluster
    concerns: bool


@dataclass(frozen=True, slots=True)
class CheckNodePressure(FilterPlugin[Pressure]):
    """Is the node free of a pressure condition?

    Attributes
    ----------
    condition : str
        Such as ``MemoryPressure``.
    best_effort_only : bool
        Whether only pods without requests and limits for cpu and memory are kept away.
    """

    condition: str
    reason: str
    best_effort_only: bool = False

    name = "CheckNodePressure"
    reads_pods = False

    def prepare(self, pod: Incoming, cluster: Cluster) -> Pressure:
        return Pressure(cluster, concerns=not self.best_effort_only or is_best_effort(pod.info.spec))

    def filter(self, state: Pressure, rows: Rows = ALL_ROWS, placed: IntColumn | int = 0) -> IntColumn:
        nodes = state.cluster.nodes
        if not state.concerns:
            return np.zeros(len(nodes.conditions_id[rows]), dtype=np.int64)
        sets = nodes.condition_sets.items
        return by_interned(nodes.conditions_id[rows], len(sets), lambda i: int(self._under_pressure(sets[i])))

    def reasons(self, state: Pressure, code: int) -> tuple[str, ...]:
        return (self.reason,) if code != FITS else ()

    def batch(self, state: Pressure, feasible: NDArray[np.bool_]) -> BatchKind:
        return BatchKind.CONSTANT

    def _under_pressure(self, conditions: tuple[NodeCondition, ...]) -> bool:
        # Of a condition given twice the last holds, as upstream's NodeInfo keeps it.
        return [c.status for c in conditions if c.type == self.condition][-1:] == ["True"]


MEMORY_PRESSURE = CheckNodePressure("MemoryPressure", "node(s) had memory pressure", best_effort_only=True)
DISK_PRESSURE = CheckNodePressure("DiskPressure", "node(s) had disk pressure")
PID_PRESSURE = CheckNodePressure("PIDPressure", "node(s) had pid pressure")


def is_best_effort(spec: PodSpec) -> bool:
    """Tell whether no container requests or limits cpu or memory above 0 (QoS class BestEffort)."""
    return not any(
        parse_quantity(amount) > 0
        for container in spec.containers
        for resources in (container.resources.requests, container.resources.limits)
        for name, amount in resources.items()
        if name in ("cpu", "memory")
    )
