"""Taints and tolerations: PodToleratesNodeTaints and TaintTolerationPriority.

Source: 1.13, ``predicates.go`` and ``priorities/taint_toleration.go``.
"""

from collections.abc import Hashable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from berth.cluster.arrays import ALL_ROWS, BoolColumn, IdColumn, IntColumn, Rows
from berth.cluster.cluster import Cluster, Incoming
from berth.framework.changes import Action, Change, Hint, NodeChange, Resource
from berth.framework.normalize import Scaling
from berth.framework.plugin import FITS, BatchKind, FilterPlugin, ScorePlugin
from berth.objects.nodes import Node, Taint
from berth.objects.pods import Toleration
from berth.objects.taints import tolerated

_N_KNOWN = 32


@dataclass
class Untolerated:
    """How many taints a pod does not stand.

    Attributes
    ----------
    per_set : int64[n_sets]
        Of each distinct set of taints.
    taints_id : int32[n_rows]
        Each row's set.
    """

    per_set: IntColumn
    taints_id: IdColumn

    @cached_property
    def are_none(self) -> bool:
        """Whether the pod stands all."""
        return not self.per_set.any()

    @cached_property
    def per_row(self) -> IntColumn:
        """Their number (int64[n_rows])."""
        return self.per_set.take(self.taints_id)

    @cached_property
    def is_stood(self) -> BoolColumn:
        """Where there are none (bool[n_rows])."""
        stood: BoolColumn = (self.per_set == 0).take(self.taints_id)
        return stood


@dataclass(slots=True)
class Known:
    """What was found of pods that tolerate alike, as long as no node changes; of a few kinds, for columns are large."""

    version: int
    found: dict[Hashable, Untolerated] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Tolerations:
    """What the pod tolerates."""

    cluster: Cluster
    tolerations: tuple[Toleration, ...]
    compares: bool = False

    def untolerated(self, effects: tuple[str, ...]) -> Untolerated:
        """Count the taints of those effects that the pod does not stand."""
        nodes, derived = self.cluster.nodes, self.cluster.derived
        known: Known | None = derived.get("Tolerations")
        if known is None or known.version != nodes.version:
            known = derived["Tolerations"] = Known(nodes.version)
        key = self.tolerations, effects, self.compares
        found = known.found.get(key)
        if found is None:
            if len(known.found) >= _N_KNOWN:
                known.found.clear()
            counts = [self._count(taints, effects) for taints in nodes.taint_sets.items]
            found = known.found[key] = Untolerated(np.array(counts, dtype=np.int64), nodes.taints_id)
        return found

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
        return state.untolerated(self.effects).are_none

    def passes(self, state: Tolerations, rows: Rows = ALL_ROWS) -> BoolColumn:
        return state.untolerated(self.effects).is_stood[rows]

    def filter(self, state: Tolerations, rows: Rows = ALL_ROWS, placed: IntColumn | int = 0) -> IntColumn:
        return (~state.untolerated(self.effects).is_stood[rows]).astype(np.int64)

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
        return state.untolerated(("PreferNoSchedule",)).per_row[rows].copy()

    @property
    def scaling(self) -> Scaling:
        return Scaling(self.maximum, reverse=True)

    def batch(self, state: Tolerations, feasible: NDArray[np.bool_]) -> BatchKind:
        return BatchKind.CONSTANT
