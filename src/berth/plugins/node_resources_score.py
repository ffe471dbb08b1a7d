"""How full a node would be, and how evenly, over any resources: NodeResourcesFit's scores and BalancedAllocation of 1.36.

Source: 1.36, ``plugins/noderesources``: ``resource_allocation.go``, ``least_allocated.go``, ``most_allocated.go``,
``requested_to_capacity_ratio.go``, ``balanced_allocation.go``.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from berth.cluster.accounting import BASE_RESOURCES, CPU, MEMORY, PODS
from berth.cluster.arrays import ALL_ROWS, FloatColumn, IntColumn, Rows
from berth.cluster.cluster import Cluster, Incoming
from berth.framework.plugin import BatchKind, ScorePlugin
from berth.framework.rules import Rule, RuleKind, Term

CPU_AND_MEMORY = ((CPU, 1), (MEMORY, 1))
"""The resources that are scored by default, with their weights."""

_CPU_ID, _MEMORY_ID = BASE_RESOURCES.index(CPU), BASE_RESOURCES.index(MEMORY)

_EXACT = 1 << 53

Kernel = Callable[[IntColumn, IntColumn, int], IntColumn]
"""(requested, allocatable, maximum) of one resource to scores; where a node has nothing of it, any number will do."""


def least_allocated(requested: IntColumn, allocatable: IntColumn, maximum: int) -> IntColumn:
    """Score what is free, 0 (full or overfull) to ``maximum`` (empty)."""
    # What is overfull, or of nothing at all, is negative and cut to 0.
    return np.maximum(floor_divide((allocatable - requested) * maximum, np.maximum(allocatable, 1)), 0)


def floor_divide(dividend: IntColumn, divisor: IntColumn) -> IntColumn:
    """Divide integers, rounding down; by floats where that is exact, which takes half the time.

    The quotient of integers below 2^53 never rounds up to the next integer: it is further from it than floats are apart.
    """
    quotient: FloatColumn = dividend / divisor
    np.floor(quotient, out=quotient)
    whole: IntColumn = quotient.astype(np.int64)
    if len(dividend) and max(int(dividend.max()), -int(dividend.min()), int(divisor.max())) >= _EXACT:
        np.floor_divide(dividend, divisor, out=whole)
    return whole


def most_allocated(requested: IntColumn, allocatable: IntColumn, maximum: int) -> IntColumn:
    """Score what is used, 0 (empty) to ``maximum`` (full; overfull counts as full)."""
    score = np.zeros_like(requested)
    used = np.minimum(requested, allocatable)
    np.floor_divide(used * maximum, allocatable, out=score, where=allocatable > 0)
    return score


_RULES: dict[Kernel, RuleKind] = {
    least_allocated: RuleKind.LEAST_ALLOCATED,
    most_allocated: RuleKind.MOST_ALLOCATED,
}


@dataclass(frozen=True, slots=True)
class CapacityRatio:
    """Scores the used share by a table of the scores of 0 to 100 percent."""

    table: tuple[int, ...]

    def __call__(self, requested: IntColumn, allocatable: IntColumn, maximum: int) -> IntColumn:
        """Score the used share; overfull counts as full."""
        full = np.full_like(requested, 100)
        usable = (allocatable > 0) & (requested <= allocatable)
        np.floor_divide(requested * 100, allocatable, out=full, where=usable)
        score: IntColumn = np.array(self.table, dtype=np.int64)[full]
        return score


@dataclass(frozen=True, slots=True)
class Usage:
    """What is scored: (resource id, asked by the pod, held by each one placed, weight) of each resource."""

    cluster: Cluster
    resources: tuple[tuple[int, int, int, int], ...]


@dataclass(frozen=True, slots=True)
class ResourcesScore(ScorePlugin[Usage]):
    """The weighted mean of the scores of resources, of those that the node has.

    An extended resource counts only for pods that ask for it. Containers count as asking for some cpu and memory even
    if they do not.

    Attributes
    ----------
    ratio : bool
        As RequestedToCapacityRatio: resources that score 0 are left out of the mean, which is rounded, not cut.
    """

    kernel: Kernel
    maximum: int
    resources: tuple[tuple[str, int], ...] = CPU_AND_MEMORY
    ratio: bool = False

    name = "NodeResourcesFit"

    def prepare(self, pod: Incoming, cluster: Cluster) -> Usage:
        held = dict(pod.info.held)
        held[_CPU_ID], held[_MEMORY_ID] = pod.info.nonzero
        return _usage(cluster, self.resources, pod.info.scored, held)

    def score(self, state: Usage, rows: Rows = ALL_ROWS, placed: IntColumn | int = 0) -> IntColumn:
        cluster = state.cluster
        used = (
            (
                _nonzero(cluster, resource_id)[rows] + (placed * held + asked),
                cluster.nodes.allocatable.of(resource_id)[rows],
                weight,
            )
            for resource_id, asked, held, weight in state.resources
        )
        n = len(cluster.nodes.alive[rows])
        return weighted_mean(self.kernel, used, n, self.maximum, ratio=self.ratio)

    def batch(self, state: Usage, feasible: NDArray[np.bool_]) -> BatchKind:
        return BatchKind.LOCAL

    def resource_rule(self, state: Usage) -> Rule | None:
        kind = _RULES.get(self.kernel)
        if kind is None or self.ratio:
            return None
        terms = [
            Term(resource_id, asked, resource_id in (_CPU_ID, _MEMORY_ID), weight)
            for resource_id, asked, _, weight in state.resources
        ]
        return Rule(kind, tuple(terms), self.maximum)


def weighted_mean(
    kernel: Kernel,
    used: Iterable[tuple[IntColumn, IntColumn, int]],
    n: int,
    maximum: int,
    *,
    ratio: bool = False,
) -> IntColumn:
    """Average the scores of resources, of those that the node has, in integers.

    Parameters
    ----------
    used : iterable of (requested, allocatable, weight)
        Of each resource, int64[n] and int64[n].
    ratio : bool
        As `ResourcesScore` says.
    """
    total = np.zeros(n, dtype=np.int64)
    common, weights = 0, np.zeros_like(total)
    for requested, allocatable, weight in used:
        score = kernel(requested, allocatable, maximum)
        if not ratio and allocatable.all():
            total += score * weight
            common += weight
            continue
        counts = allocatable != 0
        if ratio:
            counts &= score > 0
        total += np.where(counts, score * weight, 0)
        weights += np.where(counts, weight, 0)
    if common and not weights.any():
        return total // common
    weights += common
    known = weights > 0
    if ratio:
        total, weights = 2 * total + weights, 2 * weights
    mean = np.zeros_like(total)
    np.floor_divide(total, weights, out=mean, where=known)
    return mean


@dataclass(frozen=True, slots=True)
class BalancedAllocation(ScorePlugin[Usage]):
    """How much more even the used shares of resources get by the pod: half the maximum (less) to all of it (more).

    Pods that ask for nothing of them are not scored.
    """

    maximum: int
    resources: tuple[tuple[str, int], ...] = CPU_AND_MEMORY

    name = "NodeResourcesBalancedAllocation"

    def prepare(self, pod: Incoming, cluster: Cluster) -> Usage:
        usage = _usage(cluster, self.resources, pod.info.held, pod.info.held)
        return usage if any(asked for _, asked, _, _ in usage.resources) else Usage(cluster, ())

    def score(self, state: Usage, rows: Rows = ALL_ROWS, placed: IntColumn | int = 0) -> IntColumn:
        cluster = state.cluster
        if not state.resources:
            return np.zeros(cluster.nodes.n_rows, dtype=np.int64)[rows]
        allocatable, before, after = [], [], []
        for resource_id, asked, held, _ in state.resources:
            allocatable.append(cluster.nodes.allocatable.of(resource_id)[rows])
            before.append(cluster.requested.of(resource_id)[rows] + placed * held)
            after.append(before[-1] + asked)
        return evenness_gained(before, after, allocatable, self.maximum)

    def batch(self, state: Usage, feasible: NDArray[np.bool_]) -> BatchKind:
        return BatchKind.LOCAL

    def resource_rule(self, state: Usage) -> Rule | None:
        if len(state.resources) not in (0, 2):
            return None
        terms = [Term(resource_id, asked) for resource_id, asked, _, _ in state.resources]
        return Rule(RuleKind.BALANCED_GAIN, tuple(terms), self.maximum)


def evenness_gained(
    before: Sequence[IntColumn], after: Sequence[IntColumn], allocatable: Sequence[IntColumn], maximum: int
) -> IntColumn:
    """Score how much more even a change makes the used shares of resources, half the maximum (less) to all of it (more).

    Parameters
    ----------
    before, after, allocatable : one int64[n] a resource
    """
    half = maximum // 2
    gain = evenness(after, allocatable, maximum) - evenness(before, allocatable, maximum)
    return half + (half + gain) // 2


def evenness(requested: Sequence[IntColumn], allocatable: Sequence[IntColumn], maximum: int) -> IntColumn:
    """Score how alike the used shares of resources are: ``int((1 - standard deviation) * maximum)``.

    Resources of which a node has none are left out; an overfull one counts as full. In upstream's order of floats.

    Parameters
    ----------
    requested, allocatable : one int64[n] a resource
    """
    has = [column != 0 for column in allocatable]
    if len(has) == 2 and all(there.all() for there in has):
        return _evenness_of_two(requested, allocatable, maximum)
    shares = []
    for used, offered, there in zip(requested, allocatable, has, strict=True):
        share: FloatColumn = np.zeros(len(used))
        np.divide(used, offered, out=share, where=there)
        shares.append(np.minimum(share, 1.0))
    count: IntColumn = np.sum(has, axis=0)
    deviation = np.zeros(len(count))
    two, more = count == 2, count > 2
    if two.any():
        n_before, difference = np.zeros_like(count), np.zeros(len(count))
        for share, there in zip(shares, has, strict=True):
            difference += np.where(n_before == 0, share, -share)
            n_before += there
        deviation[two] = np.abs(difference[two] / 2)
    if more.any():
        mean = np.sum(shares, axis=0)[more] / count[more]
        squares = np.zeros(len(mean))
        for share, there in zip(shares, has, strict=True):
            squares += np.where(there[more], (share[more] - mean) * (share[more] - mean), 0.0)
        deviation[more] = np.sqrt(squares / count[more])
    score: IntColumn = ((1 - deviation) * float(maximum)).astype(np.int64)
    return score


def _evenness_of_two(
    requested: Sequence[IntColumn], allocatable: Sequence[IntColumn], maximum: int
) -> IntColumn:
    """Score as `evenness` does, of two resources that every node has."""
    first, second = (
        np.minimum(used / offered, 1.0) for used, offered in zip(requested, allocatable, strict=True)
    )
    first -= second
    first /= 2
    np.abs(first, out=first)
    np.subtract(1, first, out=first)
    first *= float(maximum)
    score: IntColumn = first.astype(np.int64)
    return score


def _usage(
    cluster: Cluster,
    resources: Sequence[tuple[str, int]],
    asked: Mapping[int, int],
    held: Mapping[int, int],
) -> Usage:
    found = []
    for name, weight in resources:
        resource_id = cluster.resources.id(name)
        amount = asked.get(resource_id, 0)
        # ``pods`` is no resource to score by upstream either: the node counts as having none.
        if name != PODS and (amount or resource_id < len(BASE_RESOURCES)):
            found.append((resource_id, amount, held.get(resource_id, 0), weight))
    return Usage(cluster, tuple(found))


def _nonzero(cluster: Cluster, resource_id: int) -> IntColumn:
    if resource_id == _CPU_ID:
        return cluster.nonzero_milli_cpu
    return cluster.nonzero_memory if resource_id == _MEMORY_ID else cluster.requested.of(resource_id)
