"""What is not supported (yet): dynamic resources and gangs. No node takes a pod that needs them, and the reason says why."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from berth.cluster.arrays import ALL_ROWS, IntColumn, Rows
from berth.cluster.cluster import Cluster, Incoming
from berth.framework.plugin import BatchKind, FilterPlugin, Rejection, ScorePlugin
from berth.objects.pods import PodSpec


@dataclass(frozen=True, slots=True)
class Need:
    """Whether the pod needs it."""

    cluster: Cluster
    is_there: bool


@dataclass(frozen=True, slots=True)
class NotSupported(FilterPlugin[Need]):
    """Turns pods away that need something, and lets all others through.

    Attributes
    ----------
    what : str
        How such a pod is described in the reason.
    """

    what: str
    needs: Callable[[PodSpec], bool]

    name = "NotSupported"
    reads_pods = False

    def skips(self, pod: Incoming, cluster: Cluster) -> bool:
        return not self.needs(pod.info.spec)

    def prepare(self, pod: Incoming, cluster: Cluster) -> Need:
        return Need(cluster, self.needs(pod.info.spec))

    def reject(self, state: Need) -> Rejection | None:
        return Rejection((f"not supported: {self.what}",)) if state.is_there else None

    def is_idle(self, state: Need) -> bool:
        return True

    def filter(self, state: Need, rows: Rows = ALL_ROWS, placed: IntColumn | int = 0) -> IntColumn:
        return np.zeros(state.cluster.nodes.n_rows, dtype=np.int64)[rows]

    def reasons(self, state: Need, code: int) -> tuple[str, ...]:
        return ()

    def batch(self, state: Need, feasible: NDArray[np.bool_]) -> BatchKind:
        return BatchKind.CONSTANT


DYNAMIC_RESOURCES = NotSupported(
    "the pod claims dynamic resources (spec.resourceClaims)", lambda spec: bool(spec.resource_claims)
)
GANG_SCHEDULING = NotSupported(
    "the pod is placed with its group (spec.schedulingGroup)", lambda spec: spec.scheduling_group is not None
)


@dataclass(frozen=True, slots=True)
class DynamicResourcesScore(ScorePlugin[Cluster]):
    """0 everywhere, as for every pod without claims."""

    name = "DynamicResources"
    reads_pods = False

    def skips(self, pod: Incoming, cluster: Cluster) -> bool:
        return True

    def prepare(self, pod: Incoming, cluster: Cluster) -> Cluster:
        return cluster

    def is_idle(self, state: Cluster) -> bool:
        return True

    def score(self, state: Cluster, rows: Rows = ALL_ROWS, placed: IntColumn | int = 0) -> IntColumn:
        return np.zeros(state.nodes.n_rows, dtype=np.int64)[rows]

    def batch(self, state: Cluster, feasible: NDArray[np.bool_]) -> BatchKind:
        return BatchKind.CONSTANT
