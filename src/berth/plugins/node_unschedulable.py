"""Is the node cordoned (``spec.unschedulable``)? NodeUnschedulable, formerly CheckNodeUnschedulable."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from berth.cluster.arrays import ALL_ROWS, IntColumn, Rows
from berth.cluster.cluster import Cluster, Incoming
from berth.framework.plugin import FITS, BatchKind, FilterPlugin
from berth.objects.nodes import Taint
from berth.objects.taints import tolerated

TAINT = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")
"""Who tolerates it may go to a cordoned node, whether or not the node has it."""


@dataclass(frozen=True, slots=True)
class Cordon:
    """Whether cordons keep the pod away."""

    cluster: Cluster
    concerns: bool


@dataclass(frozen=True, slots=True)
class NodeUnschedulable(FilterPlugin[Cordon]):
    """The node is not cordoned, or the pod does not mind.

    Attributes
    ----------
    compares : bool
        Whether tolerations may compare numbers (gate TaintTolerationComparisonOperators).
    """

    compares: bool = False
    reason: str = "node(s) were unschedulable"

    name = "NodeUnschedulable"

    def prepare(self, pod: Incoming, cluster: Cluster) -> Cordon:
        tolerations = pod.info.spec.tolerations
        return Cordon(cluster, concerns=not tolerated(tolerations, TAINT, compares=self.compares))

    def filter(self, state: Cordon, rows: Rows = ALL_ROWS, placed: IntColumn | int = 0) -> IntColumn:
        return (state.cluster.nodes.unschedulable[rows] & state.concerns).astype(np.int64)

    def reasons(self, state: Cordon, code: int) -> tuple[str, ...]:
        return (self.reason,) if code != FITS else ()

    def batch(self, state: Cordon, feasible: NDArray[np.bool_]) -> BatchKind:
        return BatchKind.CONSTANT
