"""How many volumes a node takes: MaxEBSVolumeCount and its like, MaxCSIVolumeCountPred, NodeVolumeLimits.

Source: ``predicates.go`` and ``csi_volume_predicate.go`` of 1.10, 1.13 and 1.17, ``nodevolumelimits/csi.go`` of 1.36.
"""

import re
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from berth.cluster.arrays import ALL_ROWS, NONE, BoolColumn, IntColumn, Rows
from berth.cluster.cluster import Cluster, Incoming
from berth.cluster.log import Changes
from berth.framework.csi_migration import Migration
from berth.framework.plugin import FITS, BatchKind, FilterPlugin
from berth.objects.pods import Volume
from berth.plugins.volume_limits.attached import Attached
from berth.plugins.volume_limits.counting import (
    AZURE_DATA_DISK,
    CINDER_DISK,
    EBS_DISK,
    GCE_DISK,
    Counted,
    Counter,
    CSICounter,
    Disk,
    DiskCounter,
    Mounting,
    limit_key,
)

__all__ = [
    "AZURE_DATA_DISK", "BETA_INSTANCE_TYPE", "CINDER_DISK", "EBS_DISK", "GCE_DISK", "INSTANCE_TYPE", "CSICounter",
    "CSIVolumeLimits", "Disk", "DiskCounter", "MaxVolumeCount", "Migration", "read_max_volumes",
]  # fmt: skip

EXCEEDED, MISSING = 1, 2
OWN_ERROR = -1
"""The pod's own volumes can't be counted; the error of row ``n`` is ``OWN_ERROR - 1 - n``."""
REASON = "node(s) exceed max volume count"
NO_LIMIT = 1 << 62
INSTANCE_TYPE, BETA_INSTANCE_TYPE = "node.kubernetes.io/instance-type", "beta.kubernetes.io/instance-type"
NITRO = re.compile(r"^[cmr]5.*|t3|z1d")
"""Instance types of Amazon's that take fewer volumes; upstream's pattern, which also finds ``t3`` within a word."""


@dataclass(slots=True)
class LimitState:
    """What is known of one shape.

    Attributes
    ----------
    wanted : Counted
        The pod's volumes on nodes where no plugin is migrated.
    by_migration : dict of set of str to Counted
        The same where these are migrated; only plugins that count migrated volumes have any.
    limits : dict of pool to int64[n_rows]
        How many volumes each row takes, `NO_LIMIT` where nothing is said.
    """

    pod: Incoming
    cluster: Cluster
    wanted: Counted
    by_migration: dict[frozenset[str], Counted] = field(default_factory=dict)
    limits: dict[str, IntColumn] = field(default_factory=dict)

    @property
    def is_idle(self) -> bool:
        """Whether the pod has nothing that could fail."""
        counted = (self.wanted, *self.by_migration.values())
        return not any(one.pools or one.error for one in counted)


class _VolumeLimits(FilterPlugin[LimitState]):
    """What both kinds of limits have in common."""

    def skips(self, pod: Incoming, cluster: Cluster) -> bool:
        return not pod.info.spec.volumes

    def reasons(self, state: LimitState, code: int) -> tuple[str, ...]:
        if code == EXCEEDED:
            return (REASON,)
        if code in (MISSING, OWN_ERROR):
            return (next(c.error for c in (state.wanted, *state.by_migration.values()) if c.error),)
        errors = Attached.of(state.cluster, self._counter()).errors[OWN_ERROR - 1 - code]
        return (errors[min(errors)],)

    def mend(self, state: LimitState, changes: Changes) -> Rows | None:
        if state.is_idle:
            return np.empty(0, dtype=np.intp)
        return None if changes.nodes else changes.rows

    def batch(self, state: LimitState, feasible: NDArray[np.bool_]) -> BatchKind:
        # A second pod of the shape brings no volume that the first has not brought.
        return BatchKind.CONSTANT

    def moved_by(self, state: LimitState, other: Incoming) -> bool:
        return not state.is_idle and bool(other.info.spec.volumes)

    def _counter(self) -> Counter:
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class MaxVolumeCount(_VolumeLimits):
    """Does the node take so many disks of one kind?

    Attributes
    ----------
    limit : int
        Of nodes that do not say.
    nitro_limit : int or None
        Of Amazon's newer instance types, where they are told apart.
    reads_allocatable : bool
        Whether a node's allocatable may say something else (since 1.11).
    instance_labels : tuple of str
        Labels that tell the type of a node; the first one that is there.
    """

    counter: DiskCounter
    limit: int
    nitro_limit: int | None = None
    reads_allocatable: bool = True
    instance_labels: tuple[str, ...] = (BETA_INSTANCE_TYPE,)

    name: ClassVar[str] = "VolumeCount"
    legacy_names: ClassVar[tuple[str, ...]] = (
        "MaxEBSVolumeCount",
        "MaxGCEPDVolumeCount",
        "MaxAzureDiskVolumeCount",
        "MaxCinderVolumeCount",
    )

    def prepare(self, pod: Incoming, cluster: Cluster) -> LimitState:
        volumes = pod.info.spec.volumes
        mounting = Mounting(pod.namespace, pod.name, pod.uid, volumes, is_new=True)
        state = LimitState(
            pod, cluster, self.counter.count(mounting, cluster.objects, frozenset()) if volumes else Counted()
        )
        if not state.is_idle:
            state.limits[self.counter.disk.limit_key] = self._limits(cluster)
        return state

    def filter(self, state: LimitState, rows: Rows = ALL_ROWS, placed: IntColumn | int = 0) -> IntColumn:
        codes = np.zeros(state.cluster.nodes.n_rows, dtype=np.int64)
        if state.wanted.error:
            codes[:] = OWN_ERROR
        elif state.wanted.pools:
            pool = self.counter.disk.limit_key
            attached = Attached.of(state.cluster, self.counter)
            total = attached.count(pool) + len(state.wanted.pools)
            for volume in state.wanted.pools:
                total[attached.rows_with(volume)] -= 1
            codes[total > state.limits[pool]] = EXCEEDED
            for row in attached.errors:
                codes[row] = OWN_ERROR - 1 - row
            migrated = [
                row for row, plugins in attached.migrated.items() if self.counter.disk.plugin in plugins
            ]
            codes[migrated] = FITS
        return codes[rows]

    def _counter(self) -> Counter:
        return self.counter

    def _limits(self, cluster: Cluster) -> IntColumn:
        limits = np.full(cluster.nodes.n_rows, self.limit, dtype=np.int64)
        if self.nitro_limit is not None:
            limits[self._is_nitro(cluster)] = self.nitro_limit
        if self.reads_allocatable:
            said = allocatable_limits(cluster, self.counter.disk.limit_key)
            limits = np.where(said == NO_LIMIT, limits, said)
        return limits

    def _is_nitro(self, cluster: Cluster) -> BoolColumn:
        labels = cluster.nodes.labels
        types = np.full(cluster.nodes.n_rows, NONE, dtype=np.int32)
        for key in self.instance_labels:
            column = labels.column(key)
            types = np.where(types == NONE, column, types)
        distinct, inverse = np.unique(types, return_inverse=True)
        texts = ("" if value_id == NONE else labels.value(value_id) for value_id in distinct.tolist())
        found = np.fromiter((NITRO.search(text) is not None for text in texts), np.bool_, len(distinct))
        return found[inverse.reshape(-1)]


@dataclass(frozen=True, slots=True)
class CSIVolumeLimits(_VolumeLimits):
    """Does the node take so many volumes of the pod's CSI drivers?

    Attributes
    ----------
    reads_allocatable, reads_csi_nodes : bool
        Where limits stand: in the node's allocatable (up to 1.17), in its CSINode (since then; it goes first).
    """

    counter: CSICounter
    reads_allocatable: bool = True
    reads_csi_nodes: bool = False

    name: ClassVar[str] = "NodeVolumeLimits"
    legacy_names: ClassVar[tuple[str, ...]] = ("MaxCSIVolumeCountPred",)

    def prepare(self, pod: Incoming, cluster: Cluster) -> LimitState:
        volumes = pod.info.spec.volumes
        if not any(map(self._may_count, volumes)):
            return LimitState(pod, cluster, Counted())
        mounting = Mounting(pod.namespace, pod.name, pod.uid, volumes, is_new=True)
        count = self.counter.count
        state = LimitState(pod, cluster, count(mounting, cluster.objects, frozenset()))
        for migrated in self._migrated_sets(cluster):
            state.by_migration[migrated] = count(mounting, cluster.objects, migrated)
        for counted in (state.wanted, *state.by_migration.values()):
            for pool in counted.pools.values():
                if pool not in state.limits:
                    state.limits[pool] = self._limits(cluster, pool)
        return state

    def filter(self, state: LimitState, rows: Rows = ALL_ROWS, placed: IntColumn | int = 0) -> IntColumn:
        codes = np.zeros(state.cluster.nodes.n_rows, dtype=np.int64)
        if state.is_idle:
            return codes[rows]
        attached = Attached.of(state.cluster, self.counter)
        within = np.ones(len(codes), dtype=np.bool_)
        within[list(attached.migrated)] = False
        self._judge(state, attached, state.wanted, within, codes)
        for migrated, counted in state.by_migration.items():
            within[:] = False
            within[[row for row, plugins in attached.migrated.items() if plugins == migrated]] = True
            self._judge(state, attached, counted, within, codes)
        return codes[rows]

    def _judge(
        self, state: LimitState, attached: Attached, counted: Counted, within: BoolColumn, codes: IntColumn
    ) -> None:
        """Judge the rows within, on which the pod's volumes count as told."""
        # Only the claims of a pod that is not there yet must exist: 1.36 then says so instead of failing.
        if counted.error:
            # 1.13 looks for limits before it looks at the pod.
            if self.counter.by_handle:
                within = within & self._has_limits(state.cluster)
            codes[within] = MISSING if counted.missing else OWN_ERROR
            return
        for pool in dict.fromkeys(counted.pools.values()):
            volumes = [volume for volume, theirs in counted.pools.items() if theirs == pool]
            new = np.full(len(codes), len(volumes), dtype=np.int64)
            for volume in volumes:
                new[attached.rows_with(volume)] -= 1
            over = (new > 0) & (attached.count(pool) + new > state.limits[pool])
            codes[over & within] = EXCEEDED
        if counted.pools and attached.errors:
            limited = self._has_limits(state.cluster)
            for row in attached.errors:
                if within[row] and limited[row]:
                    codes[row] = OWN_ERROR - 1 - row

    def _counter(self) -> Counter:
        return self.counter

    def _may_count(self, volume: Volume) -> bool:
        if volume.persistent_volume_claim or volume.ephemeral is not None:
            return True
        return self.counter.migration.handle(volume)[0] != ""

    def _migrated_sets(self, cluster: Cluster) -> set[frozenset[str]]:
        if not self.counter.migration.plugins:
            return set()
        return set(Attached.of(cluster, self.counter).migrated.values())

    def _limits(self, cluster: Cluster, pool: str) -> IntColumn:
        if self.reads_allocatable:
            limits = allocatable_limits(cluster, pool)
        else:
            limits = np.full(cluster.nodes.n_rows, NO_LIMIT, dtype=np.int64)
        for row, by_driver in self._csi_limits(cluster).items():
            limits[row] = by_driver.get(pool, limits[row])
        return limits

    def _has_limits(self, cluster: Cluster) -> BoolColumn:
        has = np.zeros(cluster.nodes.n_rows, dtype=np.bool_)
        if self.reads_allocatable:
            any_limit = np.array([bool(limits) for limits in cluster.nodes.volume_limit_sets.items])
            has = any_limit[cluster.nodes.volume_limits_id]
        has[list(self._csi_limits(cluster))] = True
        return has

    def _csi_limits(self, cluster: Cluster) -> dict[int, dict[str, int]]:
        """Return for the rows whose CSINode has limits what they are, by pool."""
        if not self.reads_csi_nodes:
            return {}
        attached = Attached.of(cluster, self.counter)
        if attached.csi_limits is None:
            attached.csi_limits = self._read_csi_nodes(cluster)
        return attached.csi_limits

    def _read_csi_nodes(self, cluster: Cluster) -> dict[int, dict[str, int]]:
        found: dict[int, dict[str, int]] = {}
        for node in cluster.objects.csi_nodes.all():
            row = cluster.nodes.row(node.metadata.name)
            for driver in node.spec.drivers if row != NONE else ():
                if driver.allocatable is not None and driver.allocatable.count is not None:
                    pool = driver.name if self.counter.by_driver else limit_key(driver.name)
                    found.setdefault(row, {})[pool] = driver.allocatable.count
        return found


def allocatable_limits(cluster: Cluster, key: str) -> IntColumn:
    """Return what the nodes' allocatable says under a key, `NO_LIMIT` where it says nothing (int64[n_rows])."""
    nodes = cluster.nodes
    said = [dict(limits).get(key, NO_LIMIT) for limits in nodes.volume_limit_sets.items]
    return np.array(said, dtype=np.int64)[nodes.volume_limits_id]


def read_max_volumes(text: str) -> int | None:
    """Read ``KUBE_MAX_PD_VOLS`` as upstream does; None, for the default, if it is no positive number."""
    if not re.fullmatch(r"[+-]?[0-9]+", text):
        return None
    number = int(text)
    return number if 0 < number < 1 << 63 else None
