"""Taints and tolerations: PodToleratesNodeTaints and TaintTolerationPriority.

Source: 1.13, ``predicates.go`` and ``priorities/taint_toleration.go``.
"""

from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from berth.cluster.arrays import ALL_ROWS, BoolColumn, IntColumn, Rows
from berth.cluster.cluster import Cluster, Incoming
from berth.framework.normalize import scale_to_maximum
from berth.framework.plugin import FITS, BatchKind, FilterPlugin, ScorePlugin
from berth.objects.nodes import Taint
from berth.objects.pods import Toleration
from berth.objects.taints import tolerated


@dataclass(frozen=True, slots=True)
class Tolerations:
    """What the pod tolerates."""

    cluster: Cluster
    tolerations: tuple[Toleration, ...]
    compares: bool = False

    def count_untolerated(self, rows: Rows, effects: tuple[str, ...]) -> IntColumn:
        """Count the taints of those effects that the pod does not stand, for rows (int64[n])."""
        per_set = self.per_set(effects)
        if not per_set.any():
            return np.zeros(self.cluster.nodes.n_rows, dtype=np.int64)[rows]
        counted: IntColumn = per_set[self.cluster.nodes.taints_id[rows]]
        return counted

    def per_set(self, effects: tuple[str, ...]) -> IntColumn:
        """Count them for each distinct set of taints (int64[n_sets])."""
        sets = self.cluster.nodes.taint_sets.items
        return np.array([sum(map(partial(self._keeps_away, effects), taints)) for taints in sets], np.int64)

    def _keeps_away(self, effects: tuple[str, ...], taint: Taint) -> bool:
        return taint.effect in effects and not tolerated(self.tolerations, taint, compares=self.compares)


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

    def prepare(self, pod: Incoming, cluster: Cluster) -> Tolerations:
        return Tolerations(cluster, pod.info.spec.tolerations, self.compares)

    def is_idle(self, state: Tolerations) -> bool:
        return not state.per_set(self.effects).any()

    def passes(self, state: Tolerations, rows: Rows = ALL_ROWS) -> BoolColumn:
        tolerable = state.per_set(self.effects) == 0
        stood: BoolColumn = tolerable[state.cluster.nodes.taints_id[rows]]
        return stood

    def filter(self, state: Tolerations, rows: Rows = ALL_ROWS, placed: IntColumn | int = 0) -> IntColumn:
        return (state.count_untolerated(rows, self.effects) > 0).astype(np.int64)

    def reasons(self, state: Tolerations, code: int) -> tuple[str, ...]:
        return (self.reason,) if code != FITS else ()

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

    def normalize(self, state: Tolerations, scores: IntColumn, rows: NDArray[np.intp]) -> IntColumn:
        return scale_to_maximum(scores, self.maximum, reverse=True)

    def batch(self, state: Tolerations, feasible: NDArray[np.bool_]) -> BatchKind:
        return BatchKind.CONSTANT
