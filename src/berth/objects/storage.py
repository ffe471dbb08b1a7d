"""Volumes, claims, storage classes, and what CSI drivers say of nodes."""

from msgspec import field

from berth.objects.base import KubernetesStruct, LabelSelector, ObjectMeta, Quantity, ResourceList
from berth.objects.pods import (
    AWSElasticBlockStore,
    AzureDisk,
    Cinder,
    GCEPersistentDisk,
    NodeSelector,
    Portworx,
    ResourceRequirements,
)

BETA_STORAGE_CLASS = "volume.beta.kubernetes.io/storage-class"
WAIT_FOR_FIRST_CONSUMER = "WaitForFirstConsumer"


class ObjectReference(KubernetesStruct, frozen=True):
    """Another object, by name."""

    namespace: str = ""
    name: str = ""
    uid: str = ""


class VolumeNodeAffinity(KubernetesStruct, frozen=True):
    """Where a volume can be reached from."""

    required: NodeSelector | None = None


class CSIPersistentVolume(KubernetesStruct, frozen=True):
    """A volume of a CSI driver."""

    driver: str = ""
    volume_handle: str = ""


class PersistentVolumeSpec(KubernetesStruct, frozen=True):
    """What a volume is and for whom."""

    capacity: ResourceList = {}
    access_modes: tuple[str, ...] = ()
    storage_class_name: str = ""
    claim_ref: ObjectReference | None = None
    node_affinity: VolumeNodeAffinity | None = None
    volume_mode: str | None = None
    csi: CSIPersistentVolume | None = None
    local: dict[str, object] | None = None
    gce_persistent_disk: GCEPersistentDisk | None = None
    aws_elastic_block_store: AWSElasticBlockStore | None = None
    azure_disk: AzureDisk | None = None
    cinder: Cinder | None = None
    portworx_volume: Portworx | None = None
    volume_attributes_class_name: str | None = None


class PhaseStatus(KubernetesStruct, frozen=True):
    """The phase that a volume or claim is in."""

    phase: str = ""


class PersistentVolume(KubernetesStruct, frozen=True):
    """A PersistentVolume."""

    metadata: ObjectMeta = ObjectMeta()
    spec: PersistentVolumeSpec = PersistentVolumeSpec()
    status: PhaseStatus = PhaseStatus()


class PersistentVolumeClaimSpec(KubernetesStruct, frozen=True):
    """What a claim wants, and what it has got."""

    access_modes: tuple[str, ...] = ()
    selector: LabelSelector | None = None
    resources: ResourceRequirements = ResourceRequirements()
    volume_name: str = ""
    storage_class_name: str | None = None
    volume_mode: str | None = None
    volume_attributes_class_name: str | None = None


class PersistentVolumeClaim(KubernetesStruct, frozen=True):
    """A PersistentVolumeClaim."""

    metadata: ObjectMeta = ObjectMeta()
    spec: PersistentVolumeClaimSpec = PersistentVolumeClaimSpec()
    status: PhaseStatus = PhaseStatus()


class TopologySelectorRequirement(KubernetesStruct, frozen=True):
    """A label that a volume's topology must have, with one of the values."""

    key: str = ""
    values: tuple[str, ...] = ()


class TopologySelectorTerm(KubernetesStruct, frozen=True):
    """Requirements that must all hold."""

    match_label_expressions: tuple[TopologySelectorRequirement, ...] = ()


class StorageClass(KubernetesStruct, frozen=True):
    """A StorageClass."""

    metadata: ObjectMeta = ObjectMeta()
    provisioner: str = ""
    volume_binding_mode: str | None = None
    allowed_topologies: tuple[TopologySelectorTerm, ...] = ()


def storage_class_of(item: PersistentVolume | PersistentVolumeClaim) -> str:
    """Return the name of a storage class, empty if there is none; the old annotation goes before the spec."""
    return item.metadata.annotations.get(BETA_STORAGE_CLASS, item.spec.storage_class_name or "")


class VolumeNodeResources(KubernetesStruct, frozen=True):
    """How many volumes of a driver the node takes."""

    count: int | None = None


class CSINodeDriver(KubernetesStruct, frozen=True):
    """A CSI driver on a node."""

    name: str = ""
    node_id: str = field(default="", name="nodeID")
    topology_keys: tuple[str, ...] = ()
    allocatable: VolumeNodeResources | None = None


class CSINodeSpec(KubernetesStruct, frozen=True):
    """The CSI drivers of a node."""

    drivers: tuple[CSINodeDriver, ...] = ()


class CSINode(KubernetesStruct, frozen=True):
    """What the CSI drivers say of a node; it bears the node's name."""

    metadata: ObjectMeta = ObjectMeta()
    spec: CSINodeSpec = CSINodeSpec()


class CSIDriverSpec(KubernetesStruct, frozen=True):
    """What a CSI driver is capable of."""

    storage_capacity: bool = False
    prevent_pod_scheduling_if_missing: bool = False


class CSIDriver(KubernetesStruct, frozen=True):
    """A CSI driver, by the name that volumes give it."""

    metadata: ObjectMeta = ObjectMeta()
    spec: CSIDriverSpec = CSIDriverSpec()


class CSIStorageCapacity(KubernetesStruct, frozen=True):
    """How much storage of a class there is for the nodes of a topology."""

    metadata: ObjectMeta = ObjectMeta()
    node_topology: LabelSelector | None = None
    storage_class_name: str = ""
    capacity: Quantity | None = None
    maximum_volume_size: Quantity | None = None


class VolumeAttachmentSource(KubernetesStruct, frozen=True):
    """The volume that is attached."""

    persistent_volume_name: str | None = None


class VolumeAttachmentSpec(KubernetesStruct, frozen=True):
    """What is attached where, and by which driver."""

    attacher: str = ""
    node_name: str = ""
    source: VolumeAttachmentSource = VolumeAttachmentSource()


class VolumeAttachment(KubernetesStruct, frozen=True):
    """A volume that is attached to a node, with or without a pod that uses it."""

    metadata: ObjectMeta = ObjectMeta()
    spec: VolumeAttachmentSpec = VolumeAttachmentSpec()
