"""NoVolumeNodeConflict: may the volumes of the pod's claims be used from the node? As 1.7 knew it.

A volume says so in an annotation, as JSON: a NodeAffinity, of which the node must meet every required term (later releases:
any). What can't be read keeps the pod off every node. Source: written after 1.7's ``VolumeNodeChecker``; no oracle.
"""

from dataclasses import dataclass
from typing import ClassVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from berth.cluster.arrays import ALL_ROWS, BoolColumn, IntColumn, Rows
from berth.cluster.cluster import Cluster, Incoming
from berth.cluster.log import Changes
from berth.cluster.nodes import NodeTable
from berth.cluster.objects import ClusterObjects
from berth.framework.plugin import FITS, BatchKind, FilterPlugin
from berth.framework.verdicts import Verdicts
from berth.objects.decode import decode
from berth.objects.pods import NodeAffinity
from berth.objects.selectors import SelectorError, from_node_expressions
from berth.objects.storage import PersistentVolume

NODE_AFFINITY = "volume.alpha.kubernetes.io/node-affinity"
NODE_CONFLICT = 1


@dataclass(slots=True)
class VolumeNodeState(Verdicts):
    """The verdict on every row, which does not hang on pods."""

    has_claims: bool = False


@dataclass(frozen=True, slots=True)
class VolumeNodeConflict(FilterPlugin[VolumeNodeState]):
    """All volumes of the pod's claims may be used from the node."""

    name: ClassVar[str] = "VolumeNodeConflict"
    reads_pods: ClassVar[bool] = False
    reason: str = "node(s) had volume node affinity conflict"

    def prepare(self, pod: Incoming, cluster: Cluster) -> VolumeNodeState:
        codes = np.zeros(cluster.nodes.n_rows, dtype=np.int64)
        state = VolumeNodeState(codes, has_claims=bool(pod.info.claims))
        open_rows = state.every_row
        for name in pod.info.claims:
            found = _volume(pod.namespace, name, cluster.objects)
            if isinstance(found, str):
                state.fail(open_rows, found)
                break
            open_rows &= usable_from(found, cluster.nodes)
        state.codes[~open_rows] = NODE_CONFLICT
        return state

    def filter(self, state: VolumeNodeState, rows: Rows = ALL_ROWS, placed: IntColumn | int = 0) -> IntColumn:
        return state.codes[rows]

    def reasons(self, state: VolumeNodeState, code: int) -> tuple[str, ...]:
        return (state.error(code) if code < FITS else self.reason,)

    def mend(self, state: VolumeNodeState, changes: Changes) -> Rows | None:
        # Claims and volumes that change reset everything. What is left are nodes, by their labels.
        if state.has_claims and changes.nodes:
            return None
        return np.empty(0, dtype=np.intp)

    def batch(self, state: VolumeNodeState, feasible: NDArray[np.bool_]) -> BatchKind:
        return BatchKind.CONSTANT


def usable_from(volume: PersistentVolume, nodes: NodeTable) -> BoolColumn:
    """Tell which rows meet every required term of a volume's annotation (bool[n_rows])."""
    met = np.ones(nodes.n_rows, dtype=np.bool_)
    text = volume.metadata.annotations.get(NODE_AFFINITY, "")
    if not text:
        return met
    try:
        required = decode(text.encode(), NodeAffinity).required
        for term in required.node_selector_terms if required else ():
            met &= nodes.labels.matches(from_node_expressions(term.match_expressions))
    except (msgspec.DecodeError, SelectorError):
        return np.zeros(nodes.n_rows, dtype=np.bool_)
    return met


def _volume(namespace: str, name: str, objects: ClusterObjects) -> PersistentVolume | str:
    """Return a claim's volume, or the text of an error."""
    if not name:
        return "PersistentVolumeClaim had no name"
    claim = objects.persistent_volume_claims.get(namespace, name)
    if claim is None:
        return f'PersistentVolumeClaim was not found: "{name}"'
    if not claim.spec.volume_name:
        return f'PersistentVolumeClaim is not bound: "{name}"'
    volume = objects.persistent_volumes.get("", claim.spec.volume_name)
    return volume or f'PersistentVolume not found: "{claim.spec.volume_name}"'
