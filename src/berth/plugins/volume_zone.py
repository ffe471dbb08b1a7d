"""NoVolumeZoneConflict: is the node in the zone and region of the volumes of the pod's claims?"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from berth.cluster.arrays import ALL_ROWS, NONE, BoolColumn, IntColumn, Rows
from berth.cluster.cluster import Cluster, Incoming
from berth.cluster.labels import LabelColumns
from berth.cluster.log import Changes
from berth.cluster.objects import ClusterObjects
from berth.framework.plugin import FITS, BatchKind, FilterPlugin, Rejection
from berth.framework.verdicts import Verdicts
from berth.objects.selectors import Requirement, Selector
from berth.objects.storage import (
    WAIT_FOR_FIRST_CONSUMER,
    PersistentVolume,
    PersistentVolumeClaim,
    storage_class_of,
)

ZONE_LABELS = ("failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region")
GA_LABELS = {
    ZONE_LABELS[0]: "topology.kubernetes.io/zone",
    ZONE_LABELS[1]: "topology.kubernetes.io/region",
}
"""What the labels are called today."""
ZONE_CONFLICT = 1
REASON = "node(s) had no available volume zone"


@dataclass(slots=True)
class VolumeZoneState(Verdicts):
    """The verdict on every row, which does not hang on pods; or why the pod is turned away as a whole."""

    has_claims: bool = False
    rejection: Rejection | None = None


@dataclass(frozen=True, slots=True)
class VolumeZone(FilterPlugin[VolumeZoneState]):
    """Is the node in the zones of the pod's volumes? A node without zone and region is, always.

    Attributes
    ----------
    unbound : str
        Text, with ``{name}``, of the error that a claim has no volume and does not wait for the pod.
    class_annotation : bool
        Whether the old annotation of a claim's class counts.
    binding_mode_required : bool
        Whether a class without ``volumeBindingMode`` is an error of its own.
    refuses : bool
        1.36: what is wrong with claims turns the pod away before any node is looked at; today's labels count, too.
    """

    name: ClassVar[str] = "VolumeZone"
    reads_pods: ClassVar[bool] = False
    legacy_names: ClassVar[tuple[str, ...]] = ("NoVolumeZoneConflict",)
    unbound: str = 'PersistentVolumeClaim is not bound: "{name}"'
    class_annotation: bool = True
    binding_mode_required: bool = True
    refuses: bool = False

    def skips(self, pod: Incoming, cluster: Cluster) -> bool:
        return not pod.info.claims

    def prepare(self, pod: Incoming, cluster: Cluster) -> VolumeZoneState:
        codes = np.zeros(cluster.nodes.n_rows, dtype=np.int64)
        state = VolumeZoneState(codes, has_claims=bool(pod.info.claims))
        if not state.has_claims:
            return state
        labels = cluster.nodes.labels
        keys = (*ZONE_LABELS, *GA_LABELS.values()) if self.refuses else ZONE_LABELS
        zoned = np.any([labels.column(key) != NONE for key in keys], axis=0)
        # A node that is out is not asked about the next claim: an error there would not come up.
        open_rows = zoned.copy()
        for name in pod.info.claims:
            found = self._volume(pod.namespace, name, cluster.objects)
            if isinstance(found, str) and self.refuses:
                state.rejection = Rejection((found,))
                return state
            if isinstance(found, str):
                state.fail(open_rows, found)
                break
            if found is not None:
                open_rows &= in_zones_of(found, labels, keys)
        state.codes[zoned & ~open_rows] = ZONE_CONFLICT
        return state

    def reject(self, state: VolumeZoneState) -> Rejection | None:
        return state.rejection

    def is_idle(self, state: VolumeZoneState) -> bool:
        return not state.has_claims and state.rejection is None

    def filter(self, state: VolumeZoneState, rows: Rows = ALL_ROWS, placed: IntColumn | int = 0) -> IntColumn:
        return state.of(rows)

    def reasons(self, state: VolumeZoneState, code: int) -> tuple[str, ...]:
        return (state.error(code) if code < FITS else REASON,)

    def mend(self, state: VolumeZoneState, changes: Changes) -> Rows | None:
        # Claims, volumes and classes that change reset everything. What is left are nodes, by their labels.
        if state.has_claims and changes.nodes:
            return None
        return np.empty(0, dtype=np.intp)

    def batch(self, state: VolumeZoneState, feasible: NDArray[np.bool_]) -> BatchKind:
        return BatchKind.CONSTANT

    def _volume(self, namespace: str, name: str, objects: ClusterObjects) -> PersistentVolume | str | None:
        """Return a claim's volume, None if it waits for the pod, or the text of an error."""
        if not name:
            return "PersistentVolumeClaim had no name"
        claim = objects.persistent_volume_claims.get(namespace, name)
        if claim is None:
            return f'persistentvolumeclaim "{name}" not found'
        if not claim.spec.volume_name:
            return self._without_volume(claim, objects)
        volume = objects.persistent_volumes.get("", claim.spec.volume_name)
        return volume or f'persistentvolume "{claim.spec.volume_name}" not found'

    def _without_volume(self, claim: PersistentVolumeClaim, objects: ClusterObjects) -> str | None:
        class_name = storage_class_of(claim) if self.class_annotation else claim.spec.storage_class_name or ""
        storage_class = objects.storage_classes.get("", class_name)
        if self.refuses and not class_name:
            return "PersistentVolumeClaim had no pv name and storageClass name"
        if self.refuses and storage_class is None:
            return f'storageclass.storage.k8s.io "{class_name}" not found'
        if storage_class is not None:
            mode = storage_class.volume_binding_mode
            if mode is None and self.binding_mode_required:
                return f'VolumeBindingMode not set for StorageClass "{class_name}"'
            if mode == WAIT_FOR_FIRST_CONSUMER:
                return None
        return self.unbound.format(name=claim.metadata.name)


def in_zones_of(
    volume: PersistentVolume, labels: LabelColumns, keys: tuple[str, ...] = ZONE_LABELS
) -> BoolColumn:
    """Tell which rows have, for each zone label of a volume, one of its values (bool[n_rows]).

    The label of a volume names several zones as ``a__b``; one with an empty part is passed over. With today's labels
    among the keys, a node that lacks an old one may have today's in its place.
    """
    met = np.ones(labels.n_rows, dtype=np.bool_)
    for key in keys:
        text = volume.metadata.labels.get(key)
        zones = frozenset(zone.strip() for zone in text.split("__")) if text is not None else frozenset()
        if not zones or "" in zones:
            continue
        within = labels.matches(Selector((Requirement(key, "In", zones),)))
        if len(keys) > len(ZONE_LABELS) and key in GA_LABELS:
            today = labels.matches(Selector((Requirement(GA_LABELS[key], "In", zones),)))
            within |= (labels.column(key) == NONE) & today
        met &= within
    return met
