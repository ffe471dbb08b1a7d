"""Services, the workloads that make pods, and what guards them."""

from berth.objects.base import KubernetesStruct, LabelSelector, ObjectMeta
from berth.objects.pods import PodTemplateSpec
from berth.objects.storage import PersistentVolumeClaim


class ServiceSpec(KubernetesStruct, frozen=True):
    """Which pods stand behind a service; without a selector nobody knows, with an empty one all of the namespace."""

    selector: dict[str, str] | None = None


class Service(KubernetesStruct, frozen=True):
    """A service."""

    metadata: ObjectMeta = ObjectMeta()
    spec: ServiceSpec = ServiceSpec()


class WorkloadSpec(KubernetesStruct, frozen=True):
    """How many pods of which pattern; Deployments, ReplicaSets and StatefulSets have it alike.

    Attributes
    ----------
    template_digest : str
        Of the template as it stood in the input, with what scheduling does not read, `pod-template-hash` aside: not
        Kubernetes', but ours. Tells which ReplicaSet is a Deployment's current one.
    """

    template_digest: str = ""
    replicas: int | None = None
    selector: LabelSelector | None = None
    template: PodTemplateSpec = PodTemplateSpec()
    volume_claim_templates: tuple[PersistentVolumeClaim, ...] = ()
    paused: bool = False


class Deployment(KubernetesStruct, frozen=True):
    """A Deployment: it makes ReplicaSets, they make the pods."""

    metadata: ObjectMeta = ObjectMeta()
    spec: WorkloadSpec = WorkloadSpec()


class ReplicaSet(KubernetesStruct, frozen=True):
    """A ReplicaSet."""

    metadata: ObjectMeta = ObjectMeta()
    spec: WorkloadSpec = WorkloadSpec()


class StatefulSet(KubernetesStruct, frozen=True):
    """A StatefulSet: pods with ordinals and claims of their own."""

    metadata: ObjectMeta = ObjectMeta()
    spec: WorkloadSpec = WorkloadSpec()


class ReplicationControllerSpec(KubernetesStruct, frozen=True):
    """As a workload's, but the selector is a plain map."""

    replicas: int | None = None
    selector: dict[str, str] = {}
    template: PodTemplateSpec = PodTemplateSpec()


class ReplicationController(KubernetesStruct, frozen=True):
    """A ReplicationController."""

    metadata: ObjectMeta = ObjectMeta()
    spec: ReplicationControllerSpec = ReplicationControllerSpec()


Workload = Deployment | ReplicaSet | StatefulSet | ReplicationController


class PodDisruptionBudgetSpec(KubernetesStruct, frozen=True):
    """How many of the selected pods must stay, or may go."""

    selector: LabelSelector | None = None
    min_available: int | str | None = None
    max_unavailable: int | str | None = None


class PodDisruptionBudgetStatus(KubernetesStruct, frozen=True):
    """How many may go right now; those that are about to go already do not count."""

    disruptions_allowed: int = 0
    disrupted_pods: dict[str, object] = {}


class PodDisruptionBudget(KubernetesStruct, frozen=True):
    """A PodDisruptionBudget."""

    metadata: ObjectMeta = ObjectMeta()
    spec: PodDisruptionBudgetSpec = PodDisruptionBudgetSpec()
    status: PodDisruptionBudgetStatus = PodDisruptionBudgetStatus()


class Namespace(KubernetesStruct, frozen=True):
    """A namespace; its labels are read by namespace selectors."""

    metadata: ObjectMeta = ObjectMeta()
