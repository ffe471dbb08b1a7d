"""Taints and tolerations: PodToleratesNodeTaints and TaintTolerationPriority.

Source: 1.13, ``predicates.go`` and ``priorities/taint_toleration.go``.
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from berth.cluster.arrays import ALL_ROWS, BoolColumn, IntColumn, Rows
from berth.cluster.cluster import Cluster, Incoming
from berth.framework.changes import Action, Change, Hint, NodeChange, Resource
from berth.framework.normalize import Scaling
from berth.framework.plugin import FITS, BatchKind, FilterPlugin, ScorePlugin
from berth.objects.nodes import Node
from berth.objects.pods import Toleration
from berth.objects.taints import tolerated


@dataclass(frozen=True, slots=True)
class Tolerations:
    """What the pod tolerates."""

    cluster: Cluster
    tolerations: tuple[Toleration, ...]
    compares: bool = False
    _per_set: list[int] = field(default_factory=list)

    def count_untolerated(self, rows: Rows, effects: tuple[str, ...]) -> IntColumn:
        """Count the taints of those effects that the pod does not stand, for rows (int64[n])."""
        counted: IntColumn = np.array(self.per_set(effects), dtype=np.int64).take(
            self.cluster.nodes.taints_id[rows]
        )
        return counted

    def per_set(self, effects: tuple[str, ...]) -> list[int]:
        """Count them for each distinct set of taints; asked for one list of effects alone."""
        sets = self.cluster.nodes.taint_sets.items
        for taints in sets[len(self._per_set) :]:
            untolerated = (
                taint
                for taint in taints
                if taint.effect in effects and not tolerated(self.tolerations, taint, compares=self.compares)
            )
            self._per_set.append(sum(1 for _ in untolerated))
        return self._per_set


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
        return not any(state.per_set(self.effects))

    def passes(self, state: Tolerations, rows: Rows = ALL_ROWS) -> BoolColumn:
        tolerable = np.array(state.per_set(self.effects)) == 0
        stood: BoolColumn = tolerable.take(state.cluster.nodes.taints_id[rows])
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
