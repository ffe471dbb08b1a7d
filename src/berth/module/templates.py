"""The pod that is added: a workload's template, or a copy of the service's newest pod."""

import re
from dataclasses import dataclass

import msgspec
import numpy as np

from berth.cluster.cluster import Cluster, Incoming
from berth.module.changes import WorkloadName
from berth.module.services import Members, ServiceError
from berth.objects.base import ObjectMeta, OwnerReference
from berth.objects.decode import HASH_LABEL, decode
from berth.objects.pods import PersistentVolumeClaimVolume, Pod, PodSpec, Volume
from berth.objects.storage import PersistentVolumeClaim
from berth.objects.workloads import Deployment, ReplicaSet, Service, StatefulSet, Workload, WorkloadSpec

POD_NAME_LABEL = "statefulset.kubernetes.io/pod-name"
_ORDINAL = re.compile(r"(.*)-([0-9]+)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Pattern:
    """After what a pod is made.

    Attributes
    ----------
    base_name : str
        What its name begins with.
    controller : WorkloadName or None
        The workload whose replicas count it directly: for a Deployment its current ReplicaSet.
    """

    pod: Pod
    base_name: str
    controller: WorkloadName | None


def pattern_of(cluster: Cluster, service: Service, workload: Workload | None, members: Members) -> Pattern:
    """Return the pattern of a service's next pod.

    Raises
    ------
    ServiceError
        It has neither a workload nor a pod.
    """
    if workload is not None:
        return pattern_of_workload(cluster, workload)
    newest = newest_pod(cluster, members)
    if newest is None:
        meta = service.metadata
        raise ServiceError(f"service {meta.namespace}/{meta.name} has no workload and no pod to copy")
    return Pattern(copy_of(cluster, newest), cluster.pods.names[newest], None)


def newest_pod(cluster: Cluster, members: Members) -> int | None:
    """Return the service's pod that was created last, of equals the first by name."""
    own = members.own
    if len(own) == 0:
        return None
    created = cluster.pods.column("created")[own]
    newest = own[created == created.max()].tolist()
    return min(newest, key=cluster.pods.names.__getitem__)


def copy_of(cluster: Cluster, pod: int) -> Pod:
    """Return a pod's labels and spec, without node, status, name, uid and owners."""
    values = cluster.pods.get(pod)
    spec = decode(cluster.specs.key(values.spec_id), PodSpec)
    return Pod(
        metadata=ObjectMeta(
            namespace=cluster.namespaces.items[values.namespace_id],
            labels=cluster.label_sets.get(values.labels_id),
        ),
        spec=msgspec.structs.replace(spec, resizing=None) if spec.resizing else spec,
    )


def current_replica_set(cluster: Cluster, deployment: Deployment) -> ReplicaSet | None:
    """Return the newest ReplicaSet whose template is the Deployment's, else its newest."""
    meta = deployment.metadata
    owned = [
        replica_set
        for replica_set in cluster.objects.replica_sets.within(meta.namespace)
        if (owner := replica_set.metadata.controller()) is not None
        and (owner.kind, owner.name) == ("Deployment", meta.name)
    ]
    owned.sort(key=lambda r: (-_created(r.metadata), r.metadata.name))
    wanted = deployment.spec
    return next((r for r in owned if _same_template(r.spec, wanted)), owned[0] if owned else None)


def next_ordinal(cluster: Cluster, stateful_set: StatefulSet) -> int:
    """Return the ordinal that a StatefulSet's next pod gets: one above its highest that is not terminating."""
    return highest_ordinal(cluster, stateful_set.metadata.namespace, stateful_set.metadata.name)[0] + 1


def highest_ordinal(cluster: Cluster, namespace: str, name: str) -> tuple[int, int]:
    """Return the highest ordinal among a StatefulSet's pods that are not terminating, and that pod; (-1, -1) if none."""
    pods = cluster.pods
    within = pods.alive & ~pods.column("terminating").astype(np.bool_)
    within &= pods.column("namespace_id") == cluster.namespaces.find(namespace)
    of_set = [
        i for i, owners in enumerate(cluster.owner_sets.items) if _controlled(owners, "StatefulSet", name)
    ]
    within &= np.isin(pods.column("owner_id"), of_set)
    ordinals = ((ordinal(pods.names[pod]), pod) for pod in np.flatnonzero(within).tolist())
    return max(ordinals, default=(-1, -1))


def ordinal(pod_name: str) -> int:
    """Return the ordinal at the end of a StatefulSet's pod's name, -1 if there is none."""
    found = _ORDINAL.fullmatch(pod_name)
    return int(found[2]) if found else -1


def stateful_pod(
    pattern: Pattern, stateful_set: StatefulSet, number: int
) -> tuple[Pod, list[PersistentVolumeClaim]]:
    """Return a StatefulSet's pod of an ordinal, and the claims that its templates make for it."""
    name = f"{stateful_set.metadata.name}-{number}"
    namespace = stateful_set.metadata.namespace
    claims, volumes = [], {volume.name: volume for volume in pattern.pod.spec.volumes}
    for template in stateful_set.spec.volume_claim_templates:
        claim_name = f"{template.metadata.name}-{name}"
        claim_meta = msgspec.structs.replace(template.metadata, name=claim_name, namespace=namespace)
        claims.append(msgspec.structs.replace(template, metadata=claim_meta))
        volumes[template.metadata.name] = Volume(
            name=template.metadata.name,
            persistent_volume_claim=PersistentVolumeClaimVolume(claim_name=claim_name),
        )
    labels = pattern.pod.metadata.labels | {POD_NAME_LABEL: name}
    pod = Pod(
        metadata=msgspec.structs.replace(pattern.pod.metadata, name=name, labels=labels),
        spec=msgspec.structs.replace(pattern.pod.spec, volumes=tuple(volumes.values())),
    )
    return pod, claims


def incoming_of(cluster: Cluster, pattern: Pattern) -> Incoming:
    """Return a pattern's pod as plugins see it."""
    return cluster.incoming(pattern.pod)


def pattern_of_workload(cluster: Cluster, workload: Workload) -> Pattern:
    """Return the pattern of a workload's next pod."""
    controller: Workload = workload
    if isinstance(workload, Deployment):
        controller = current_replica_set(cluster, workload) or workload
    template, meta = controller.spec.template, controller.metadata
    labels = template.metadata.labels
    if controller is not workload:
        # The Deployment's template is the truth (they differ where no ReplicaSet has it yet); the hash is the set's.
        template = workload.spec.template
        labels = template.metadata.labels | {k: v for k, v in labels.items() if k == HASH_LABEL}
    owner = OwnerReference(
        api_version="v1" if type(controller).__name__ == "ReplicationController" else "apps/v1",
        kind=type(controller).__name__,
        name=meta.name,
        uid=meta.uid,
        controller=True,
    )
    pod = Pod(
        metadata=ObjectMeta(
            namespace=workload.metadata.namespace,
            labels=labels,
            annotations=template.metadata.annotations,
            owner_references=(owner,),
        ),
        spec=template.spec,
    )
    return Pattern(pod, meta.name, WorkloadName(type(controller).__name__, meta.name))


def _same_template(one: WorkloadSpec, other: WorkloadSpec) -> bool:
    """Compare templates, pod-template-hash aside: as they stood in the input, else what scheduling reads of them."""
    if one.template_digest and other.template_digest:
        return one.template_digest == other.template_digest
    labels, other_labels = (
        {key: value for key, value in spec.template.metadata.labels.items() if key != HASH_LABEL}
        for spec in (one, other)
    )
    return labels == other_labels and one.template.spec == other.template.spec


def _created(meta: ObjectMeta) -> float:
    return meta.creation_timestamp.timestamp() if meta.creation_timestamp else 0.0


def _controlled(owners: tuple[OwnerReference, ...], kind: str, name: str) -> bool:
    return any(owner.controller and owner.kind == kind and owner.name == name for owner in owners)
