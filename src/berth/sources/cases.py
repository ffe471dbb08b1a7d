"""Cases of the oracle protocol: one pod, and the cluster that it is to be placed in."""

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, TypeVar

import msgspec

from berth.cluster.accounting import Accounting
from berth.cluster.cluster import Cluster
from berth.cluster.objects import NamedObject
from berth.errors import InputError
from berth.objects.base import KubernetesStruct
from berth.objects.decode import decode
from berth.objects.nodes import Node
from berth.objects.pod_records import decode_record
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
    Namespace,
    PodDisruptionBudget,
    ReplicaSet,
    ReplicationController,
    Service,
    StatefulSet,
)
from berth.releases.release import LabelRule, Options, RatioShape, Release, ShapePoint
from berth.scheduling.answer import answer

Raws = tuple[msgspec.Raw, ...]

_NO_GATES: Mapping[str, bool] = MappingProxyType({})


class PointOption(KubernetesStruct, frozen=True):
    """A point of the ratio shape."""

    utilization: int
    score: int


class ResourceOption(KubernetesStruct, frozen=True):
    """A resource and its weight."""

    name: str
    weight: int = 1


class RatioOption(KubernetesStruct, frozen=True):
    """Option ``requestedToCapacityRatio``."""

    shape: tuple[PointOption, ...] = ()
    resources: tuple[ResourceOption, ...] = ()


class PresenceOption(KubernetesStruct, frozen=True):
    """Option ``labelsPresence``."""

    labels: tuple[str, ...] = ()
    presence: bool = False


class PreferenceOption(KubernetesStruct, frozen=True):
    """Option ``labelPreference``."""

    label: str = ""
    presence: bool = False


class CaseOptions(KubernetesStruct, frozen=True):
    """The options of a case."""

    hard_pod_affinity_weight: int = 1
    service_affinity_labels: tuple[str, ...] = ()
    service_anti_affinity_label: str | None = None
    labels_presence: PresenceOption | None = None
    label_preference: PreferenceOption | None = None
    requested_to_capacity_ratio: RatioOption | None = None
    feature_gates: dict[str, bool] = {}

    def options(self) -> Options:
        """Return them as releases take them."""
        presence, preference, ratio = (
            self.labels_presence,
            self.label_preference,
            self.requested_to_capacity_ratio,
        )
        return Options(
            hard_pod_affinity_weight=self.hard_pod_affinity_weight,
            service_affinity_labels=self.service_affinity_labels,
            service_anti_affinity_label=self.service_anti_affinity_label or None,
            labels_presence=LabelRule(presence.labels, presence.presence) if presence else None,
            label_preference=LabelRule((preference.label,), preference.presence) if preference else None,
            ratio=_ratio(ratio) if ratio else None,
            feature_gates=self.feature_gates,
        )


class Case(KubernetesStruct, frozen=True):
    """A case; its objects are decoded one by one."""

    id: str = ""
    pod: Pod = Pod()
    nodes: tuple[Node, ...] = ()
    pods: Raws = ()
    services: tuple[Service, ...] = ()
    replication_controllers: tuple[ReplicationController, ...] = ()
    replica_sets: tuple[ReplicaSet, ...] = ()
    stateful_sets: tuple[StatefulSet, ...] = ()
    persistent_volumes: tuple[PersistentVolume, ...] = ()
    persistent_volume_claims: tuple[PersistentVolumeClaim, ...] = ()
    storage_classes: tuple[StorageClass, ...] = ()
    csi_nodes: tuple[CSINode, ...] = ()
    csi_drivers: tuple[CSIDriver, ...] = ()
    csi_storage_capacities: tuple[CSIStorageCapacity, ...] = ()
    volume_attachments: tuple[VolumeAttachment, ...] = ()
    namespaces: tuple[Namespace, ...] = ()
    pod_disruption_budgets: tuple[PodDisruptionBudget, ...] = ()
    options: CaseOptions = CaseOptions()


def answer_case(
    line: bytes, release: Release, feature_gates: Mapping[str, bool] = _NO_GATES
) -> dict[str, Any]:
    """Answer one case.

    Parameters
    ----------
    feature_gates : dict of name to bool
        Set over the case's own.

    Raises
    ------
    msgspec.DecodeError
        The line is no case.
    """
    case = decode(line, Case)
    head = {"id": case.id, "version": release.version}
    try:
        options = case.options.options()
        if feature_gates:
            options = replace(options, feature_gates={**options.feature_gates, **feature_gates})
        cluster = cluster_of(case, release.accounting_for(options))
        return head | answer(release, cluster, cluster.incoming(in_default(case.pod)), options)
    except InputError as error:
        return head | {"error": str(error)}


def cluster_of(case: Case, accounting: Accounting) -> Cluster:
    """Put a case's objects into a cluster. Objects without a namespace are in ``default``."""
    cluster = Cluster(accounting)
    for node in case.nodes:
        cluster.put_node(node)
    records = map(decode_record, case.pods)
    cluster.add_pods([cluster.values_of(record) for record in records if record.spec.node_name])
    items: list[NamedObject] = [
        *case.services,
        *case.replication_controllers,
        *case.replica_sets,
        *case.stateful_sets,
        *case.persistent_volume_claims,
        *case.csi_storage_capacities,
        *case.pod_disruption_budgets,
    ]
    for item in items:
        cluster.put(in_default(item))
    cluster_wide: list[NamedObject] = [
        *case.persistent_volumes,
        *case.storage_classes,
        *case.csi_nodes,
        *case.csi_drivers,
        *case.volume_attachments,
        *case.namespaces,
    ]
    for item in cluster_wide:
        cluster.put(item)
    return cluster


N = TypeVar("N", bound=NamedObject | Pod)


def in_default(item: N) -> N:
    """Put an object without a namespace into ``default``."""
    if item.metadata.namespace:
        return item
    metadata = msgspec.structs.replace(item.metadata, namespace="default")
    return msgspec.structs.replace(item, metadata=metadata)


def _ratio(option: RatioOption) -> RatioShape:
    return RatioShape(
        tuple(ShapePoint(point.utilization, point.score) for point in option.shape),
        tuple((resource.name, resource.weight) for resource in option.resources),
    )
