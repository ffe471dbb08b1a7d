"""Taints and tolerations: PodToleratesNodeTaints and TaintTolerationPriority.

Source: 1.13, ``predicates.go`` and ``priorities/taint_toleration.go``.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from berth.cluster.arrays import ALL_ROWS, BoolColumn, IntColumn, Rows
from berth.cluster.cluster import Cluster, Incoming
from berth.framework.changes import Action, Change, Hint, NodeChange, Resource
from berth.framework.normalize import Scaling
from berth.framework.plugin import FITS, BatchKind, FilterPlugin, ScorePlugin
from berth.objects.nodes import Node, Taint
from berth.objects.pods import Toleration
from berth.objects.taints import tolerated


class Untolerated(NamedTuple):
    """How many taints the pod does not stand, by the distinct sets of taints.

    Attributes
    ----------
    counts, stood : int64[n_sets], bool[n_sets]
        The number, and whether it is 0.
    """

    counts: IntColumn
    stood: BoolColumn
    all_stood: bool


@dataclass(frozen=True, slots=True)
class Tolerations:
    """What the pod tolerates."""

    cluster: Cluster
    tolerations: tuple[Toleration, ...]
    compares: bool = False

    def untolerated(self, effects: tuple[str, ...]) -> Untolerated:
        """Count the taints of those effects that the pod does not stand; kept with the cluster for pods that stand alike."""
        sets = self.cluster.nodes.taint_sets.items
        key = "Tolerations", self.tolerations, effects, self.compares
        found: Untolerated | None = self.cluster.derived.get(key)
        if found is None or len(found.counts) < len(sets):
            counts = np.array([self._count(taints, effects) for taints in sets], dtype=np.int64)
            found = self.cluster.derived[key] = Untolerated(counts, counts == 0, not counts.any())
        return found

    def count_untolerated(self, rows: Rows, effects: tuple[str, ...]) -> IntColumn:
        """Count them for rows (int64[n])."""
        counted: IntColumn = self.untolerated(effects).counts.take(self.cluster.nodes.taints_id[rows])
        return counted

    def _count(self, taints: tuple[Taint, ...], effects: tuple[str, ...]) -> int:
        return sum(
            taint.effect in effects and not tolerated(self.tolerations, taint, compares=self.compares)
            for taint in taints
        )


@dataclass(frozen=True, slots=True)
class TolerateTaints(FilterPlugin[Tolerations]):
    """The pod stands every taint that keeps pods away.

    Attributes
    ----------
    compares : bool
        Whether tolerations may compare numbers (1.36, gate TaintTolerationComparisonOperators).
    """

    effects: tuple[str, ...] = ("NoSchedule", "NoExecute")
    reason: str = "node(s) had taints that the pod didn't tolerate"
    compares: bool = False

    name = "TaintToleration"
    reads_pods = False
    wakes_on = {
        Resource.NODE: Action.ADD | Action.UPDATE_NODE_TAINT,
        Resource.UNSCHEDULED_POD: Action.UPDATE_POD_TOLERATION,
    }

    def prepare(self, pod: Incoming, cluster: Cluster) -> Tolerations:
        return Tolerations(cluster, pod.info.spec.tolerations, self.compares)

    def is_idle(self, state: Tolerations) -> bool:
        return state.untolerated(self.effects).all_stood

    def passes(self, state: Tolerations, rows: Rows = ALL_ROWS) -> BoolColumn:
        stood: BoolColumn = state.untolerated(self.effects).stood.take(state.cluster.nodes.taints_id[rows])
        return stood

    def filter(self, state: Tolerations, rows: Rows = ALL_ROWS, placed: IntColumn | int = 0) -> IntColumn:
        return (state.count_untolerated(rows, self.effects) > 0).astype(np.int64)

    def reasons(self, state: Tolerations, code: int) -> tuple[str, ...]:
        return (self.reason,) if code != FITS else ()

    def hint(self, pod: Incoming, cluster: Cluster) -> Hint:
        tolerations = pod.info.spec.tolerations

        def stands(node: Node) -> bool:
            return all(
                taint.effect not in self.effects or tolerated(tolerations, taint, compares=self.compares)
                for taint in node.spec.taints
            )

        def helps(change: Change) -> bool:
            if isinstance(change, NodeChange) and change.new:
                return stands(change.new) and (change.old is None or not stands(change.old))
            return True

        return helps

    def batch(self, state: Tolerations, feasible: NDArray[np.bool_]) -> BatchKind:
        return BatchKind.CONSTANT


@dataclass(frozen=True, slots=True)
class PreferToleratedTaints(ScorePlugin[Tolerations]):
    """The fewer PreferNoSchedule taints the pod does not stand, the better; ``compares`` as above."""

    maximum: int
    compares: bool = False

    name = "TaintToleration"
    reads_pods = False

    def prepare(self, pod: Incoming, cluster: Cluster) -> Tolerations:
        return Tolerations(cluster, pod.info.spec.tolerations, self.compares)

    def score(self, state: Tolerations, rows: Rows = ALL_ROWS, placed: IntColumn | int = 0) -> IntColumn:
        return state.count_untolerated(rows, ("PreferNoSchedule",))

    @property
    def scaling(self) -> Scaling:
        return Scaling(self.maximum, reverse=True)

    def batch(self, state: Tolerations, feasible: NDArray[np.bool_]) -> BatchKind:
        return BatchKind.CONSTANT
