"""Are the host ports free that the pod wants? PodFitsHostPorts."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from berth.cluster.arrays import ALL_ROWS, IntColumn, Rows
from berth.cluster.cluster import Cluster, Incoming
from berth.cluster.specs import HostPort
from berth.framework.plugin import FITS, BatchKind, FilterPlugin


@dataclass(frozen=True, slots=True)
class Wanted:
    """The host ports that the pod wants."""

    cluster: Cluster
    ports: tuple[HostPort, ...]


@dataclass(frozen=True, slots=True)
class NodePorts(FilterPlugin[Wanted]):
    """No pod on the node takes one of the ports; 0.0.0.0 conflicts with every IP."""

    reason: str = "node(s) didn't have free ports for the requested pod ports"

    name = "NodePorts"

    def skips(self, pod: Incoming, cluster: Cluster) -> bool:
        return not pod.info.host_ports

    def prepare(self, pod: Incoming, cluster: Cluster) -> Wanted:
        return Wanted(cluster, pod.info.host_ports)

    def is_idle(self, state: Wanted) -> bool:
        return not state.ports

    def filter(self, state: Wanted, rows: Rows = ALL_ROWS, placed: IntColumn | int = 0) -> IntColumn:
        if not state.ports:
            return np.zeros(state.cluster.nodes.n_rows, dtype=np.int64)[rows]
        taken = state.cluster.host_ports.conflicts(state.ports, rows)
        return (taken | (np.asarray(placed) > 0)).astype(np.int64)

    def reasons(self, state: Wanted, code: int) -> tuple[str, ...]:
        return (self.reason,) if code != FITS else ()

    def batch(self, state: Wanted, feasible: NDArray[np.bool_]) -> BatchKind:
        return BatchKind.LOCAL if state.ports else BatchKind.CONSTANT

    def moved_by(self, state: Wanted, other: Incoming) -> bool:
        return bool(state.ports and other.info.host_ports)
