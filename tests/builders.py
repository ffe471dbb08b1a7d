"""Test worlds in a line: ``a_cluster(a_node("n1", cpu="4"), pods=[a_pod("web-1", node="n1")])``."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any

import msgspec

from berth.cluster.accounting import Accounting
from berth.cluster.cluster import Cluster
from berth.cluster.objects import NamedObject
from berth.objects.base import LabelSelector, ObjectMeta, OwnerReference
from berth.objects.nodes import Node, NodeCondition, NodeSpec, NodeStatus, Taint
from berth.objects.pods import (
    Affinity,
    Container,
    ContainerPort,
    ContainerStatus,
    NodeAffinity,
    PersistentVolumeClaimVolume,
    Pod,
    PodAffinity,
    PodCondition,
    PodSpec,
    PodStatus,
    PodTemplateSpec,
    ResourceRequirements,
    Toleration,
    Volume,
)
from berth.objects.storage import PersistentVolumeClaim
from berth.objects.workloads import (
    Deployment,
    ReplicaSet,
    ReplicationController,
    ReplicationControllerSpec,
    Service,
    ServiceSpec,
    StatefulSet,
    Workload,
    WorkloadSpec,
)

Labels = Mapping[str, str]
ZONE = "failure-domain.beta.kubernetes.io/zone"
HOST = "kubernetes.io/hostname"
NONE: Labels = MappingProxyType({})
READY: Labels = MappingProxyType({"Ready": "True"})


def a_cluster(
    *nodes: Node,
    pods: Iterable[Pod] = (),
    services: Iterable[Service] = (),
    objects: Iterable[NamedObject] = (),
    accounting: Accounting | None = None,
) -> Cluster:
    cluster = Cluster(accounting)
    for node in nodes:
        cluster.put_node(node)
    for item in (*services, *objects):
        cluster.put(item)
    for pod in pods:
        cluster.put_pod(pod)
    return cluster


def at(seconds: int) -> datetime:
    """The time so many seconds after 1970."""
    return datetime.fromtimestamp(seconds, UTC)


def a_taint(text: str) -> Taint:
    """``key=value:effect`` or ``key:effect``, as kubectl writes it."""
    head, _, effect = text.rpartition(":")
    key, _, value = head.partition("=")
    return Taint(key=key, value=value, effect=effect)


def a_node(
    name: str,
    *,
    cpu: str = "4",
    memory: str = "16Gi",
    pods: int | str = 110,
    labels: Labels = NONE,
    taints: Iterable[str] = (),
    zone: str | None = None,
    unschedulable: bool = False,
    conditions: Labels = READY,
    **resources: str,
) -> Node:
    """A node; ``resources`` are further ones, with ``__`` for a slash and ``_`` for a dash or, in a domain, a dot."""
    offered = {"cpu": cpu, "memory": memory, "pods": str(pods), "ephemeral-storage": "100Gi"}
    offered |= {_resource(key): amount for key, amount in resources.items()}
    zone_label = {ZONE: zone} if zone else {}
    return Node(
        metadata=ObjectMeta(name=name, uid=f"uid-{name}", labels={HOST: name, **zone_label, **labels}),
        spec=NodeSpec(unschedulable=unschedulable, taints=tuple(map(a_taint, taints))),
        status=NodeStatus(
            capacity=dict(offered),
            allocatable=dict(offered),
            conditions=tuple(NodeCondition(type=t, status=s) for t, s in conditions.items()),
        ),
    )


def _resource(key: str) -> str:
    domain, slash, name = key.partition("__")
    return domain.replace("_", ".") + "/" + name if slash else key.replace("_", "-")


def a_toleration(text: str) -> Toleration:
    """A taint's text, which is tolerated; ``key:effect`` whatever its value."""
    taint = a_taint(text)
    operator = "Equal" if taint.value else "Exists"
    return Toleration(key=taint.key, operator=operator, value=taint.value, effect=taint.effect)


def owned_by(owner: Workload | str) -> tuple[OwnerReference, ...]:
    """The reference to a controller: a workload, or ``Kind/name``."""
    if isinstance(owner, str):
        kind, _, name = owner.partition("/")
        uid = f"uid-{name}"
    else:
        kind, name, uid = type(owner).__name__, owner.metadata.name, owner.metadata.uid
    version = "v1" if kind == "ReplicationController" else "apps/v1"
    return (OwnerReference(api_version=version, kind=kind, name=name, uid=uid, controller=True),)


def a_spec(
    *,
    cpu: str | None = None,
    memory: str | None = None,
    requests: Labels = NONE,
    init: Labels | None = None,
    host_ports: Iterable[int] = (),
    node: str = "",
    node_selector: Labels = NONE,
    node_affinity: NodeAffinity | None = None,
    affinity: PodAffinity | None = None,
    anti_affinity: PodAffinity | None = None,
    tolerations: Iterable[str] = (),
    claims: Iterable[str] = (),
    priority: int | None = None,
    preemption_policy: str | None = None,
) -> PodSpec:
    asked = {key: amount for key, amount in (("cpu", cpu), ("memory", memory)) if amount is not None}
    ports = tuple(ContainerPort(container_port=port, host_port=port) for port in host_ports)
    container = Container(
        name="main", resources=ResourceRequirements(requests={**asked, **requests}), ports=ports
    )
    first = (Container(name="init", resources=ResourceRequirements(requests=dict(init))),) if init else ()
    any_affinity = node_affinity or affinity or anti_affinity
    return PodSpec(
        node_name=node,
        containers=(container,),
        init_containers=first,
        node_selector=dict(node_selector),
        affinity=Affinity(node_affinity=node_affinity, pod_affinity=affinity, pod_anti_affinity=anti_affinity)
        if any_affinity
        else None,
        tolerations=tuple(map(a_toleration, tolerations)),
        priority=priority,
        preemption_policy=preemption_policy,
        volumes=tuple(
            Volume(name=name, persistent_volume_claim=PersistentVolumeClaimVolume(claim_name=name))
            for name in claims
        ),
    )


def a_pod(
    name: str = "",
    *,
    namespace: str = "default",
    labels: Labels = NONE,
    owner: Workload | str | None = None,
    created: int = 0,
    ready_since: int | None = None,
    phase: str = "Running",
    restarts: int = 0,
    deletion_cost: str | None = None,
    terminating: bool = False,
    started: int = 0,
    preempted: bool = False,
    **spec: Any,
) -> Pod:
    """A pod; ``spec`` is for `a_spec`. With ``ready_since`` it is Ready. Times are seconds since 1970."""
    cost = {} if deletion_cost is None else {"controller.kubernetes.io/pod-deletion-cost": deletion_cost}
    ready = PodCondition(
        type="Ready",
        status="False" if ready_since is None else "True",
        last_transition_time=at(ready_since) if ready_since else None,
    )
    target = PodCondition(type="DisruptionTarget", status="True", reason="PreemptionByScheduler")
    return Pod(
        metadata=ObjectMeta(
            name=name,
            namespace=namespace,
            uid=f"uid-{name}",
            labels=dict(labels),
            annotations=cost,
            owner_references=owned_by(owner) if owner is not None else (),
            creation_timestamp=at(created) if created else None,
            deletion_timestamp=at(created + 1) if terminating else None,
        ),
        spec=a_spec(**spec),
        status=PodStatus(
            phase=phase,
            conditions=(ready, target) if preempted else (ready,),
            start_time=at(started) if started else None,
            container_statuses=(ContainerStatus(name="main", restart_count=restarts),),
        ),
    )


def a_service(name: str, selector: Labels | None = None, namespace: str = "default") -> Service:
    """A service; without a selector it selects ``app: NAME``."""
    chosen = {"app": name} if selector is None else dict(selector)
    return Service(
        metadata=ObjectMeta(name=name, namespace=namespace), spec=ServiceSpec(selector=chosen or None)
    )


def a_template(labels: Labels, **spec: Any) -> PodTemplateSpec:
    return PodTemplateSpec(metadata=ObjectMeta(labels=dict(labels)), spec=a_spec(**spec))


def _a_workload(
    name: str,
    namespace: str,
    labels: Labels | None,
    replicas: int | None,
    owner: Workload | str | None,
    created: int,
    claim_templates: Iterable[str],
    spec: Mapping[str, Any],
) -> tuple[ObjectMeta, WorkloadSpec]:
    labels = {"app": name} if labels is None else dict(labels)
    meta = ObjectMeta(
        name=name,
        namespace=namespace,
        uid=f"uid-{name}",
        owner_references=owned_by(owner) if owner is not None else (),
        creation_timestamp=at(created) if created else None,
    )
    claims = tuple(PersistentVolumeClaim(metadata=ObjectMeta(name=claim)) for claim in claim_templates)
    return meta, WorkloadSpec(
        replicas=replicas,
        selector=LabelSelector(match_labels=labels),
        template=a_template(labels, **spec),
        volume_claim_templates=claims,
    )


def a_deployment(
    name: str,
    *,
    namespace: str = "default",
    labels: Labels | None = None,
    replicas: int | None = None,
    **spec: Any,
) -> Deployment:
    """A Deployment of pods labelled ``app: NAME``, unless told otherwise; ``spec`` is for `a_spec`."""
    meta, its_spec = _a_workload(name, namespace, labels, replicas, None, 0, (), spec)
    return Deployment(metadata=meta, spec=its_spec)


def a_replica_set(
    name: str,
    *,
    namespace: str = "default",
    labels: Labels | None = None,
    replicas: int | None = None,
    owner: Workload | str | None = None,
    created: int = 0,
    **spec: Any,
) -> ReplicaSet:
    meta, its_spec = _a_workload(name, namespace, labels, replicas, owner, created, (), spec)
    return ReplicaSet(metadata=meta, spec=its_spec)


def replica_set_of(deployment: Deployment, suffix: str = "1", **more: Any) -> ReplicaSet:
    """A ReplicaSet with the Deployment's template and replicas; ``more`` replaces arguments of `a_replica_set`."""
    made = a_replica_set(
        f"{deployment.metadata.name}-{suffix}",
        namespace=deployment.metadata.namespace,
        owner=deployment,
        **({"replicas": deployment.spec.replicas} | more),
    )
    template = deployment.spec.template
    labels = template.metadata.labels | {"pod-template-hash": suffix}
    meta = msgspec.structs.replace(template.metadata, labels=labels)
    template = msgspec.structs.replace(template, metadata=meta)
    return msgspec.structs.replace(made, spec=msgspec.structs.replace(made.spec, template=template))


def a_stateful_set(
    name: str,
    *,
    namespace: str = "default",
    labels: Labels | None = None,
    replicas: int | None = None,
    claim_templates: Iterable[str] = (),
    **spec: Any,
) -> StatefulSet:
    meta, its_spec = _a_workload(name, namespace, labels, replicas, None, 0, claim_templates, spec)
    return StatefulSet(metadata=meta, spec=its_spec)


def a_replication_controller(
    name: str,
    *,
    namespace: str = "default",
    labels: Labels | None = None,
    replicas: int | None = None,
    **spec: Any,
) -> ReplicationController:
    meta, its_spec = _a_workload(name, namespace, labels, replicas, None, 0, (), spec)
    chosen = its_spec.selector.match_labels if its_spec.selector else {}
    return ReplicationController(
        metadata=meta,
        spec=ReplicationControllerSpec(replicas=replicas, selector=chosen, template=its_spec.template),
    )
