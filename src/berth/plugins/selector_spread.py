"""SelectorSpreadPriority, ServiceSpreadingPriority: pods of one service or controller spread over nodes and zones.

Source: ``priorities/selector_spreading.go`` and ``metadata.go`` (``getSelectors``; 1.17: ``getSelector``) of 1.10, 1.13 and
1.17, listers of client-go.
"""

from dataclasses import dataclass
from typing import Any

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

    def batch(self, state: Spread, feasible: NDArray[np.bool_]) -> BatchKind | Classed:
        return SpreadClasses(state, feasible, self.maximum) if state.adds_to_itself else BatchKind.CONSTANT

    def moved_by(self, state: Spread, other: Incoming) -> bool:
        if other.namespace_id != state.namespace_id:
            return False
        return any(selector.matches(other.labels) for selector in state.selectors)


def spread_score(
    *, count: IntColumn, highest: int, zone: IdColumn, zone_count: IntColumn, highest_zone: int, maximum: int
) -> IntColumn:
    """Score counts per node and zone, ``maximum`` (none there) to 0; upstream's float arithmetic in its order.

    Parameters
    ----------
    count, zone_count : int64[n]
        Matching pods of the node, and of its zone.
    highest, highest_zone : int
        The largest of them over all feasible nodes, and over all zones of theirs.
    zone : int32[n]
        0 for nodes without a zone: they are scored by their own count alone.
    """
    top = float(maximum)
    score: FloatColumn = np.full(len(count), top)
    if highest > 0:
        score = top * ((highest - count) / float(highest))
    zone_score: FloatColumn = np.full(len(count), top)
    if highest_zone > 0:
        zone_score = top * ((highest_zone - zone_count) / float(highest_zone))
    score = np.where(zone > 0, (score * (1.0 - ZONE_WEIGHT)) + (ZONE_WEIGHT * zone_score), score)
    return score.astype(np.int64)


class SpreadClasses:
    """Spreading within a batch: a class is a zone and a count, its score is looked up in a small table."""

    def __init__(self, state: Spread, feasible: NDArray[np.bool_], maximum: int) -> None:
        self._maximum = maximum
        self._zone = state.zone.astype(np.int64)
        self._count = state.counts.copy()
        self._feasible = feasible.copy()
        n_zones = int(self._zone.max(initial=0)) + 1
        self._zone_count = np.bincount(
            self._zone[feasible], weights=self._count[feasible], minlength=n_zones
        ).astype(np.int64)
        self._set_width(int(self._count.max(initial=0)) + 8)

    def _set_width(self, width: int) -> None:
        self._width = width
        n_zones = len(self._zone_count)
        self._class_zone = np.repeat(np.arange(n_zones, dtype=np.int32), width)
        self._class_count = np.tile(np.arange(width, dtype=np.int64), n_zones)
        self._nodes_with = np.bincount(self._count[self._feasible], minlength=width)
        self.class_of: IdColumn = (self._zone * width + self._count).astype(np.int32)

    def table(self) -> IntColumn:
        """Return the score of every (zone, count)."""
        return spread_score(
            count=self._class_count,
            highest=int(self._nodes_with.nonzero()[0][-1]),
            zone=self._class_zone,
            zone_count=np.repeat(self._zone_count, self._width),
            highest_zone=int(self._zone_count[1:].max(initial=0)),
            maximum=self._maximum,
        )

    def place(self, row: int) -> None:
        """One pod more on the row."""
        count = int(self._count[row]) + 1
        self._count[row] = count
        if self._feasible[row]:
            self._zone_count[self._zone[row]] += 1
        if count >= self._width:
            self._set_width(self._width * 2)
            return
        self.class_of[row] += 1
        if self._feasible[row]:
            self._nodes_with[count - 1] -= 1
            self._nodes_with[count] += 1

    def close(self, row: int) -> None:
        """Leave the row out: only feasible nodes count."""
        self._feasible[row] = False
        self._zone_count[self._zone[row]] -= self._count[row]
        self._nodes_with[self._count[row]] -= 1


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
