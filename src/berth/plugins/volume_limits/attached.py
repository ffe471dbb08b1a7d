"""The distinct volumes on every node, shared by all shapes and kept up to date. Knows no limits."""

from collections.abc import Iterator

import numpy as np

from berth.cluster.arrays import NONE, IntColumn
from berth.cluster.cluster import Cluster
from berth.plugins.volume_limits.counting import Counted, Counter, Mounting

ATTACHMENT = -1
"""Stands in the place of a pod for a volume that is attached where no pod may use it."""


class Attached:
    """The volumes that pods (and attachments) hold on each node, as one `Counter` counts them.

    Attributes
    ----------
    migrated : dict of row to set of str
        The in-tree plugins that are migrated there; rows without any are not named.
    errors : dict of row to dict of pod id to str
        Pods whose volumes can't be counted.
    csi_limits : dict of row to dict of pool to int, or None
        What the nodes' CSINodes say, kept here as they hold for as long as the table does; None: not read yet.
    """

    def __init__(self, cluster: Cluster, counter: Counter) -> None:
        self._cluster = cluster
        self._counter = counter
        self._version = cluster.log.version
        self._counts: dict[str, IntColumn] = {}
        self._holders: dict[str, dict[int, dict[int, str]]] = {}
        self._of_pod: dict[int, Counted] = {}
        self._of_spec: dict[tuple[int, int, frozenset[str]], Counted] = {}
        self.errors: dict[int, dict[int, str]] = {}
        self.csi_limits: dict[int, dict[str, int]] | None = None
        self.migrated = counter.migration.by_row(cluster)
        for pod, row in self._pods_with_volumes():
            self._change(pod, row, 1)
        if counter.reads_attachments:
            self._read_attachments()

    @classmethod
    def of(cls, cluster: Cluster, counter: Counter) -> "Attached":
        """Return the cluster's, up to date."""
        kept: Attached | None = cluster.derived.get((cls, counter))
        if kept is None or not kept._mend():
            kept = cluster.derived[cls, counter] = cls(cluster, counter)
        return kept

    def count(self, pool: str) -> IntColumn:
        """Return how many volumes of a pool are on each row (int64[n_rows])."""
        counts = self._counts.get(pool)
        if counts is None:
            counts = self._counts[pool] = np.zeros(self._cluster.nodes.n_rows, dtype=np.int64)
        return counts

    def rows_with(self, volume: str) -> list[int]:
        """Return the rows on which a pod uses a volume."""
        return [row for row, pods in self._holders.get(volume, {}).items() if max(pods) != ATTACHMENT]

    def _mend(self) -> bool:
        changes = self._cluster.log.since(self._version)
        if changes is None:
            return False
        for change in changes.moves:
            self._change(change.pod, change.row, change.sign, (change.namespace_id, change.spec_id))
        self._version = self._cluster.log.version
        return True

    def _pods_with_volumes(self) -> Iterator[tuple[int, int]]:
        pods, specs = self._cluster.pods, self._cluster.specs
        placed = pods.active & (pods.node_row != NONE)
        mounts = np.fromiter((bool(specs[i].spec.volumes) for i in range(len(specs))), np.bool_, len(specs))
        if mounts.any():
            found = np.flatnonzero(placed)
            found = found[mounts[pods.column("spec_id")[found]]]
            yield from zip(found.tolist(), pods.node_row[found].tolist(), strict=True)

    def _change(self, pod: int, row: int, sign: int, ids: tuple[int, int] | None = None) -> None:
        if sign < 0:
            counted = self._of_pod.pop(pod, None)
            if counted is not None:
                self._drop(pod, row, counted)
            return
        if ids is None:
            column = self._cluster.pods.column
            ids = int(column("namespace_id")[pod]), int(column("spec_id")[pod])
        counted = self._count_pod(pod, row, *ids)
        if not counted.error and not counted.pools:
            return
        self._of_pod[pod] = counted
        if counted.error:
            self.errors.setdefault(row, {})[pod] = counted.error
        for volume, pool in counted.pools.items():
            self._hold(volume, row, pod, pool)

    def _count_pod(self, pod: int, row: int, namespace_id: int, spec_id: int) -> Counted:
        cluster, migrated = self._cluster, self.migrated.get(row, frozenset())
        info = cluster.specs[spec_id]
        key = (namespace_id, spec_id, migrated)
        counted = None if info.has_ephemeral else self._of_spec.get(key)
        if counted is None:
            mounting = Mounting(
                namespace=cluster.namespaces.items[namespace_id],
                name=cluster.pods.names[pod],
                uid=cluster.pods.uids[pod],
                volumes=info.spec.volumes,
            )
            counted = self._counter.count(mounting, cluster.objects, migrated)
            if not info.has_ephemeral:
                self._of_spec[key] = counted
        return counted

    def _hold(self, volume: str, row: int, pod: int, pool: str) -> None:
        pods = self._holders.setdefault(volume, {}).setdefault(row, {})
        if pods:
            self.count(pods[max(pods)])[row] -= 1
        pods[pod] = pool
        # Pods may disagree (1.13 knows a volume by its handle alone): the latest is right.
        self.count(pods[max(pods)])[row] += 1

    def _drop(self, pod: int, row: int, counted: Counted) -> None:
        if counted.error:
            self.errors[row].pop(pod)
            if not self.errors[row]:
                del self.errors[row]
        for volume in counted.pools:
            rows = self._holders[volume]
            pods = rows[row]
            self.count(pods[max(pods)])[row] -= 1
            del pods[pod]
            if pods:
                self.count(pods[max(pods)])[row] += 1
                continue
            del rows[row]
            if not rows:
                del self._holders[volume]

    def _read_attachments(self) -> None:
        objects = self._cluster.objects
        for attachment in objects.volume_attachments.all():
            spec = attachment.spec
            row = self._cluster.nodes.row(spec.node_name)
            volume = objects.persistent_volumes.get("", spec.source.persistent_volume_name or "")
            if row == NONE or not spec.attacher or volume is None or volume.spec.csi is None:
                continue
            self._hold(f"{spec.attacher}/{volume.spec.csi.volume_handle}", row, ATTACHMENT, spec.attacher)
