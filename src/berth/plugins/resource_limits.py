"""ResourceLimitsPriority: could the node give the pod as much as it may use at most?

Source: ``priorities/resource_limits.go`` of 1.10, 1.13 and 1.17, all alike. It breaks ties, hence the score is 0 or 1
whatever the release's maximum.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from berth.cluster.accounting import BASE_RESOURCES, CPU, MEMORY, amounts
from berth.cluster.arrays import ALL_ROWS, IntColumn, Rows
from berth.cluster.cluster import Cluster, Incoming
from berth.framework.plugin import BatchKind, ScorePlugin
from berth.objects.pods import PodSpec


@dataclass(frozen=True, slots=True)
class Limits:
    """What the pod may use at most: milli-CPU and bytes, by resource id; 0 without a limit."""

    cluster: Cluster
    limits: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class ResourceLimits(ScorePlugin[Limits]):
    """1 where the node's allocatable cpu or memory holds the pod's limit, else 0."""

    name = "ResourceLimits"
    reads_pods = False

    def prepare(self, pod: Incoming, cluster: Cluster) -> Limits:
        limits = limits_of(pod.info.spec)
        return Limits(cluster, tuple((BASE_RESOURCES.index(name), limits[name]) for name in (CPU, MEMORY)))

    def score(self, state: Limits, rows: Rows = ALL_ROWS, placed: IntColumn | int = 0) -> IntColumn:
        allocatable = state.cluster.nodes.allocatable
        holds = np.zeros(len(state.cluster.nodes.alive[rows]), dtype=np.bool_)
        for resource_id, limit in state.limits:
            if limit:
                # Having nothing to offer is no room, even for a limit below 0.
                offered = allocatable.of(resource_id)[rows]
                holds |= (limit <= offered) & (offered != 0)
        return holds.astype(np.int64)

    def batch(self, state: Limits, feasible: NDArray[np.bool_]) -> BatchKind:
        return BatchKind.CONSTANT


def limits_of(spec: PodSpec) -> dict[str, int]:
    """Return the limits of cpu and memory: summed over the containers, at least the largest init container's."""
    limits = {CPU: 0, MEMORY: 0}
    for container in spec.containers:
        for name, amount in amounts(container.resources.limits).items():
            limits[name] = limits.get(name, 0) + amount
    for container in spec.init_containers:
        for name, amount in amounts(container.resources.limits).items():
            limits[name] = max(limits.get(name, 0), amount)
    return limits
