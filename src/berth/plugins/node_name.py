"""Is this the node that the pod names? HostName."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from berth.cluster.arrays import ALL_ROWS, NONE, IntColumn, Rows
from berth.cluster.cluster import Cluster, Incoming
from berth.cluster.log import Changes
from berth.framework.plugin import FITS, BatchKind, FilterPlugin


@dataclass(frozen=True, slots=True)
class NamedNode:
    """The row that the pod asks for by name; `NONE` with a name stands for a node that is not known."""

    cluster: Cluster
    is_asked: bool
    row: int


@dataclass(frozen=True, slots=True)
class NodeName(FilterPlugin[NamedNode]):
    """A pod that names its node fits there and nowhere else."""

    reason: str = "node(s) didn't match the requested hostname"

    name = "NodeName"
    reads_pods = False

    def skips(self, pod: Incoming, cluster: Cluster) -> bool:
        return not pod.node_name

    def prepare(self, pod: Incoming, cluster: Cluster) -> NamedNode:
        return NamedNode(cluster, is_asked=bool(pod.node_name), row=cluster.nodes.row(pod.node_name))

    def is_idle(self, state: NamedNode) -> bool:
        return not state.is_asked

    def filter(self, state: NamedNode, rows: Rows = ALL_ROWS, placed: IntColumn | int = 0) -> IntColumn:
        codes = np.full(state.cluster.nodes.n_rows, int(state.is_asked), dtype=np.int64)
        if state.row != NONE:
            codes[state.row] = FITS
        return codes[rows]

    def reasons(self, state: NamedNode, code: int) -> tuple[str, ...]:
        return (self.reason,) if code != FITS else ()

    def mend(self, state: NamedNode, changes: Changes) -> Rows | None:
        # Nodes that come and go reset everything; a name does not change.
        return np.empty(0, dtype=np.intp)

    def batch(self, state: NamedNode, feasible: NDArray[np.bool_]) -> BatchKind:
        return BatchKind.CONSTANT
