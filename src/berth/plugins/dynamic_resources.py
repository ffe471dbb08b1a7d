"""Claims of dynamic resources (DynamicResources), which are not supported: no node takes a pod that has one."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from berth.cluster.arrays import ALL_ROWS, IntColumn, Rows
from berth.cluster.cluster import Cluster, Incoming
from berth.framework.plugin import BatchKind, FilterPlugin, Rejection, ScorePlugin

NOT_SUPPORTED = "not supported: the pod claims dynamic resources (spec.resourceClaims)"


@dataclass(frozen=True, slots=True)
class Claims:
    """Whether the pod claims any."""

    cluster: Cluster
    any: bool


@dataclass(frozen=True, slots=True)
class DynamicResources(FilterPlugin[Claims]):
    """Turns pods with claims away, with a reason that says so; lets all others through."""

    name = "DynamicResources"

    def prepare(self, pod: Incoming, cluster: Cluster) -> Claims:
        return Claims(cluster, bool(pod.info.spec.resource_claims))

    def reject(self, state: Claims) -> Rejection | None:
        return Rejection((NOT_SUPPORTED,)) if state.any else None

    def filter(self, state: Claims, rows: Rows = ALL_ROWS, placed: IntColumn | int = 0) -> IntColumn:
        return np.zeros(state.cluster.nodes.n_rows, dtype=np.int64)[rows]

    def reasons(self, state: Claims, code: int) -> tuple[str, ...]:
        return ()

    def batch(self, state: Claims, feasible: NDArray[np.bool_]) -> BatchKind:
        return BatchKind.CONSTANT


@dataclass(frozen=True, slots=True)
class DynamicResourcesScore(ScorePlugin[Cluster]):
    """0 everywhere, as for every pod without claims."""

    name = "DynamicResources"

    def prepare(self, pod: Incoming, cluster: Cluster) -> Cluster:
        return cluster

    def score(self, state: Cluster, rows: Rows = ALL_ROWS, placed: IntColumn | int = 0) -> IntColumn:
        return np.zeros(state.nodes.n_rows, dtype=np.int64)[rows]

    def batch(self, state: Cluster, feasible: NDArray[np.bool_]) -> BatchKind:
        return BatchKind.CONSTANT
