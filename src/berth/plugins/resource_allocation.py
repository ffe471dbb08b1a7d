"""How full a node is, and how evenly: LeastRequested, MostRequested, BalancedResourceAllocation.

All three look at what pods count for the priorities (defaults for silent containers included), the new pod with them.
Source: 1.13, ``priorities/least_requested.go``, ``most_requested.go``, ``balanced_resource_allocation.go``.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from berth.cluster.accounting import BASE_RESOURCES, CPU, MEMORY
from berth.cluster.arrays import ALL_ROWS, IntColumn, Rows
from berth.cluster.cluster import Cluster, Incoming
from berth.framework.plugin import BatchKind, ScorePlugin
from berth.framework.rules import Rule, RuleKind, Term

_CPU_ID, _MEMORY_ID = BASE_RESOURCES.index(CPU), BASE_RESOURCES.index(MEMORY)

Kernel = Callable[[IntColumn, IntColumn, IntColumn, IntColumn, int], IntColumn]
"""(requested milli-CPU, allocatable milli-CPU, requested bytes, allocatable bytes, maximum) to scores, int64[n] each."""


def least_requested_score(requested: IntColumn, allocatable: IntColumn, maximum: int) -> IntColumn:
    """Score free capacity of one resource, 0 (full, overfull, or nothing to offer) to ``maximum`` (empty).

    Parameters
    ----------
    requested, allocatable : int64[n]
        What pods ask for, the new one included; what the node offers. [same unit]
    """
    usable = (allocatable > 0) & (requested <= allocatable)
    score = np.zeros_like(requested)
    np.floor_divide((allocatable - requested) * maximum, allocatable, out=score, where=usable)
    return score


def most_requested_score(requested: IntColumn, allocatable: IntColumn, maximum: int) -> IntColumn:
    """Score used capacity of one resource, 0 (empty, overfull, or nothing to offer) to ``maximum`` (just full)."""
    usable = (allocatable > 0) & (requested <= allocatable)
    score = np.zeros_like(requested)
    np.floor_divide(requested * maximum, allocatable, out=score, where=usable)
    return score


def least_requested(
    cpu: IntColumn, cpu_of: IntColumn, memory: IntColumn, memory_of: IntColumn, top: int
) -> IntColumn:
    """Average the free share of cpu and memory, in integers."""
    return (least_requested_score(cpu, cpu_of, top) + least_requested_score(memory, memory_of, top)) // 2


def most_requested(
    cpu: IntColumn, cpu_of: IntColumn, memory: IntColumn, memory_of: IntColumn, top: int
) -> IntColumn:
    """Average the used share of cpu and memory, in integers."""
    return (most_requested_score(cpu, cpu_of, top) + most_requested_score(memory, memory_of, top)) // 2


def balanced_allocation(
    cpu: IntColumn, cpu_of: IntColumn, memory: IntColumn, memory_of: IntColumn, top: int
) -> IntColumn:
    """Score how alike the used shares of cpu and memory are; 0 where either is used up.

    Float arithmetic in upstream's order: ``int((1 - |cpu share - memory share|) * top)``.
    """
    shares = []
    for requested, allocatable in ((cpu, cpu_of), (memory, memory_of)):
        share = np.ones(len(requested))
        np.divide(requested, allocatable, out=share, where=allocatable != 0)
        shares.append(share)
    score = ((1.0 - np.abs(shares[0] - shares[1])) * float(top)).astype(np.int64)
    score[(shares[0] >= 1) | (shares[1] >= 1)] = 0
    return score


_RULES: dict[Kernel, RuleKind] = {
    least_requested: RuleKind.LEAST_REQUESTED,
    most_requested: RuleKind.MOST_REQUESTED,
    balanced_allocation: RuleKind.BALANCED_SHARES,
}


@dataclass(frozen=True, slots=True)
class Usage:
    """What the pod adds to a node, as the priorities count it."""

    cluster: Cluster
    milli_cpu: int
    memory: int


@dataclass(frozen=True, slots=True)
class ResourceAllocation(ScorePlugin[Usage]):
    """A score of the node's cpu and memory as they would be with the pod on it."""

    kernel: Kernel
    maximum: int

    name = "NodeResourcesAllocation"

    def prepare(self, pod: Incoming, cluster: Cluster) -> Usage:
        return Usage(cluster, *pod.info.nonzero)

    def score(self, state: Usage, rows: Rows = ALL_ROWS, placed: IntColumn | int = 0) -> IntColumn:
        cluster, allocatable = state.cluster, state.cluster.nodes.allocatable
        return self.kernel(
            cluster.nonzero_milli_cpu[rows] + (placed + 1) * state.milli_cpu,
            allocatable.of(_CPU_ID)[rows],
            cluster.nonzero_memory[rows] + (placed + 1) * state.memory,
            allocatable.of(_MEMORY_ID)[rows],
            self.maximum,
        )

    def batch(self, state: Usage, feasible: NDArray[np.bool_]) -> BatchKind:
        return BatchKind.LOCAL

    def resource_rule(self, state: Usage) -> Rule | None:
        kind = _RULES.get(self.kernel)
        if kind is None:
            return None
        cpu = Term(_CPU_ID, state.milli_cpu, counts_silent=True)
        return Rule(kind, (cpu, Term(_MEMORY_ID, state.memory, counts_silent=True)), self.maximum)
