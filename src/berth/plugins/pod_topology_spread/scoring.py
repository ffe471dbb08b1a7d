"""The constraints that are wishes: EvenPodsSpreadPriority, and the score of PodTopologySpread.

Source: ``priorities/even_pods_spread.go`` of 1.17, ``podtopologyspread/scoring.go`` of 1.36.

Both depend on which nodes are feasible from the first step on, so all is done in ``normalize``; raw scores are 0.
"""

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from berth.cluster.arrays import ALL_ROWS, NONE, BoolColumn, FloatColumn, IdColumn, IntColumn, Rows
from berth.cluster.cluster import Cluster, Incoming
from berth.cluster.log import Changes
from berth.framework.plugin import BatchKind, Classed, ScorePlugin, SpreadCounts
from berth.objects.pods import TopologySpreadConstraint
from berth.plugins.pod_topology_spread.constraints import (
    EVEN_PODS,
    HOSTNAME,
    SCHEDULE_ANYWAY,
    SYSTEM_DEFAULTS,
    TOPOLOGY_SPREAD,
    Constraints,
    constraints_of,
)
from berth.plugins.pod_topology_spread.counting import Domains, domains_of
from berth.plugins.pod_topology_spread.logarithm import log


@dataclass(slots=True)
class SoftSpread:
    """What is known of one shape."""

    cluster: Cluster
    constraints: Constraints
    domains: list[Domains] = field(default_factory=list)


class _SpreadScore(ScorePlugin[SoftSpread]):
    """What both releases have in common."""

    def score(self, state: SoftSpread, rows: Rows = ALL_ROWS, placed: IntColumn | int = 0) -> IntColumn:
        return np.zeros(len(state.cluster.nodes.alive[rows]), dtype=np.int64)

    def mend(self, state: SoftSpread, changes: Changes) -> Rows | None:
        if state.domains and changes.nodes:
            return None
        for change in changes.pods:
            for domains in state.domains:
                if domains.matching.counts(change):
                    domains.per_row[change.row] += change.sign
        return np.empty(0, dtype=np.intp)

    def batch(self, state: SoftSpread, feasible: NDArray[np.bool_]) -> BatchKind | Classed:
        return BatchKind.SERIAL if state.domains else BatchKind.CONSTANT

    def moved_by(self, state: SoftSpread, other: Incoming) -> bool:
        return any(domains.matching.counts_shape(other) for domains in state.domains)


@dataclass(frozen=True, slots=True)
class SpreadScore(_SpreadScore):
    """The fewer selected pods in the node's domains, the better; counts of few domains weigh less than those of many.

    Attributes
    ----------
    defaults : tuple of TopologySpreadConstraint
        For pods of services and controllers that have no constraints of their own.
    system_defaulted : bool
        Whether the defaults are the system's: nodes then need not have all the keys.
    """

    maximum: int = 100
    defaults: tuple[TopologySpreadConstraint, ...] = SYSTEM_DEFAULTS
    system_defaulted: bool = True

    name: ClassVar[str] = "PodTopologySpread"

    def prepare(self, pod: Incoming, cluster: Cluster) -> SoftSpread:
        constraints = constraints_of(
            pod,
            cluster,
            SCHEDULE_ANYWAY,
            TOPOLOGY_SPREAD,
            self.defaults,
            system_defaulted=self.system_defaulted,
        )
        state = SoftSpread(cluster, constraints)
        if constraints.all:
            state.domains = domains_of(pod, cluster, constraints, TOPOLOGY_SPREAD, pod.namespace_id)
        return state

    def error(self, state: SoftSpread) -> str | None:
        if not state.constraints.error:
            return None
        what = "calculating preScoreState: obtaining pod's soft topology spread constraints"
        return f"{what}: {state.constraints.error}"

    def spread(self, state: SoftSpread) -> SpreadCounts | None:
        # One constraint over nodes and one over another key, of the same pods, every node having both keys or
        # neither being asked for: what default spreading is.
        hosts = [d for d in state.domains if d.constraint.key == HOSTNAME]
        others = [d for d in state.domains if d.constraint.key != HOSTNAME]
        if not state.domains or len(hosts) > 1 or len(others) > 1:
            return None
        if any(domains.constraint.max_skew < 1 for domains in state.domains):
            return None
        alive = state.cluster.nodes.alive
        wants_all = [*hosts, *(others if state.constraints.needs_all_keys else ())]
        if not all(domains.labelled[alive].all() for domains in wants_all):
            return None
        if len({domains.constraint.selector for domains in state.domains}) > 1:
            return None
        one = state.domains[0]
        domain = None
        if others:
            domain = others[0].slots
            if (_merge_empty(state.cluster, domain) != domain).any() and (
                domain[alive] == state.cluster.nodes.labels.value_id("") + 1
            ).any():
                return None
        return SpreadCounts(
            per_row=one.per_row,
            domain=domain,
            eligible=others[0].eligible if others else one.eligible,
            host_skew=hosts[0].constraint.max_skew if hosts else 0,
            domain_skew=others[0].constraint.max_skew if others else 0,
            maximum=self.maximum,
            counts=one.matching.counts_shape,
        )

    def normalize(self, state: SoftSpread, scores: IntColumn, rows: NDArray[np.intp]) -> IntColumn:
        if not state.domains:
            return np.zeros(len(rows), dtype=np.int64)
        scored = np.ones(len(rows), dtype=np.bool_)
        if state.constraints.needs_all_keys:
            for domains in state.domains:
                scored &= domains.labelled[rows]
        total: FloatColumn = np.zeros(len(rows))
        for domains in state.domains:
            self._add(state, domains, rows, scored, total)
        return flipped(round_half_away(total), scored, self.maximum)

    def _add(
        self,
        state: SoftSpread,
        domains: Domains,
        rows: NDArray[np.intp],
        scored: BoolColumn,
        total: FloatColumn,
    ) -> None:
        constraint = domains.constraint
        if constraint.key == HOSTNAME:
            size, counts = int(scored.sum()), domains.per_row[rows]
        else:
            slots = domains.slots
            if not state.constraints.needs_all_keys:
                slots = _merge_empty(state.cluster, slots)
            size = len(np.unique(slots[rows][scored]))
            counts = domains.counts(slots)[slots[rows]]
        score = counts * log(size + 2) + float(constraint.max_skew - 1)
        total += np.where(scored & domains.labelled[rows], score, 0.0)


@dataclass(frozen=True, slots=True)
class EvenPodsScore(_SpreadScore):
    """1.17's: the fewer selected pods, of any namespace, in the node's domains, the better."""

    maximum: int = 100

    name: ClassVar[str] = "EvenPodsSpread"

    def prepare(self, pod: Incoming, cluster: Cluster) -> SoftSpread:
        # Constraints that can't be read are as good as none.
        constraints = constraints_of(pod, cluster, SCHEDULE_ANYWAY, EVEN_PODS)
        state = SoftSpread(cluster, constraints)
        if constraints.all:
            state.domains = domains_of(pod, cluster, constraints, EVEN_PODS, NONE)
        return state

    def normalize(self, state: SoftSpread, scores: IntColumn, rows: NDArray[np.intp]) -> IntColumn:
        if not state.domains:
            return np.zeros(len(rows), dtype=np.int64)
        scored = np.logical_and.reduce([domains.labelled[rows] for domains in state.domains])
        total = np.zeros(len(rows), dtype=np.int64)
        keys = [domains.constraint.key for domains in state.domains]
        for domains, key in zip(state.domains, keys, strict=True):
            # Constraints of one key share their counts.
            total += keys.count(key) * domains.counts(domains.slots)[domains.slots[rows]]
        return self._share(np.where(scored, total, 0), scored)

    def _share(self, matches: IntColumn, scored: BoolColumn) -> IntColumn:
        if not scored.any():
            return np.zeros(len(matches), dtype=np.int64)
        total = int(matches.sum())
        spread = total - int(matches[scored].min())
        if spread == 0:
            return np.full(len(matches), self.maximum, dtype=np.int64)
        share = float(self.maximum) * ((total - matches) / float(spread))
        return np.where(scored, share, 0.0).astype(np.int64)


def flipped(scores: IntColumn, scored: BoolColumn, maximum: int) -> IntColumn:
    """Turn counts into scores: the lowest gets ``maximum``; rows that are not scored get 0."""
    if not scored.any():
        return np.zeros(len(scores), dtype=np.int64)
    highest, lowest = int(scores[scored].max()), int(scores[scored].min())
    if highest <= 0:
        return np.where(scored, maximum, 0)
    return np.where(scored, maximum * (highest + lowest - scores) // highest, 0)


def round_half_away(values: FloatColumn) -> IntColumn:
    """Round to integers, halves away from zero (int64), as Go does."""
    whole = np.trunc(values)
    return (whole + np.where(np.abs(values - whole) >= 0.5, np.copysign(1.0, values), 0.0)).astype(np.int64)


def _merge_empty(cluster: Cluster, slots: IdColumn) -> IdColumn:
    """Put rows without the label into the domain of those where it is empty, as upstream's maps do."""
    empty = cluster.nodes.labels.value_id("")
    return slots if empty == NONE else np.where(slots == 0, np.int32(empty + 1), slots).astype(np.int32)
