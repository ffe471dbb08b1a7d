"""How much storage is left for new volumes, as CSI drivers say it."""

import numpy as np

from berth.cluster.arrays import BoolColumn
from berth.cluster.cluster import Cluster
from berth.objects.base import Quantity
from berth.objects.quantities import value
from berth.objects.selectors import SelectorError, from_label_selector
from berth.objects.storage import CSIStorageCapacity, PersistentVolumeClaim, StorageClass


def has_capacity(cluster: Cluster, claim: PersistentVolumeClaim, storage_class: StorageClass) -> BoolColumn:
    """Tell on which rows there is storage for a claim (bool[n_rows]); on all, where the driver does not say."""
    everywhere = np.ones(cluster.nodes.n_rows, dtype=np.bool_)
    asked = claim.spec.resources.requests.get("storage")
    driver = cluster.objects.csi_drivers.get("", storage_class.provisioner)
    if asked is None or driver is None or not driver.spec.storage_capacity:
        return everywhere
    found = ~everywhere
    for capacity in cluster.objects.csi_storage_capacities.all():
        if capacity.storage_class_name == storage_class.metadata.name and _holds(capacity, value(asked)):
            found |= _within(cluster, capacity)
    return found


def _holds(capacity: CSIStorageCapacity, size: int) -> bool:
    limit = limit_of(capacity)
    return limit is not None and value(limit) >= size


def limit_of(capacity: CSIStorageCapacity) -> Quantity | None:
    """Return the size up to which a volume can be had; None if nothing is said."""
    return capacity.capacity if capacity.maximum_volume_size is None else capacity.maximum_volume_size


def _within(cluster: Cluster, capacity: CSIStorageCapacity) -> BoolColumn:
    """Tell which rows are of the topology that a capacity is for."""
    try:
        return cluster.nodes.labels.matches(from_label_selector(capacity.node_topology))
    except SelectorError:
        return np.zeros(cluster.nodes.n_rows, dtype=np.bool_)
