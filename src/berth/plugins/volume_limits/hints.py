"""Which changes may help a pod with more volumes than nodes take.

Source: 1.36, ``plugins/nodevolumelimits/csi.go``; there a node that comes counts with its CSINode only.
"""

from berth.cluster.cluster import Incoming
from berth.framework.changes import (
    Action,
    AssignedPodChange,
    Change,
    Hint,
    NodeChange,
    ObjectChange,
    Resource,
    Wakes,
)
from berth.framework.csi_migration import DRIVERS, Migration
from berth.objects.pods import Volume
from berth.objects.storage import CSINode, PersistentVolumeClaim, VolumeAttachment

WAKES_ON: Wakes = {
    Resource.NODE: Action.ADD | Action.UPDATE_NODE_ALLOCATABLE,
    Resource.CSI_NODE: Action.ADD | Action.UPDATE,
    Resource.ASSIGNED_POD: Action.DELETE,
    Resource.PERSISTENT_VOLUME_CLAIM: Action.ADD,
    Resource.VOLUME_ATTACHMENT: Action.DELETE,
}


def may_count(volume: Volume, migration: Migration) -> bool:
    """Tell whether a volume may be one of a CSI driver."""
    if volume.persistent_volume_claim or volume.ephemeral is not None:
        return True
    return migration.handle(volume)[0] != ""


def hint_of(pod: Incoming, migration: Migration, *, reads_allocatable: bool) -> Hint:
    """Return the hint for a pod; limits may stand in a node's allocatable (up to 1.17)."""
    volumes = pod.info.spec.volumes
    claims = {v.persistent_volume_claim.claim_name for v in volumes if v.persistent_volume_claim}
    ephemeral = {f"{pod.name}-{v.name}" for v in volumes if v.ephemeral is not None}
    drivers = {DRIVERS.get(migration.handle(v)[0]) for v in volumes}

    def helps(change: Change) -> bool:
        match change:
            case NodeChange(old=old):
                return old is None or reads_allocatable
            case AssignedPodChange(old=old) if old:
                return any(may_count(volume, migration) for volume in old.info.spec.volumes)
            case ObjectChange(new=PersistentVolumeClaim(metadata=meta)):
                return meta.namespace == pod.namespace and (meta.name in claims or meta.name in ephemeral)
            case ObjectChange(old=VolumeAttachment(spec=attached)):
                # Upstream's hint passes over ephemeral volumes here, which are attached as well.
                return bool(claims or ephemeral) or attached.attacher in drivers
            case ObjectChange(old=CSINode() as old, new=CSINode() as new):
                before = _limits(old)
                return any(limit > before.get(driver, 0) for driver, limit in _limits(new).items())
        return True

    return helps


def _limits(node: CSINode) -> dict[str, int]:
    return {
        driver.name: (driver.allocatable.count if driver.allocatable else None) or 0
        for driver in node.spec.drivers
    }
