"""NoDiskConflict: is a disk that the pod mounts itself, without a claim, free on the node?"""

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from berth.cluster.arrays import ALL_ROWS, IntColumn, Rows
from berth.cluster.cluster import Cluster, Incoming
from berth.cluster.log import Changes
from berth.cluster.specs import SpecTable
from berth.framework.plugin import FITS, BatchKind, FilterPlugin
from berth.objects.pods import Volume

DISK_CONFLICT = 1
REASON = "node(s) had no available disk"


@dataclass(slots=True)
class DiskState:
    """The pod's disks, and how many pods on each node hold one of them.

    Attributes
    ----------
    holders : int64[n_rows]
        Pods that conflict with the pod.
    with_itself : bool
        Whether two such pods conflict with each other.
    """

    disks: tuple[Volume, ...]
    specs: SpecTable
    holders: IntColumn
    with_itself: bool
    _conflicts: dict[int, bool] = field(default_factory=dict)

    def conflicts(self, spec_id: int) -> bool:
        """Tell whether a pod of a spec conflicts with the pod."""
        known = self._conflicts.get(spec_id)
        if known is None:
            theirs = disks_of(self.specs[spec_id].spec.volumes)
            known = self._conflicts[spec_id] = any(conflict(a, b) for a in self.disks for b in theirs)
        return known


@dataclass(frozen=True, slots=True)
class NoDiskConflict(FilterPlugin[DiskState]):
    """Is a disk that the pod mounts itself free on the node? Many readers may share most kinds of disk."""

    name: ClassVar[str] = "NoDiskConflict"
    legacy_names: ClassVar[tuple[str, ...]] = ("NoDiskConflict",)

    def prepare(self, pod: Incoming, cluster: Cluster) -> DiskState:
        disks = disks_of(pod.info.spec.volumes)
        holders = np.zeros(cluster.nodes.n_rows, dtype=np.int64)
        with_itself = any(conflict(a, b) for a in disks for b in disks)
        state = DiskState(disks, cluster.specs, holders, with_itself)
        if not disks:
            return state
        n_specs = len(cluster.specs)
        conflicting = np.fromiter(map(state.conflicts, range(n_specs)), dtype=np.bool_, count=n_specs)
        pods = cluster.pods
        at = np.flatnonzero(pods.active & (pods.node_row >= 0))
        at = at[conflicting[pods.column("spec_id")[at]]]
        np.add.at(holders, pods.node_row[at], 1)
        return state

    def filter(self, state: DiskState, rows: Rows = ALL_ROWS, placed: IntColumn | int = 0) -> IntColumn:
        held = state.holders[rows] > 0
        if state.with_itself:
            held |= np.asarray(placed) > 0
        return np.where(held, DISK_CONFLICT, FITS)

    def reasons(self, state: DiskState, code: int) -> tuple[str, ...]:
        return (REASON,)

    def mend(self, state: DiskState, changes: Changes) -> Rows | None:
        if not state.disks:
            return np.empty(0, dtype=np.intp)
        for change in changes.pods:
            if state.conflicts(change.spec_id):
                state.holders[change.row] += change.sign
        return changes.rows

    def batch(self, state: DiskState, feasible: NDArray[np.bool_]) -> BatchKind:
        return BatchKind.LOCAL if state.with_itself else BatchKind.CONSTANT


def disks_of(volumes: tuple[Volume, ...]) -> tuple[Volume, ...]:
    """Return the volumes that are disks of a kind that can't be mounted twice at will."""
    return tuple(v for v in volumes if v.gce_persistent_disk or v.aws_elastic_block_store or v.iscsi or v.rbd)


def conflict(a: Volume, b: Volume) -> bool:
    """Tell whether two pods on one node can't mount both: one disk, and not both read only (EBS: never)."""
    if a.aws_elastic_block_store and b.aws_elastic_block_store:
        return a.aws_elastic_block_store.volume_id == b.aws_elastic_block_store.volume_id
    if a.gce_persistent_disk and b.gce_persistent_disk:
        disk, other = a.gce_persistent_disk, b.gce_persistent_disk
        return disk.pd_name == other.pd_name and not (disk.read_only and other.read_only)
    if a.iscsi and b.iscsi:
        return a.iscsi.iqn == b.iscsi.iqn and not (a.iscsi.read_only and b.iscsi.read_only)
    if a.rbd and b.rbd:
        shared = not set(a.rbd.monitors).isdisjoint(b.rbd.monitors)
        same = shared and (a.rbd.pool, a.rbd.image) == (b.rbd.pool, b.rbd.image)
        return same and not (a.rbd.read_only and b.rbd.read_only)
    return False
