"""EqualPriority: every node is worth the same."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from berth.cluster.arrays import ALL_ROWS, IntColumn, Rows
from berth.cluster.cluster import Cluster, Incoming
from berth.framework.plugin import BatchKind, ScorePlugin


@dataclass(frozen=True, slots=True)
class EqualPriority(ScorePlugin[Cluster]):
    """1 for every node."""

    name = "EqualPriority"
    reads_pods = False

    def prepare(self, pod: Incoming, cluster: Cluster) -> Cluster:
        return cluster

    def score(self, state: Cluster, rows: Rows = ALL_ROWS, placed: IntColumn | int = 0) -> IntColumn:
        return np.ones(len(state.nodes.alive[rows]), dtype=np.int64)

    def batch(self, state: Cluster, feasible: NDArray[np.bool_]) -> BatchKind:
        return BatchKind.CONSTANT
