"""Is the node open to new pods? NodeUnschedulable, formerly CheckNodeUnschedulable.

Source: ``algorithm/predicates/predicates.go`` of 1.10, 1.13 and 1.17, ``plugins/nodeunschedulable`` of 1.36.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from berth.cluster.arrays import ALL_ROWS, BoolColumn, IntColumn, Rows
from berth.cluster.cluster import Cluster, Incoming
from berth.framework.plugin import FITS, BatchKind, FilterPlugin
from berth.objects.nodes import Taint
from berth.objects.taints import tolerated

UNSCHEDULABLE_TAINT = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")


@dataclass(frozen=True, slots=True)
class Cordon:
    """The cluster, and whether the pod goes to cordoned nodes as well."""

    cluster: Cluster
    is_tolerated: bool


@dataclass(frozen=True, slots=True)
class NodeUnschedulable(FilterPlugin[Cordon]):
    """The node is not cordoned.

    Attributes
    ----------
    tolerable : bool
        Whether a pod that tolerates the taint of cordoned nodes is let through (since 1.11).
    compares : bool
        Whether tolerations may compare numbers (1.36, gate TaintTolerationComparisonOperators).
    """

    tolerable: bool = True
    compares: bool = False
    reason: str = "node(s) were unschedulable"

    name = "NodeUnschedulable"
    reads_pods = False

    def prepare(self, pod: Incoming, cluster: Cluster) -> Cordon:
        tolerations = pod.info.spec.tolerations
        return Cordon(
            cluster, self.tolerable and tolerated(tolerations, UNSCHEDULABLE_TAINT, compares=self.compares)
        )

    def skips(self, pod: Incoming, cluster: Cluster) -> bool:
        return not cluster.nodes.n_unschedulable

    def is_idle(self, state: Cordon) -> bool:
        return state.is_tolerated

    def passes(self, state: Cordon, rows: Rows = ALL_ROWS) -> BoolColumn | None:
        return ~state.cluster.nodes.unschedulable[rows] | state.is_tolerated

    def filter(self, state: Cordon, rows: Rows = ALL_ROWS, placed: IntColumn | int = 0) -> IntColumn:
        cordoned = state.cluster.nodes.unschedulable[rows]
        return (cordoned & (not state.is_tolerated)).astype(np.int64)

    def reasons(self, state: Cordon, code: int) -> tuple[str, ...]:
        return (self.reason,) if code != FITS else ()

    def batch(self, state: Cordon, feasible: NDArray[np.bool_]) -> BatchKind:
        return BatchKind.CONSTANT
