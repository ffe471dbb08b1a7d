"""Labels that nodes must have, or had better have, whatever the pod: CheckNodeLabelPresence and NodeLabel.

Source: ``predicates.go`` (``NodeLabelChecker``) and ``priorities/node_label.go`` of 1.10, 1.13 and 1.17. Up to 1.13 a
Policy names labels with one ``presence``; 1.17 gathers those that must be there and those that must not.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from berth.cluster.arrays import ALL_ROWS, NONE, IntColumn, Rows
from berth.cluster.cluster import Cluster, Incoming
from berth.framework.plugin import FITS, BatchKind, FilterPlugin, ScorePlugin


def count_met(cluster: Cluster, rows: Rows, present: tuple[str, ...], absent: tuple[str, ...]) -> IntColumn:
    """Count for rows how many labels are, or are not, on the node as they should (int64[n])."""
    met = np.zeros(len(cluster.nodes.alive[rows]), dtype=np.int64)
    for label in present:
        met += cluster.nodes.labels.column(label)[rows] != NONE
    for label in absent:
        met += cluster.nodes.labels.column(label)[rows] == NONE
    return met


@dataclass(frozen=True, slots=True)
class CheckNodeLabelPresence(FilterPlugin[Cluster]):
    """All labels of one list are on the node, and none of the other."""

    present: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()
    reason: str = "node(s) didn't have the requested labels"

    name = "NodeLabel"
    reads_pods = False

    def prepare(self, pod: Incoming, cluster: Cluster) -> Cluster:
        return cluster

    def filter(self, state: Cluster, rows: Rows = ALL_ROWS, placed: IntColumn | int = 0) -> IntColumn:
        n_labels = len(self.present) + len(self.absent)
        return (count_met(state, rows, self.present, self.absent) < n_labels).astype(np.int64)

    def reasons(self, state: Cluster, code: int) -> tuple[str, ...]:
        return (self.reason,) if code != FITS else ()

    def batch(self, state: Cluster, feasible: NDArray[np.bool_]) -> BatchKind:
        return BatchKind.CONSTANT


@dataclass(frozen=True, slots=True)
class PreferNodeLabels(ScorePlugin[Cluster]):
    """The average over the labels: ``maximum`` for one that is as it should be, else 0."""

    maximum: int
    present: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()

    name = "NodeLabel"
    reads_pods = False

    def prepare(self, pod: Incoming, cluster: Cluster) -> Cluster:
        return cluster

    def score(self, state: Cluster, rows: Rows = ALL_ROWS, placed: IntColumn | int = 0) -> IntColumn:
        n_labels = len(self.present) + len(self.absent)
        return count_met(state, rows, self.present, self.absent) * self.maximum // max(1, n_labels)

    def batch(self, state: Cluster, feasible: NDArray[np.bool_]) -> BatchKind:
        return BatchKind.CONSTANT
