"""CheckServiceAffinity and ServiceAntiAffinity: pods of one service together, or apart, by the labels of nodes.

Source: ``predicates/predicates.go`` and ``priorities/selector_spreading.go`` of 1.10, 1.13 and 1.17.

Upstream takes "the first" pod and "the first" service as they come out of a Go map. Here it is the pod of the lowest id
(the one that came first, as long as none has gone) and the service that came first.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from berth.cluster.arrays import ALL_ROWS, NONE, BoolColumn, IdColumn, IntColumn, Rows
from berth.cluster.cluster import Cluster, Incoming
from berth.cluster.log import Changes
from berth.framework.plugin import FITS, BatchKind, Classed, FilterPlugin, ScorePlugin
from berth.objects.selectors import Selector, from_map

VIOLATED = 1
NODE_UNKNOWN = -1
REASON = "node(s) didn't match service affinity"


@dataclass(slots=True)
class Affinity:
    """What is known of one shape.

    Attributes
    ----------
    like_it : Selector
        Pods with all the labels of the pod; the first one's node says where the service is.
    follows : bool
        Whether that matters: the pod is of a service, and does not itself name all labels.
    required : dict of label to value
        What a node has to have.
    error : str
        The first pod's node is not known.
    """

    cluster: Cluster
    namespace_id: int
    like_it: Selector
    follows: bool
    required: dict[str, str]
    error: str = ""


@dataclass(frozen=True, slots=True)
class ServiceAffinity(FilterPlugin[Affinity]):
    """Has the node the labels that the pod names, or else those of the node where its service's first pod is?

    Attributes
    ----------
    labels : tuple of str
        The labels that pods of a service must agree on.
    counts_unknown_nodes : bool
        Whether a pod on a node that is not known may be the first one, which then is an error (up to 1.13).
    """

    labels: tuple[str, ...]
    counts_unknown_nodes: bool = True

    name: ClassVar[str] = "ServiceAffinity"
    legacy_names: ClassVar[tuple[str, ...]] = ("CheckServiceAffinity",)

    def prepare(self, pod: Incoming, cluster: Cluster) -> Affinity:
        named = pod.info.spec.node_selector
        required = {label: named[label] for label in self.labels if label in named}
        like_it = from_map(pod.labels)
        follows = len(self.labels) > len(required) and first_service(pod, cluster) is not None
        state = Affinity(cluster, pod.namespace_id, like_it, follows, required)
        first = self._first(state) if follows else NONE
        if first != NONE:
            row = int(cluster.pods.node_row[first])
            if row == NONE:
                node_name = cluster.pods.node_names.items[int(cluster.pods.column("node_name_id")[first])]
                state.error = f'node "{node_name}" not found'
            else:
                theirs = cluster.nodes.labels.get(row)
                state.required = {label: theirs[label] for label in self.labels if label in theirs} | required
        return state

    def filter(self, state: Affinity, rows: Rows = ALL_ROWS, placed: IntColumn | int = 0) -> IntColumn:
        nodes = state.cluster.nodes
        if state.error:
            return np.full(nodes.n_rows, NODE_UNKNOWN, dtype=np.int64)[rows]
        return np.where(nodes.labels.matches(from_map(state.required))[rows], FITS, VIOLATED)

    def reasons(self, state: Affinity, code: int) -> tuple[str, ...]:
        return (REASON,) if code == VIOLATED else (state.error,)

    def mend(self, state: Affinity, changes: Changes) -> Rows | None:
        if state.follows:
            # A node whose labels change may be the first pod's; a pod may have become the first.
            if changes.nodes or any(change.namespace_id == state.namespace_id for change in changes.pods):
                return None
            return np.empty(0, dtype=np.intp)
        return changes.rows if changes.nodes else np.empty(0, dtype=np.intp)

    def batch(self, state: Affinity, feasible: NDArray[np.bool_]) -> BatchKind:
        return BatchKind.SERIAL if state.follows else BatchKind.CONSTANT

    def moved_by(self, state: Affinity, other: Incoming) -> bool:
        return state.follows and other.namespace_id == state.namespace_id

    def _first(self, state: Affinity) -> int:
        pods = state.cluster.pods
        on_node = pods.active & (pods.column("namespace_id") == state.namespace_id)
        if self.counts_unknown_nodes:
            on_node &= pods.column("node_name_id") != NONE
        else:
            on_node &= pods.node_row != NONE
        ids = np.flatnonzero(on_node)
        ids = ids[state.cluster.label_sets.matches(state.like_it)[pods.column("labels_id")[ids]]]
        return int(ids[0]) if len(ids) else NONE


@dataclass(slots=True)
class Company:
    """How many pods of the service are on each node (int64[n_rows]), as far as label sets were known then."""

    cluster: Cluster
    namespace_id: int
    selector: Selector | None
    matching_sets: BoolColumn
    counts: IntColumn
    adds_to_itself: bool


@dataclass(frozen=True, slots=True)
class ServiceAntiAffinity(ScorePlugin[Company]):
    """The smaller the share of the service's pods on nodes with the same value of a label, the better.

    Attributes
    ----------
    counts_terminating : bool
        Whether pods that are going count (1.10).
    empty_counts : bool
        Whether a service with an empty selector stands for all pods of the namespace (up to 1.13), or for none.
    """

    label: str
    maximum: int
    counts_terminating: bool = False
    empty_counts: bool = True

    name: ClassVar[str] = "ServiceAntiAffinity"

    def prepare(self, pod: Incoming, cluster: Cluster) -> Company:
        selector = first_service(pod, cluster)
        if selector is not None and not selector.requirements and not self.empty_counts:
            selector = None
        n_rows = cluster.nodes.n_rows
        state = Company(
            cluster, pod.namespace_id, selector, np.zeros(0, dtype=np.bool_), np.zeros(n_rows, dtype=np.int64), False
        )  # fmt: skip
        if selector is None:
            return state
        state.matching_sets = cluster.label_sets.matches(selector)
        state.adds_to_itself = bool(state.matching_sets[pod.labels_id])
        pods = cluster.pods
        counted = pods.active & (pods.node_row != NONE) & (pods.column("namespace_id") == pod.namespace_id)
        if not self.counts_terminating:
            counted &= ~pods.column("terminating").astype(np.bool_)
        ids = np.flatnonzero(counted)
        ids = ids[state.matching_sets[pods.column("labels_id")[ids]]]
        state.counts = np.bincount(pods.node_row[ids], minlength=n_rows).astype(np.int64)
        return state

    def mend(self, state: Company, changes: Changes) -> Rows | None:
        if state.selector is None:
            return np.empty(0, dtype=np.intp)
        if len(state.matching_sets) < state.cluster.label_sets.n_rows:
            state.matching_sets = state.cluster.label_sets.matches(state.selector)
        for change in changes.pods:
            if (
                change.namespace_id == state.namespace_id
                and (self.counts_terminating or not change.terminating)
                and state.matching_sets[change.labels_id]
            ):
                state.counts[change.row] += change.sign
        return changes.rows

    def score(self, state: Company, rows: Rows = ALL_ROWS, placed: IntColumn | int = 0) -> IntColumn:
        return state.counts[rows].copy()

    def normalize(self, state: Company, scores: IntColumn, rows: NDArray[np.intp]) -> IntColumn:
        slots = self._slots(state)[rows]
        per_value = np.bincount(slots, weights=scores, minlength=1).astype(np.int64)
        return share_score(per_value, int(scores.sum()), self.maximum)[slots]

    def batch(self, state: Company, feasible: NDArray[np.bool_]) -> BatchKind:
        return BatchKind.CLASSED if state.adds_to_itself else BatchKind.CONSTANT

    def classes(self, state: Company, feasible: NDArray[np.bool_]) -> Classed:
        return Shares.of(state.counts, self._slots(state), feasible, self.maximum)

    def moved_by(self, state: Company, other: Incoming) -> bool:
        return state.selector is not None and other.namespace_id == state.namespace_id

    def _slots(self, state: Company) -> IdColumn:
        """Return the label's value of every row as its id plus one, 0 where the label is absent."""
        slots: IdColumn = state.cluster.nodes.labels.column(self.label) - np.int32(NONE)
        return slots


def share_score(per_value: IntColumn, total: int, maximum: int) -> IntColumn:
    """Score each value of a label: ``maximum`` for none of the pods, 0 for all of them; slot 0, without a value, 0.

    Parameters
    ----------
    per_value : int64[n_slots]
        Pods of the service on feasible nodes, by the nodes' value.
    total : int
        The same on all feasible nodes, those without the label included.
    """
    score = np.full(len(per_value), float(maximum))
    if total > 0:
        score = float(maximum) * ((total - per_value) / float(total))
    score[0] = 0.0
    return score.astype(np.int64)


class Shares(NamedTuple):
    """ServiceAntiAffinity within a batch: a class is a value of the label, by its slot.

    Attributes
    ----------
    slots, counts : int64[n_rows]
    per_value : int64[n_slots]
        Pods of the service on the feasible nodes of each value.
    """

    slots: IntColumn
    counts: IntColumn
    per_value: IntColumn
    maximum: int

    @classmethod
    def of(cls, counts: IntColumn, slots: IdColumn, feasible: NDArray[np.bool_], maximum: int) -> "Shares":
        """Begin a batch."""
        n_slots = int(slots.max(initial=0)) + 1
        per_value = np.bincount(slots[feasible], weights=counts[feasible], minlength=n_slots)
        return cls(slots.astype(np.int64), counts.copy(), per_value.astype(np.int64), maximum)

    def class_of(self, row: Any) -> Any:
        """Return the slot."""
        return self.slots[row]

    def table(self, classes: IntColumn, sizes: IdColumn) -> IntColumn:
        """Return the score of each value."""
        return share_score(self.per_value, self.per_value.sum(), self.maximum)[classes].reshape((1, -1))

    def place(self, row: int) -> None:
        """One pod more on the row."""
        self.counts[row] += 1
        self.per_value[self.slots[row]] += 1

    def close(self, row: int) -> None:
        """Leave the row out: only feasible nodes count."""
        self.per_value[self.slots[row]] -= self.counts[row]


def first_service(pod: Incoming, cluster: Cluster) -> Selector | None:
    """Return the selector of the first service of the pod's namespace that selects the pod."""
    for service in cluster.objects.services.within(pod.namespace):
        if service.spec.selector is not None:
            selector = from_map(service.spec.selector)
            if selector.matches(pod.labels):
                return selector
    return None
