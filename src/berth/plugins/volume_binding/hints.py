"""Which changes may help a pod whose claims can't have their volumes.

Source: 1.36, ``plugins/volumebinding/volume_binding.go``.
"""

from collections.abc import Sequence

from berth.cluster.cluster import Incoming
from berth.framework.changes import Action, Change, Hint, ObjectChange, Resource, Wakes
from berth.framework.csi_migration import MIGRATED_PLUGINS
from berth.objects.quantities import value
from berth.objects.storage import CSIDriver, CSINode, CSIStorageCapacity, PersistentVolumeClaim, StorageClass
from berth.plugins.volume_binding.capacity import limit_of

WAKES_ON: Wakes = {
    Resource.NODE: Action.ADD | Action.UPDATE_NODE_LABEL,
    Resource.STORAGE_CLASS: Action.ADD | Action.UPDATE,
    Resource.PERSISTENT_VOLUME_CLAIM: Action.ADD | Action.UPDATE,
    Resource.PERSISTENT_VOLUME: Action.ADD | Action.UPDATE,
    Resource.CSI_NODE: Action.ADD | Action.UPDATE,
    Resource.CSI_DRIVER: Action.UPDATE,
    Resource.CSI_STORAGE_CAPACITY: Action.ADD | Action.UPDATE,
}


def hint_of(pod: Incoming, claims: Sequence[str]) -> Hint:
    """Return the hint for a pod with claims of such names."""
    drivers = frozenset(volume.csi.driver for volume in pod.info.spec.volumes if volume.csi)

    def helps(change: Change) -> bool:
        match change:
            case ObjectChange(new=PersistentVolumeClaim(metadata=meta)):
                return meta.namespace == pod.namespace and meta.name in claims
            case ObjectChange(old=StorageClass() as old, new=StorageClass() as new):
                return old.allowed_topologies != new.allowed_topologies
            case ObjectChange(old=CSINode() as old, new=CSINode() as new):
                return _migrated(old) != _migrated(new)
            case ObjectChange(old=CSIDriver() as old, new=CSIDriver() as new):
                # A driver that no longer says how much storage is left is not asked.
                stops = old.spec.storage_capacity and not new.spec.storage_capacity
                return stops and new.metadata.name in drivers
            case ObjectChange(old=CSIStorageCapacity() as old, new=CSIStorageCapacity() as new):
                before, after = limit_of(old), limit_of(new)
                return after is not None and (before is None or value(after) > value(before))
        return True

    return helps


def _migrated(node: CSINode) -> str:
    return node.metadata.annotations.get(MIGRATED_PLUGINS, "")
