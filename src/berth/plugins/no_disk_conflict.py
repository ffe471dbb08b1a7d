"""NoDiskConflict and VolumeRestrictions: is what the pod mounts free, or in the hands of another pod?"""

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from berth.cluster.arrays import ALL_ROWS, IntColumn, Rows
from berth.cluster.cluster import Cluster, Incoming
from berth.cluster.log import Changes
from berth.cluster.specs import SpecTable
from berth.framework.plugin import FITS, BatchKind, FilterPlugin, Rejection
from berth.objects.pods import Volume

DISK_CONFLICT, IN_USE = 1, 2
REASON = "node(s) had no available disk"
IN_USE_REASON = (
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode "
    "already in-use by another pod"
)
ONCE_POD = "ReadWriteOncePod"


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

    def skips(self, pod: Incoming, cluster: Cluster) -> bool:
        return not pod.info.spec.volumes

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

    def moved_by(self, state: DiskState, other: Incoming) -> bool:
        return bool(state.disks) and state.conflicts(other.spec_id)


@dataclass(slots=True)
class RestrictionState:
    """What VolumeRestrictions knows of a shape.

    Attributes
    ----------
    alone : frozenset of str
        The pod's claims that only one pod may use (ReadWriteOncePod).
    n_users : int
        How many pods on nodes use one of them.
    missing : str or None
        The pod's first claim that is not there.
    """

    pod: Incoming
    disks: DiskState
    alone: frozenset[str]
    n_users: int = 0
    missing: str | None = None

    def uses(self, namespace_id: int, claims: tuple[str, ...]) -> bool:
        """Tell whether a pod of a namespace uses what should be the pod's alone."""
        return namespace_id == self.pod.namespace_id and not self.alone.isdisjoint(claims)


@dataclass(frozen=True, slots=True)
class VolumeRestrictions(FilterPlugin[RestrictionState]):
    """Is a disk that the pod mounts itself free on the node, and a claim for one pod alone free everywhere? (1.36)"""

    name: ClassVar[str] = "VolumeRestrictions"
    disks: ClassVar[NoDiskConflict] = NoDiskConflict()

    def skips(self, pod: Incoming, cluster: Cluster) -> bool:
        return not pod.info.spec.volumes

    def prepare(self, pod: Incoming, cluster: Cluster) -> RestrictionState:
        claims = {
            name: cluster.objects.persistent_volume_claims.get(pod.namespace, name)
            for name in pod.info.claims
        }
        missing = next((name for name, claim in claims.items() if claim is None), None)
        alone = frozenset(
            name for name, claim in claims.items() if claim and ONCE_POD in claim.spec.access_modes
        )
        state = RestrictionState(pod, self.disks.prepare(pod, cluster), alone, missing=missing)
        if alone:
            specs, pods = cluster.specs, cluster.pods
            using = [i for i in range(len(specs)) if not alone.isdisjoint(specs[i].claims)]
            counted = np.isin(pods.column("spec_id"), using) & pods.active & (pods.node_row >= 0)
            state.n_users = int((counted & (pods.column("namespace_id") == pod.namespace_id)).sum())
        return state

    def reject(self, state: RestrictionState) -> Rejection | None:
        if state.missing is None:
            return None
        return Rejection((f'persistentvolumeclaim "{state.missing}" not found',))

    def filter(
        self, state: RestrictionState, rows: Rows = ALL_ROWS, placed: IntColumn | int = 0
    ) -> IntColumn:
        codes = self.disks.filter(state.disks, rows, placed)
        if state.n_users:
            codes[codes == FITS] = IN_USE
        return codes

    def reasons(self, state: RestrictionState, code: int) -> tuple[str, ...]:
        return (IN_USE_REASON,) if code == IN_USE else (REASON,)

    def mend(self, state: RestrictionState, changes: Changes) -> Rows | None:
        was_used = state.n_users > 0
        for change in changes.pods:
            if state.alone and state.uses(change.namespace_id, state.disks.specs[change.spec_id].claims):
                state.n_users += change.sign
        rows = self.disks.mend(state.disks, changes)
        return ALL_ROWS if (state.n_users > 0) != was_used else rows

    def batch(self, state: RestrictionState, feasible: NDArray[np.bool_]) -> BatchKind:
        return BatchKind.SERIAL if state.alone else self.disks.batch(state.disks, feasible)

    def moved_by(self, state: RestrictionState, other: Incoming) -> bool:
        shares = bool(state.alone) and state.uses(other.namespace_id, other.info.claims)
        return shares or self.disks.moved_by(state.disks, other)


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
