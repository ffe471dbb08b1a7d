"""Is it the node that the pod's ``spec.nodeName`` names, if it names one? NodeName, formerly HostName."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from berth.cluster.arrays import ALL_ROWS, IntColumn, Rows
from berth.cluster.cluster import Cluster, Incoming
from berth.cluster.log import Changes
from berth.framework.plugin import FITS, BatchKind, FilterPlugin


@dataclass(frozen=True, slots=True)
class NodeName(FilterPlugin[IntColumn]):
    """The node has the name that the pod asks for."""

    reason: str = "node(s) didn't match the requested node name"

    name = "NodeName"

    def prepare(self, pod: Incoming, cluster: Cluster) -> IntColumn:
        codes = np.full(cluster.nodes.n_rows, int(bool(pod.node_name)), dtype=np.int64)
        row = cluster.nodes.row(pod.node_name)
        if row >= 0:
            codes[row] = FITS
        return codes

    def mend(self, state: IntColumn, changes: Changes) -> Rows | None:
        return np.empty(0, dtype=np.intp)  # A node that comes or goes makes all states anew.

    def filter(self, state: IntColumn, rows: Rows = ALL_ROWS, placed: IntColumn | int = 0) -> IntColumn:
        return state[rows].copy()

    def reasons(self, state: IntColumn, code: int) -> tuple[str, ...]:
        return (self.reason,) if code != FITS else ()

    def batch(self, state: IntColumn, feasible: NDArray[np.bool_]) -> BatchKind:
        return BatchKind.CONSTANT
