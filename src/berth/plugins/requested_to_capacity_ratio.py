"""RequestedToCapacityRatioPriority: a broken line over how full the node would be.

Source: ``priorities/requested_to_capacity_ratio.go`` and ``resource_allocation.go`` of 1.13 and 1.17.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from berth.cluster.accounting import BASE_RESOURCES, CPU, EPHEMERAL_STORAGE, MEMORY, is_scalar
from berth.cluster.arrays import ALL_ROWS, IntColumn, Rows
from berth.cluster.cluster import Cluster, Incoming
from berth.errors import InputError
from berth.framework.plugin import BatchKind, ScorePlugin

FULL = 100
"""The highest utilization. [percent]"""

Point = tuple[int, int]
"""Utilization and score."""


class Average(Enum):
    """How the scores of several resources become one."""

    PLAIN = "1.13: cpu and memory alone, rounded down"
    OF_POSITIVE = "1.17: weighted, resources that score 0 left out, rounded to the nearest"


def table_of(points: Sequence[Point], maximum: int) -> tuple[int, ...]:
    """Return the score of every utilization from 0 to 100.

    Raises
    ------
    InputError
        The points are not in order, or outside of what they may be.
    """
    path = "requestedToCapacityRatioArguments.shape"
    if not points:
        raise InputError(path, [], "at least one point")
    for i, (utilization, score) in enumerate(points):
        if not 0 <= utilization <= FULL:
            raise InputError(f"{path}[{i}].utilization", utilization, f"from 0 to {FULL}")
        if not 0 <= score <= maximum:
            raise InputError(f"{path}[{i}].score", score, f"from 0 to {maximum}")
        if i and utilization <= points[i - 1][0]:
            raise InputError(f"{path}[{i}].utilization", utilization, "above the point before it")
    return tuple(_on_line(points, p) for p in range(FULL + 1))


def _on_line(points: Sequence[Point], utilization: int) -> int:
    left: Point | None = None
    for right in points:
        if utilization <= right[0]:
            if left is None:
                return right[1]
            rise = (right[1] - left[1]) * (utilization - left[0])
            run = right[0] - left[0]
            # Go's division goes towards 0, on the way down too.
            return left[1] + (rise // run if rise >= 0 else -(-rise // run))
        left = right
    return points[-1][1]


@dataclass(frozen=True, slots=True)
class Usages:
    """What the pod adds to each resource: (resource id, amount, weight); None for a resource nobody schedules by."""

    cluster: Cluster
    adds: tuple[tuple[int | None, int, int], ...]


@dataclass(frozen=True, slots=True)
class RequestedToCapacityRatio(ScorePlugin[Usages]):
    """Score the shares of resources that would be in use with the pod on the node.

    Attributes
    ----------
    table : tuple of int
        Scores by utilization, as `table_of` makes them.
    resources : tuple of (name, weight)
    """

    table: tuple[int, ...]
    resources: tuple[tuple[str, int], ...] = ((CPU, 1), (MEMORY, 1))
    average: Average = Average.PLAIN

    name = "RequestedToCapacityRatio"

    def prepare(self, pod: Incoming, cluster: Cluster) -> Usages:
        nonzero = dict(zip((CPU, MEMORY), pod.info.nonzero, strict=True))
        adds: list[tuple[int | None, int, int]] = []
        for name, weight in self.resources:
            if name in nonzero:
                adds.append((BASE_RESOURCES.index(name), nonzero[name], weight))
            elif name == EPHEMERAL_STORAGE or is_scalar(name):
                resource_id = cluster.resources.id(name)
                adds.append((resource_id, pod.info.asked.get(resource_id, 0), weight))
            else:
                adds.append((None, 0, weight))
        return Usages(cluster, tuple(adds))

    def score(self, state: Usages, rows: Rows = ALL_ROWS, placed: IntColumn | int = 0) -> IntColumn:
        table = np.array(self.table, dtype=np.int64)
        total = np.zeros(len(state.cluster.nodes.alive[rows]), dtype=np.int64)
        weights = np.zeros_like(total)
        for resource_id, amount, weight in state.adds:
            score = table[self._utilization(state.cluster, resource_id, (placed + 1) * amount, rows)]
            counted = weight if self.average is Average.PLAIN else weight * (score > 0)
            total += score * weight
            weights += counted
        if self.average is Average.PLAIN:
            return total // weights
        # Half is rounded up, as Go's math.Round does above 0.
        return (2 * total + weights) // np.maximum(2 * weights, 1)

    def batch(self, state: Usages, feasible: NDArray[np.bool_]) -> BatchKind:
        return BatchKind.LOCAL

    @staticmethod
    def _utilization(
        cluster: Cluster, resource_id: int | None, amount: IntColumn | int, rows: Rows
    ) -> IntColumn:
        """Return the percentage in use with so much more (int64[n]); overfull, or nothing to offer, counts as full."""
        if resource_id is None:
            return np.full(len(cluster.nodes.alive[rows]), FULL, dtype=np.int64)
        capacity = cluster.nodes.allocatable.of(resource_id)[rows]
        base = {0: cluster.nonzero_milli_cpu, 1: cluster.nonzero_memory}.get(resource_id)
        requested = (cluster.requested.of(resource_id) if base is None else base)[rows] + amount
        usable = (capacity > 0) & (requested <= capacity)
        free = np.zeros_like(requested)
        np.floor_divide((capacity - requested) * FULL, capacity, out=free, where=usable)
        return FULL - free
