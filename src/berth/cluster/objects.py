"""Objects other than nodes and pods, by kind and name: services, workloads, volumes, classes, namespaces."""

from typing import Any, Generic, TypeVar

from berth.objects.storage import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)
from berth.objects.workloads import (
    Deployment,
    Namespace,
    PodDisruptionBudget,
    ReplicaSet,
    ReplicationController,
    Service,
    StatefulSet,
)

NamedObject = (
    Service
    | Deployment
    | ReplicaSet
    | StatefulSet
    | ReplicationController
    | PersistentVolume
    | PersistentVolumeClaim
    | StorageClass
    | CSINode
    | CSIDriver
    | CSIStorageCapacity
    | VolumeAttachment
    | Namespace
    | PodDisruptionBudget
)
O = TypeVar("O", bound=NamedObject)  # noqa: E741

CLUSTER_SCOPED = frozenset(
    ("PersistentVolume", "StorageClass", "CSINode", "CSIDriver", "VolumeAttachment", "Namespace", "Node")
)


class Shelf(Generic[O]):
    """The objects of one kind, by namespace and name (the namespace is empty for cluster-scoped ones)."""

    __slots__ = ("_by_key", "_by_namespace")

    def __init__(self) -> None:
        self._by_key: dict[tuple[str, str], O] = {}
        self._by_namespace: dict[str, dict[str, O]] = {}

    def __len__(self) -> int:
        return len(self._by_key)

    def put(self, item: O) -> None:
        """Add an object or replace the one of its name."""
        namespace, name = item.metadata.namespace, item.metadata.name
        self._by_key[namespace, name] = item
        self._by_namespace.setdefault(namespace, {})[name] = item

    def get(self, namespace: str, name: str) -> O | None:
        """Return an object by name."""
        return self._by_key.get((namespace, name))

    def remove(self, namespace: str, name: str) -> None:
        """Take an object away."""
        del self._by_key[namespace, name]
        del self._by_namespace[namespace][name]

    def all(self) -> list[O]:
        """Return the objects in the order in which they first came."""
        return list(self._by_key.values())

    def within(self, namespace: str) -> list[O]:
        """Return the objects of a namespace."""
        return list(self._by_namespace.get(namespace, {}).values())


class ClusterObjects:
    """One shelf a kind."""

    def __init__(self) -> None:
        self.services: Shelf[Service] = Shelf()
        self.deployments: Shelf[Deployment] = Shelf()
        self.replica_sets: Shelf[ReplicaSet] = Shelf()
        self.stateful_sets: Shelf[StatefulSet] = Shelf()
        self.replication_controllers: Shelf[ReplicationController] = Shelf()
        self.persistent_volumes: Shelf[PersistentVolume] = Shelf()
        self.persistent_volume_claims: Shelf[PersistentVolumeClaim] = Shelf()
        self.storage_classes: Shelf[StorageClass] = Shelf()
        self.csi_nodes: Shelf[CSINode] = Shelf()
        self.csi_drivers: Shelf[CSIDriver] = Shelf()
        self.csi_storage_capacities: Shelf[CSIStorageCapacity] = Shelf()
        self.volume_attachments: Shelf[VolumeAttachment] = Shelf()
        self.namespaces: Shelf[Namespace] = Shelf()
        self.pod_disruption_budgets: Shelf[PodDisruptionBudget] = Shelf()

    def shelf(self, item: O) -> Shelf[O]:
        """Return the shelf that an object belongs on."""
        shelf: Shelf[O] = self.by_kind()[type(item).__name__]
        return shelf

    def by_kind(self) -> dict[str, Shelf[Any]]:
        """Return all shelves by kind."""
        return {
            "Namespace": self.namespaces,
            "StorageClass": self.storage_classes,
            "PersistentVolume": self.persistent_volumes,
            "PersistentVolumeClaim": self.persistent_volume_claims,
            "CSINode": self.csi_nodes,
            "CSIDriver": self.csi_drivers,
            "CSIStorageCapacity": self.csi_storage_capacities,
            "VolumeAttachment": self.volume_attachments,
            "Service": self.services,
            "Deployment": self.deployments,
            "ReplicaSet": self.replica_sets,
            "StatefulSet": self.stateful_sets,
            "ReplicationController": self.replication_controllers,
            "PodDisruptionBudget": self.pod_disruption_budgets,
        }
