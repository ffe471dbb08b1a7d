"""How many pods that a constraint selects lie in each domain of its topology key. Knows no verdicts and no scores."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from berth.cluster.arrays import NONE, BoolColumn, IdColumn, IntColumn
from berth.cluster.cluster import Cluster, Incoming
from berth.cluster.log import PodChange
from berth.cluster.nodes import by_interned
from berth.framework.node_selection import matches_node_selector
from berth.objects.selectors import from_map
from berth.objects.taints import tolerated
from berth.plugins.pod_topology_spread.constraints import Constraint, Constraints, SpreadRules

EFFECTS = ("NoSchedule", "NoExecute")


class Matching:
    """The pods that a constraint selects.

    Parameters
    ----------
    namespace_id : int
        `NONE` for all namespaces.
    """

    def __init__(
        self, cluster: Cluster, constraint: Constraint, namespace_id: int, rules: SpreadRules
    ) -> None:
        self._cluster = cluster
        self._selector = constraint.selector
        self._namespace_id = namespace_id
        self._terminating = rules.counts_terminating
        self._is_void = self._selector.requirements == () and not rules.empty_counts
        self._sets = cluster.label_sets.matches(self._selector)

    def selects(self, labels_id: int) -> bool:
        """Tell whether the selector matches a label set, though an empty one may count nothing."""
        if labels_id >= len(self._sets):
            self._sets = self._cluster.label_sets.matches(self._selector)
        return bool(self._sets[labels_id])

    def counts(self, change: PodChange) -> bool:
        """Tell whether a pod that came or went counts."""
        if self._is_void or (change.terminating and not self._terminating):
            return False
        return self._namespace_id in (NONE, change.namespace_id) and self.selects(change.labels_id)

    def grows(self, pod: Incoming) -> bool:
        """Tell whether a pod of the shape adds to the count."""
        return not self._is_void and self.selects(pod.labels_id)

    def counts_shape(self, pod: Incoming) -> bool:
        """Tell whether a pod of any shape adds to the count."""
        return self._namespace_id in (NONE, pod.namespace_id) and self.grows(pod)

    def per_row(self) -> IntColumn:
        """Count the pods on every row (int64[n_rows])."""
        pods, n_rows = self._cluster.pods, self._cluster.nodes.n_rows
        if self._is_void or not self._sets.any():
            return np.zeros(n_rows, dtype=np.int64)
        counted = pods.active & (pods.node_row != NONE)
        if self._namespace_id != NONE:
            counted &= pods.column("namespace_id") == self._namespace_id
        if not self._terminating:
            counted &= ~pods.column("terminating").astype(np.bool_)
        ids = np.flatnonzero(counted)
        ids = ids[self._sets[pods.column("labels_id")[ids]]]
        return np.bincount(pods.node_row[ids], minlength=n_rows).astype(np.int64)


@dataclass(slots=True)
class Domains:
    """A constraint's domains: the values of its key, each a slot (value id plus one; 0 where the label is absent).

    Attributes
    ----------
    slots : int32[n_rows]
        Each row's slot.
    eligible : bool[n_rows]
        The rows whose pods and domains count.
    per_row : int64[n_rows]
        Selected pods on each row.
    """

    constraint: Constraint
    matching: Matching
    slots: IdColumn
    eligible: BoolColumn
    per_row: IntColumn

    @property
    def labelled(self) -> BoolColumn:
        """Which rows have the label (bool[n_rows])."""
        return self.slots > 0

    def counts(self, slots: IdColumn) -> IntColumn:
        """Return the selected pods by slot (int64[n_slots]); slots as `slots`, or merged ones."""
        n_slots = int(slots.max(initial=0)) + 1
        eligible = self.eligible
        return np.bincount(slots[eligible], weights=self.per_row[eligible], minlength=n_slots).astype(
            np.int64
        )

    def present(self) -> BoolColumn:
        """Tell which slots have an eligible node (bool[n_slots])."""
        n_slots = int(self.slots.max(initial=0)) + 1
        return np.bincount(self.slots[self.eligible], minlength=n_slots) > 0


def domains_of(
    pod: Incoming, cluster: Cluster, constraints: Constraints, rules: SpreadRules, namespace_id: int
) -> list[Domains]:
    """Count for each constraint."""
    nodes = cluster.nodes
    columns = [(nodes.labels.column(one.key) - np.int32(NONE)).astype(np.int32) for one in constraints.all]
    base = nodes.alive.copy()
    if constraints.needs_all_keys:
        for column in columns:
            base &= column > 0
    affine, untainted = _affine(pod, cluster), None
    found = []
    for one, slots in zip(constraints.all, columns, strict=True):
        eligible = base & affine if one.honors_affinity else base.copy()
        if one.honors_taints:
            untainted = _untainted(pod, cluster) if untainted is None else untainted
            eligible &= untainted
        matching = Matching(cluster, one, namespace_id, rules)
        found.append(Domains(one, matching, slots, eligible, matching.per_row()))
    return found


def _affine(pod: Incoming, cluster: Cluster) -> BoolColumn:
    """Tell which rows meet the pod's node selector and required node affinity (bool[n_rows])."""
    spec = pod.info.spec
    matches = cluster.nodes.labels.matches(from_map(spec.node_selector))
    affinity = spec.affinity.node_affinity if spec.affinity else None
    if affinity and affinity.required is not None:
        matches &= matches_node_selector(cluster.nodes, affinity.required)
    return matches


def _untainted(pod: Incoming, cluster: Cluster) -> NDArray[np.bool_]:
    """Tell which rows have no taint that keeps the pod away (bool[n_rows])."""
    nodes, tolerations = cluster.nodes, pod.info.spec.tolerations
    sets = nodes.taint_sets.items
    return by_interned(
        nodes.taints_id,
        len(sets),
        lambda i: all(t.effect not in EFFECTS or tolerated(tolerations, t) for t in sets[i]),
    ).astype(np.bool_)
