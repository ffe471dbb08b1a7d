"""SelectorSpreadPriority, ServiceSpreadingPriority: pods of one service or controller spread over nodes and zones.

Source: ``priorities/selector_spreading.go`` and ``metadata.go`` (``getSelectors``; 1.17: ``getSelector``) of 1.10, 1.13 and
1.17, listers of client-go.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from berth.cluster.arrays import ALL_ROWS, NONE, BoolColumn, FloatColumn, IdColumn, IntColumn, Rows
from berth.cluster.cluster import Cluster, Incoming
from berth.cluster.log import Changes
from berth.framework.plugin import BatchKind, Classed, ScorePlugin
from berth.objects.selectors import Selector, SelectorError, from_label_selector, from_map

ZONE_WEIGHT = 2.0 / 3.0
ZONE_LABEL = "failure-domain.beta.kubernetes.io/zone"
REGION_LABEL = "failure-domain.beta.kubernetes.io/region"


@dataclass(slots=True)
class Spread:
    """How many pods like the incoming one are on each node.

    Attributes
    ----------
    matching_sets : bool[n_label_sets]
        Which label sets any of the pod's selectors matches, as far as they were known when it was made.
    counts : int64[n_rows]
        Matching pods of the namespace on each node, terminating ones aside.
    zone : int32[n_rows]
        Each node's zone, 0 where it has none; other numbers mean nothing by themselves.
    """

    cluster: Cluster
    namespace_id: int
    selectors: tuple[Selector, ...]
    matching_sets: BoolColumn
    counts: IntColumn
    zone: IdColumn
    adds_to_itself: bool


@dataclass(frozen=True, slots=True)
class SelectorSpread(ScorePlugin[Spread]):
    """The fewer matching pods on the node, and in its zone, the better; the zone weighs two thirds.

    Attributes
    ----------
    services_only : bool
        Whether controllers do not count (ServiceSpreadingPriority of 1.7).
    all_must_match : bool
        Whether a pod counts that all selectors match (1.17), rather than any of them. Those that match everything are
        then no selectors.
    """

    maximum: int
    services_only: bool = False
    all_must_match: bool = False

    name = "SelectorSpread"

    def prepare(self, pod: Incoming, cluster: Cluster) -> Spread:
        selectors = selectors_of(pod, cluster, services_only=self.services_only)
        if self.all_must_match:
            selectors = _all_as_one(selectors)
        matching = _matching_sets(cluster, selectors)
        pods = cluster.pods
        counted = pods.active & (pods.node_row != NONE) & ~pods.column("terminating").astype(np.bool_)
        counted &= pods.column("namespace_id") == pod.namespace_id
        if len(counted):
            counted &= matching[pods.column("labels_id")]
        return Spread(
            cluster=cluster,
            namespace_id=pod.namespace_id,
            selectors=selectors,
            matching_sets=matching,
            counts=np.bincount(pods.node_row[counted], minlength=cluster.nodes.n_rows).astype(np.int64),
            zone=zones(cluster),
            adds_to_itself=bool(matching[pod.labels_id]),
        )

    def mend(self, state: Spread, changes: Changes) -> Rows | None:
        if changes.nodes:
            state.zone = zones(state.cluster)
        if state.selectors:
            if len(state.matching_sets) < state.cluster.label_sets.n_rows:
                state.matching_sets = _matching_sets(state.cluster, state.selectors)
            for change in changes.pods:
                if (
                    change.namespace_id == state.namespace_id
                    and not change.terminating
                    and state.matching_sets[change.labels_id]
                ):
                    state.counts[change.row] += change.sign
        return changes.rows

    def score(self, state: Spread, rows: Rows = ALL_ROWS, placed: IntColumn | int = 0) -> IntColumn:
        return state.counts[rows].copy()

    def normalize(self, state: Spread, scores: IntColumn, rows: NDArray[np.intp]) -> IntColumn:
        zone = state.zone[rows]
        per_zone = np.bincount(zone, weights=scores, minlength=1).astype(np.int64)
        return spread_score(
            count=scores,
            highest=int(scores.max(initial=0)),
            zone=zone,
            zone_count=per_zone[zone],
            highest_zone=int(per_zone[1:].max(initial=0)),
            maximum=self.maximum,
        )

    def batch(self, state: Spread, feasible: NDArray[np.bool_]) -> BatchKind:
        return BatchKind.CLASSED if state.adds_to_itself else BatchKind.CONSTANT

    def classes(self, state: Spread, feasible: NDArray[np.bool_]) -> Classed:
        return SpreadClasses.of(state, feasible, self.maximum)

    def moved_by(self, state: Spread, other: Incoming) -> bool:
        if other.namespace_id != state.namespace_id:
            return False
        return any(selector.matches(other.labels) for selector in state.selectors)


def spread_score(
    count: IntColumn,
    highest: int,
    zone: IdColumn | IntColumn,
    zone_count: IntColumn,
    highest_zone: int,
    maximum: int,
) -> IntColumn:
    """Score counts per node and zone, ``maximum`` (none there) to 0; upstream's float arithmetic in its order.

    Parameters
    ----------
    count, zone_count : int64[n]
        Matching pods of the node, and of its zone.
    highest, highest_zone : int
        The largest of them over all feasible nodes, and over all zones of theirs.
    zone : int32[n] or int64[n]
        0 for nodes without a zone: they are scored by their own count alone.
    """
    top = float(maximum)
    score: FloatColumn = np.full(len(count), top)
    if highest > 0:
        score = top * ((highest - count) / float(highest))
    zone_score: FloatColumn = np.full(len(count), top)
    if highest_zone > 0:
        zone_score = top * ((highest_zone - zone_count) / float(highest_zone))
    weight = ZONE_WEIGHT * (zone > 0)
    return ((score * (1.0 - weight)) + (weight * zone_score)).astype(np.int64)


class SpreadClasses(NamedTuple):
    """Spreading within a batch: a class is a zone and a count of pods on the node.

    Attributes
    ----------
    zone, pods : int64[n_rows]
        As in `Spread`; the counts grow.
    zone_count : int64[n_zones]
        Matching pods on the feasible nodes of each zone.
    """

    zone: IntColumn
    pods: IntColumn
    zone_count: IntColumn
    maximum: int

    @classmethod
    def of(cls, state: Spread, feasible: BoolColumn, maximum: int) -> "SpreadClasses":
        """Begin a batch."""
        zone, n_zones = state.zone.astype(np.int64), int(state.zone.max(initial=0)) + 1
        per_zone = np.bincount(zone[feasible], weights=state.counts[feasible], minlength=n_zones)
        return cls(zone, state.counts.copy(), per_zone.astype(np.int64), maximum)

    def class_of(self, row: Any) -> Any:
        """Return the zone and the count as one number."""
        return (self.zone[row] << 32) + self.pods[row]

    def table(self, classes: IntColumn, sizes: IdColumn) -> IntColumn:
        """Return the score of each class."""
        zone, count = classes >> 32, classes & 0xFFFFFFFF
        highest_zone = self.zone_count[1:].max() if len(self.zone_count) > 1 else 0
        score = spread_score(count, count.max(), zone, self.zone_count[zone], highest_zone, self.maximum)
        return score.reshape((1, -1))

    def place(self, row: int) -> None:
        """One pod more on the row."""
        self.pods[row] += 1
        self.zone_count[self.zone[row]] += 1

    def close(self, row: int) -> None:
        """Leave the row out: only feasible nodes count."""
        self.zone_count[self.zone[row]] -= self.pods[row]


def selectors_of(pod: Incoming, cluster: Cluster, *, services_only: bool = False) -> tuple[Selector, ...]:
    """Return the selectors of the services and controllers of the pod's namespace that match it."""
    objects = cluster.objects
    found = [
        from_map(service.spec.selector)
        for service in objects.services.within(pod.namespace)
        if service.spec.selector is not None
    ]
    if pod.labels and not services_only:
        found += [
            from_map(controller.spec.selector)
            for controller in objects.replication_controllers.within(pod.namespace)
            if controller.spec.selector
        ]
        for shelf in (objects.replica_sets, objects.stateful_sets):
            found += _label_selectors(shelf.within(pod.namespace))
    return tuple(selector for selector in found if selector.matches(pod.labels))


def _all_as_one(selectors: tuple[Selector, ...]) -> tuple[Selector, ...]:
    requirements = tuple(r for selector in selectors for r in selector.requirements or ())
    return (Selector(requirements),) if requirements else ()


def _label_selectors(workloads: list[Any]) -> list[Selector]:
    """Return the selectors of ReplicaSets or StatefulSets; one that is refused spoils all of its kind, as upstream."""
    try:
        selectors = [from_label_selector(workload.spec.selector) for workload in workloads]
    except SelectorError:
        return []
    return [selector for selector in selectors if selector.requirements]


def zones(cluster: Cluster) -> IdColumn:
    """Number the (region, zone) pairs of the nodes from 1 (int32[n_rows]); 0 where both labels are absent or empty."""
    labels = cluster.nodes.labels
    empty = labels.value_id("")
    parts = []
    for key in (REGION_LABEL, ZONE_LABEL):
        column = labels.column(key).astype(np.int64)
        parts.append(np.where((column == NONE) | (column == empty), 0, column + 1))
    pairs = parts[0] << 32 | parts[1]
    distinct, numbers = np.unique(pairs, return_inverse=True)
    return (numbers + (0 if len(distinct) and distinct[0] == 0 else 1)).astype(np.int32)


def _matching_sets(cluster: Cluster, selectors: tuple[Selector, ...]) -> BoolColumn:
    matching = np.zeros(cluster.label_sets.n_rows, dtype=np.bool_)
    for selector in selectors:
        matching |= cluster.label_sets.matches(selector)
    return matching
