"""Pods, and all of their spec that scheduling reads."""

from datetime import datetime

from msgspec import field

from berth.objects.base import (
    KubernetesStruct,
    LabelSelector,
    LabelSelectorRequirement,
    ObjectMeta,
    ResourceList,
)


class ContainerPort(KubernetesStruct, frozen=True):
    """A port of a container; only a ``host_port`` above 0 takes a port of the node."""

    container_port: int = 0
    host_port: int = 0
    host_ip: str = field(default="", name="hostIP")
    protocol: str = ""


class ResourceRequirements(KubernetesStruct, frozen=True):
    """What a container (or a pod as a whole) asks for and may use at most."""

    requests: ResourceList = {}
    limits: ResourceList = {}


class ContainerRestartRule(KubernetesStruct, frozen=True):
    """What is done when a container ends in a certain way."""

    action: str = ""


class Container(KubernetesStruct, frozen=True):
    """A container; an init container with ``restart_policy`` Always is a sidecar."""

    name: str = ""
    image: str = ""
    resources: ResourceRequirements = ResourceRequirements()
    ports: tuple[ContainerPort, ...] = ()
    restart_policy: str = ""
    restart_policy_rules: tuple[ContainerRestartRule, ...] = ()

    @property
    def is_sidecar(self) -> bool:
        """Whether it is one, as an init container."""
        return self.restart_policy == "Always"


class NodeSelectorTerm(KubernetesStruct, frozen=True):
    """Expressions over a node's labels and fields that must all hold; a term without any matches no node."""

    match_expressions: tuple[LabelSelectorRequirement, ...] = ()
    match_fields: tuple[LabelSelectorRequirement, ...] = ()


class NodeSelector(KubernetesStruct, frozen=True):
    """Terms of which one must match."""

    node_selector_terms: tuple[NodeSelectorTerm, ...] = ()


class PreferredSchedulingTerm(KubernetesStruct, frozen=True):
    """A wish for a node, with its weight (1 to 100)."""

    weight: int = 0
    preference: NodeSelectorTerm = NodeSelectorTerm()


class NodeAffinity(KubernetesStruct, frozen=True):
    """Which nodes a pod needs, and which it would like."""

    required: NodeSelector | None = field(default=None, name="requiredDuringSchedulingIgnoredDuringExecution")
    preferred: tuple[PreferredSchedulingTerm, ...] = field(
        default=(), name="preferredDuringSchedulingIgnoredDuringExecution"
    )


class PodAffinityTerm(KubernetesStruct, frozen=True):
    """Pods (by selector and namespaces) that must or must not share a topology domain with this one."""

    label_selector: LabelSelector | None = None
    namespaces: tuple[str, ...] = ()
    topology_key: str = ""
    namespace_selector: LabelSelector | None = None


class WeightedPodAffinityTerm(KubernetesStruct, frozen=True):
    """A wish for the company of pods, or against it, with its weight (1 to 100)."""

    weight: int = 0
    pod_affinity_term: PodAffinityTerm = PodAffinityTerm()


class PodAffinity(KubernetesStruct, frozen=True):
    """Affinity, or anti-affinity, to other pods."""

    required: tuple[PodAffinityTerm, ...] = field(
        default=(), name="requiredDuringSchedulingIgnoredDuringExecution"
    )
    preferred: tuple[WeightedPodAffinityTerm, ...] = field(
        default=(), name="preferredDuringSchedulingIgnoredDuringExecution"
    )


class Affinity(KubernetesStruct, frozen=True):
    """All of a pod's affinities."""

    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


class Toleration(KubernetesStruct, frozen=True):
    """A taint that the pod can stand; an empty key with Exists stands for all, an empty effect for every effect."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""


class TopologySpreadConstraint(KubernetesStruct, frozen=True):
    """How evenly matching pods have to lie over the domains of a topology key."""

    max_skew: int = 1
    topology_key: str = ""
    when_unsatisfiable: str = ""
    label_selector: LabelSelector | None = None
    min_domains: int | None = None
    node_affinity_policy: str | None = None
    node_taints_policy: str | None = None
    match_label_keys: tuple[str, ...] = ()


class PersistentVolumeClaimVolume(KubernetesStruct, frozen=True):
    """A volume that is a claim."""

    claim_name: str = ""
    read_only: bool = False


class GCEPersistentDisk(KubernetesStruct, frozen=True):
    """A Google Compute Engine disk."""

    pd_name: str = ""
    read_only: bool = False


class AWSElasticBlockStore(KubernetesStruct, frozen=True):
    """An Amazon EBS volume."""

    volume_id: str = field(default="", name="volumeID")
    read_only: bool = False


class RBD(KubernetesStruct, frozen=True):
    """A Ceph block device."""

    monitors: tuple[str, ...] = ()
    image: str = ""
    pool: str = ""
    read_only: bool = False


class ISCSI(KubernetesStruct, frozen=True):
    """An iSCSI volume."""

    target_portal: str = ""
    iqn: str = ""
    lun: int = 0
    read_only: bool = False


class AzureDisk(KubernetesStruct, frozen=True):
    """An Azure data disk."""

    disk_name: str = ""
    disk_uri: str = field(default="", name="diskURI")
    kind: str | None = None


class Cinder(KubernetesStruct, frozen=True):
    """An OpenStack Cinder volume."""

    volume_id: str = field(default="", name="volumeID")


class Portworx(KubernetesStruct, frozen=True):
    """A Portworx volume."""

    volume_id: str = field(default="", name="volumeID")


class CSIVolume(KubernetesStruct, frozen=True):
    """An inline volume of a CSI driver."""

    driver: str = ""


class ImageVolume(KubernetesStruct, frozen=True):
    """An OCI image mounted as a volume."""

    reference: str = ""


class Volume(KubernetesStruct, frozen=True):
    """A volume of a pod; of the kinds that scheduling never reads only the name is kept."""

    name: str = ""
    persistent_volume_claim: PersistentVolumeClaimVolume | None = None
    gce_persistent_disk: GCEPersistentDisk | None = None
    aws_elastic_block_store: AWSElasticBlockStore | None = None
    rbd: RBD | None = None
    iscsi: ISCSI | None = None
    azure_disk: AzureDisk | None = None
    cinder: Cinder | None = None
    portworx_volume: Portworx | None = None
    csi: CSIVolume | None = None
    ephemeral: dict[str, object] | None = None
    image: ImageVolume | None = None


class SchedulingGate(KubernetesStruct, frozen=True):
    """Something that must be lifted before the pod is looked at."""

    name: str = ""


class PodResourceClaim(KubernetesStruct, frozen=True):
    """A claim of dynamic resources."""

    name: str = ""


class ContainerResizing(KubernetesStruct, frozen=True):
    """What the kubelet says of a container's resources."""

    name: str = ""
    resources: ResourceRequirements | None = None
    allocated_resources: ResourceList = {}


class Resizing(KubernetesStruct, frozen=True):
    """What a pod's status says of its resources where the spec says otherwise: it is resized in place.

    Kubernetes has this in the pod's status; here it goes with the spec, so that pods of one spec hold the same.

    Attributes
    ----------
    resources, allocated_resources
        Of the pod as a whole.
    infeasible : bool
        The node can't ever give what the spec asks for.
    """

    containers: tuple[ContainerResizing, ...] = ()
    resources: ResourceRequirements | None = None
    allocated_resources: ResourceList = {}
    infeasible: bool = False


class PodSpec(KubernetesStruct, frozen=True):
    """What a pod wants; ``resizing`` is not Kubernetes' own."""

    node_name: str = ""
    scheduler_name: str = ""
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    resources: ResourceRequirements | None = None
    overhead: ResourceList = {}
    node_selector: dict[str, str] = {}
    affinity: Affinity | None = None
    tolerations: tuple[Toleration, ...] = ()
    topology_spread_constraints: tuple[TopologySpreadConstraint, ...] = ()
    volumes: tuple[Volume, ...] = ()
    host_network: bool = False
    host_users: bool | None = None
    priority: int | None = None
    priority_class_name: str = ""
    preemption_policy: str | None = None
    scheduling_gates: tuple[SchedulingGate, ...] = ()
    resource_claims: tuple[PodResourceClaim, ...] = ()
    scheduling_group: dict[str, object] | None = None
    resizing: Resizing | None = None


class PodCondition(KubernetesStruct, frozen=True):
    """A condition of a pod, such as Ready."""

    type: str = ""
    status: str = ""
    reason: str = ""
    last_transition_time: datetime | None = None


class ContainerStatus(KubernetesStruct, frozen=True):
    """How a container fares."""

    name: str = ""
    restart_count: int = 0
    allocated_resources: ResourceList = {}
    resources: ResourceRequirements | None = None


class PodStatus(KubernetesStruct, frozen=True):
    """How a pod fares."""

    phase: str = ""
    conditions: tuple[PodCondition, ...] = ()
    container_statuses: tuple[ContainerStatus, ...] = ()
    init_container_statuses: tuple[ContainerStatus, ...] = ()
    resources: ResourceRequirements | None = None
    allocated_resources: ResourceList = {}
    nominated_node_name: str = ""
    start_time: datetime | None = None


class Pod(KubernetesStruct, frozen=True):
    """A pod."""

    metadata: ObjectMeta = ObjectMeta()
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()


class PodTemplateSpec(KubernetesStruct, frozen=True):
    """The pattern after which a workload makes its pods."""

    metadata: ObjectMeta = ObjectMeta()
    spec: PodSpec = PodSpec()
