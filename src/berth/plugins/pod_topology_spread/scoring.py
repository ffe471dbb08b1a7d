"""The constraints that are wishes: EvenPodsSpreadPriority, and the score of PodTopologySpread.

Source: ``priorities/even_pods_spread.go`` of 1.17, ``podtopologyspread/scoring.go`` of 1.36.

Both depend on which nodes are feasible from the first step on, so all is done in ``normalize``; raw scores are 0.
"""

from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from berth.cluster.arrays import ALL_ROWS, NONE, BoolColumn, FloatColumn, IdColumn, IntColumn, Rows
from berth.cluster.cluster import Cluster, Incoming
from berth.cluster.log import Changes
from berth.framework.counted import Counted, DomainCounts, Use, grouped
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
    pod: Incoming
    constraints: Constraints
    domains: list[Domains] = field(default_factory=list)


class _SpreadScore(ScorePlugin[SoftSpread]):
    """What both releases have in common."""

    def is_idle(self, state: SoftSpread) -> bool:
        return not state.domains

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

    def batch(self, state: SoftSpread, feasible: NDArray[np.bool_]) -> BatchKind:
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

    def skips(self, pod: Incoming, cluster: Cluster) -> bool:
        if pod.info.spec.topology_spread_constraints:
            return False
        # Defaults are for pods of services and controllers.
        return not self.defaults or (pod.controller is None and not len(cluster.objects.services))

    def prepare(self, pod: Incoming, cluster: Cluster) -> SoftSpread:
        constraints = constraints_of(
            pod,
            cluster,
            SCHEDULE_ANYWAY,
            TOPOLOGY_SPREAD,
            self.defaults,
            system_defaulted=self.system_defaulted,
        )
        state = SoftSpread(cluster, pod, constraints)
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
        scored = scored_rows(state)[rows]
        total: FloatColumn = np.zeros(len(rows))
        for domains in state.domains:
            constraint = domains.constraint
            if constraint.key == HOSTNAME:
                size, counts = int(scored.sum()), domains.per_row[rows]
            else:
                slots = domain_slots(state, domains)
                size = len(np.unique(slots[rows][scored]))
                counts = domains.counts(slots)[slots[rows]]
            score = domain_score(counts, log(size + 2), constraint.max_skew)
            total += np.where(scored & domains.labelled[rows], score, 0.0)
        return flipped(round_half_away(total), scored, self.maximum)

    def batch(self, state: SoftSpread, feasible: NDArray[np.bool_]) -> BatchKind:
        return BatchKind.CLASSED if state.domains else BatchKind.CONSTANT

    def classes(self, state: SoftSpread, feasible: NDArray[np.bool_]) -> Classed:
        return DomainClasses.of(state, feasible, self.maximum)

    def counted(self, state: SoftSpread) -> Counted:
        keys = []
        for domains in state.domains:
            constraint = domains.constraint
            if constraint.key == HOSTNAME:
                # Pods on the node itself count, whatever its label says.
                counts = np.concatenate([np.zeros(1, dtype=np.int64), domains.per_row])
                slots = np.arange(1, len(counts), dtype=np.int32)
                counts_on = np.ones(len(slots), dtype=np.bool_)
            else:
                slots = domain_slots(state, domains)
                counts, counts_on = domains.counts(slots), domains.eligible
            grows = int(domains.matching.grows(state.pod))
            labelled, max_skew = domains.labelled, constraint.max_skew
            keys.append(DomainCounts(slots, counts, grows, counts_on, labelled=labelled, max_skew=max_skew))
        return Counted(Use.SPREAD, tuple(keys), scored=scored_rows(state), maximum=self.maximum)


class DomainClasses(NamedTuple):
    """Spreading within a batch: a class is a group of rows that share their domains, and a count of pods on the node.

    Constraints on hostname have a domain a row: theirs are the row's own count and, where they select other pods than
    the first of them, an offset to it.

    Attributes
    ----------
    group, pods : int64[n_rows]
    eligible : bool[n_constraints, n_rows]
        The rows whose pods count in their domain.
    slot, offset : int64[n_constraints, n_groups]
    counted : bool[n_constraints, n_groups]
    scored : bool[n_groups]
        The groups that are scored at all.
    in_domain, rows_of : int64[n_constraints, n_slots]
        Pods in each domain; feasible rows that are scored.
    size : int64[n_constraints]
        How many domains have such a row.
    weight : float64[n_constraints]
        The logarithm of the size plus two.
    is_host : bool[n_constraints]
    grows, max_skew : int64[n_constraints]
        How much a pod of the batch adds to the constraint's count: 1 or 0.
    counts_up : int
        How much it adds to the row's ``pods``: 0 if no constraint on hostname hangs on it.
    """

    group: IntColumn
    pods: IntColumn
    eligible: BoolColumn
    slot: IntColumn
    offset: IntColumn
    counted: BoolColumn
    scored: BoolColumn
    in_domain: IntColumn
    rows_of: IntColumn
    size: IntColumn
    weight: FloatColumn
    is_host: BoolColumn
    grows: IntColumn
    max_skew: IntColumn
    counts_up: int
    maximum: int

    @classmethod
    def of(cls, state: SoftSpread, feasible: BoolColumn, maximum: int) -> "DomainClasses":
        """Begin a batch."""
        all_domains, n_rows, scored = state.domains, len(feasible), scored_rows(state)
        is_host = np.array([d.constraint.key == HOSTNAME for d in all_domains])
        grows = np.array([d.matching.grows(state.pod) for d in all_domains], dtype=np.int64)
        own = np.flatnonzero(is_host & (grows > 0))
        count = all_domains[own[0]].per_row.copy() if len(own) else np.zeros(n_rows, dtype=np.int64)
        slot, offset = np.zeros((2, len(all_domains), n_rows), dtype=np.int64)
        for j, domains in enumerate(all_domains):
            if is_host[j]:
                offset[j] = domains.per_row - grows[j] * count
            else:
                slot[j] = domain_slots(state, domains)
        counted = np.array([scored & d.labelled for d in all_domains])
        group, first = grouped([*slot, *offset, *counted, scored], feasible)
        in_domain, rows_of = np.zeros((2, len(all_domains), int(slot.max(initial=0)) + 1), dtype=np.int64)
        for j, domains in enumerate(all_domains):
            if not is_host[j]:
                counts = domains.counts(slot[j])
                in_domain[j, : len(counts)] = counts
            rows_of[j] = np.bincount(slot[j][feasible & scored], minlength=rows_of.shape[1])
        size = np.where(is_host, np.count_nonzero(feasible & scored), np.count_nonzero(rows_of, axis=1))
        return cls(
            group, count, np.array([d.eligible for d in all_domains]),
            np.ascontiguousarray(slot[:, first]), np.ascontiguousarray(offset[:, first]),
            np.ascontiguousarray(counted[:, first]), scored[first], in_domain, rows_of,
            size.astype(np.int64), np.array([log(n + 2) for n in size.tolist()]), is_host, grows,
            np.array([d.constraint.max_skew for d in all_domains], dtype=np.int64),
            int(len(own) > 0), maximum,
        )  # fmt: skip

    def class_of(self, row: Any) -> Any:
        """Return the group and the count as one number."""
        return (self.group[row] << 32) + self.pods[row]

    def table(self, classes: IntColumn, sizes: IdColumn) -> IntColumn:
        """Return the score of each class."""
        group, own = classes >> 32, classes & 0xFFFFFFFF
        total = np.zeros(len(classes))
        for j in range(len(self.size)):
            if self.is_host[j]:
                counts = self.grows[j] * own + self.offset[j][group]
            else:
                counts = self.in_domain[j][self.slot[j][group]]
            score = domain_score(counts, self.weight[j], self.max_skew[j])
            total += score * self.counted[j][group]
        return flipped(round_half_away(total), self.scored[group], self.maximum).reshape((1, -1))

    def place(self, row: int) -> None:
        """One pod more on the row."""
        self.pods[row] += self.counts_up
        for j in range(len(self.size)):
            if not self.is_host[j] and self.eligible[j, row]:
                self.in_domain[j, self.slot[j, self.group[row]]] += self.grows[j]

    def close(self, row: int) -> None:
        """Leave the row out: only domains with a feasible row count, but all pods in them."""
        group = self.group[row]
        if not self.scored[group]:
            return
        for j in range(len(self.size)):
            slot = self.slot[j, group]
            self.rows_of[j, slot] -= 1
            if self.is_host[j] or self.rows_of[j, slot] == 0:
                self.size[j] -= 1
                self.weight[j] = log(self.size[j] + 2)


def scored_rows(state: SoftSpread) -> BoolColumn:
    """Tell which rows are scored (bool[n_rows]): those with all the keys, where nodes need them."""
    scored = np.ones(state.cluster.nodes.n_rows, dtype=np.bool_)
    if state.constraints.needs_all_keys:
        for domains in state.domains:
            scored &= domains.labelled
    return scored


def domain_slots(state: SoftSpread, domains: Domains) -> IdColumn:
    """Return the domain of every row, as the score tells domains apart."""
    if state.constraints.needs_all_keys:
        return domains.slots
    return _merge_empty(state.cluster, domains.slots)


def domain_score(counts: IntColumn, weight: float, max_skew: int) -> NDArray[np.floating[Any]]:
    """Score counts of pods, in upstream's order of floats; ``weight`` is the logarithm of the number of domains plus two."""
    return counts * weight + float(max_skew - 1)


@dataclass(frozen=True, slots=True)
class EvenPodsScore(_SpreadScore):
    """1.17's: the fewer selected pods, of any namespace, in the node's domains, the better."""

    maximum: int = 100

    name: ClassVar[str] = "EvenPodsSpread"

    def skips(self, pod: Incoming, cluster: Cluster) -> bool:
        return not pod.info.spec.topology_spread_constraints

    def prepare(self, pod: Incoming, cluster: Cluster) -> SoftSpread:
        # Constraints that can't be read are as good as none.
        constraints = constraints_of(pod, cluster, SCHEDULE_ANYWAY, EVEN_PODS)
        state = SoftSpread(cluster, pod, constraints)
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
    among = scores[scored]
    if not len(among):
        return np.zeros(len(scores), dtype=np.int64)
    highest, lowest = int(among.max()), int(among.min())
    if highest <= 0:
        return maximum * scored.astype(np.int64)
    return maximum * (highest + lowest - scores) // highest * scored


def round_half_away(values: FloatColumn) -> IntColumn:
    """Round to integers, halves away from zero (int64), as Go does."""
    whole = np.trunc(values)
    return (whole + (np.abs(values - whole) >= 0.5) * np.copysign(1.0, values)).astype(np.int64)


def _merge_empty(cluster: Cluster, slots: IdColumn) -> IdColumn:
    """Put rows without the label into the domain of those where it is empty, as upstream's maps do."""
    empty = cluster.nodes.labels.value_id("")
    return slots if empty == NONE else np.where(slots == 0, np.int32(empty + 1), slots).astype(np.int32)
