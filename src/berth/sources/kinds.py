"""The kinds of objects that a cluster is made of, and the API groups that they are of."""

from dataclasses import dataclass
from typing import Any

import msgspec

from berth.objects.base import ObjectMeta
from berth.objects.nodes import Node
from berth.objects.pods import Pod
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

_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of use.

    Attributes
    ----------
    api_version : str
        As it is written.
    groups : tuple of str
        Those that have had the kind; empty is the core group. Versions do not matter.
    """

    struct: type[Any]
    api_version: str
    groups: tuple[str, ...]
    namespaced: bool

    def kept(self, meta: ObjectMeta) -> ObjectMeta:
        """Return an object's metadata with the namespace that the API would give, and without kubectl's copy of it."""
        annotations = meta.annotations
        if _LAST_APPLIED in annotations:
            annotations = {key: value for key, value in annotations.items() if key != _LAST_APPLIED}
        namespace = (meta.namespace or "default") if self.namespaced else ""
        return msgspec.structs.replace(meta, namespace=namespace, annotations=annotations)


_CORE = ("",)
_APPS = ("apps", "extensions")
KINDS = {
    "Node": Kind(Node, "v1", _CORE, False),
    "Namespace": Kind(Namespace, "v1", _CORE, False),
    "StorageClass": Kind(StorageClass, "storage.k8s.io/v1", ("storage.k8s.io",), False),
    "PersistentVolume": Kind(PersistentVolume, "v1", _CORE, False),
    "PersistentVolumeClaim": Kind(PersistentVolumeClaim, "v1", _CORE, True),
    "CSINode": Kind(CSINode, "storage.k8s.io/v1", ("storage.k8s.io",), False),
    "CSIDriver": Kind(CSIDriver, "storage.k8s.io/v1", ("storage.k8s.io",), False),
    "CSIStorageCapacity": Kind(CSIStorageCapacity, "storage.k8s.io/v1", ("storage.k8s.io",), True),
    "VolumeAttachment": Kind(VolumeAttachment, "storage.k8s.io/v1", ("storage.k8s.io",), False),
    "Service": Kind(Service, "v1", _CORE, True),
    "Deployment": Kind(Deployment, "apps/v1", _APPS, True),
    "ReplicaSet": Kind(ReplicaSet, "apps/v1", _APPS, True),
    "StatefulSet": Kind(StatefulSet, "apps/v1", ("apps",), True),
    "ReplicationController": Kind(ReplicationController, "v1", _CORE, True),
    "PodDisruptionBudget": Kind(PodDisruptionBudget, "policy/v1", ("policy",), True),
    "Pod": Kind(Pod, "v1", _CORE, True),
}
"""In the order in which they are written: what others hang on comes first."""


def kind_of(name: str, api_version: str) -> Kind | None:
    """Return a kind by its name and version, None if it is of no use (say, a Service of another group)."""
    kind = KINDS.get(name)
    if kind is None or not api_version:
        return kind
    return kind if api_version.rpartition("/")[0] in kind.groups else None
