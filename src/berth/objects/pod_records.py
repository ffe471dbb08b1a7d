"""A pod as it is taken in: its parts as bytes that serve as keys, so that equal parts are decoded once.

Clusters hold many pods of few shapes. The parts that are alike (spec, labels, owners) are left as the bytes that stand in
the input; a table that has seen the bytes before knows the pod's shape without decoding it (5 µs a pod instead of 20).
"""

from datetime import datetime
from typing import Annotated, Any

import msgspec
from msgspec import field

from berth.objects.decode import without_nulls
from berth.objects.pods import Pod

_ABSENT = msgspec.Raw(b"null")

DISRUPTION_TARGET = "DisruptionTarget"
PREEMPTION_BY_SCHEDULER = "PreemptionByScheduler"
"""The condition, and its reason, of a pod that has to make room for another."""


class _Slice(msgspec.Struct, rename="camel", omit_defaults=True, kw_only=True, gc=False):
    pass


class ContainerSlice(_Slice):
    """What is kept of a container."""

    name: str = ""
    image: str = ""
    resources: msgspec.Raw = _ABSENT
    ports: msgspec.Raw = _ABSENT
    restart_policy: msgspec.Raw = _ABSENT
    restart_policy_rules: msgspec.Raw = _ABSENT


class VolumeSlice(_Slice):
    """What is kept of a volume; its name only where a claim is named after it (names of token volumes are random)."""

    name: str = ""
    persistent_volume_claim: msgspec.Raw = _ABSENT
    gce_persistent_disk: msgspec.Raw = _ABSENT
    aws_elastic_block_store: msgspec.Raw = _ABSENT
    rbd: msgspec.Raw = _ABSENT
    iscsi: msgspec.Raw = _ABSENT
    azure_disk: msgspec.Raw = _ABSENT
    cinder: msgspec.Raw = _ABSENT
    csi: msgspec.Raw = _ABSENT
    ephemeral: msgspec.Raw = _ABSENT
    image: msgspec.Raw = _ABSENT


class ContainerResizingSlice(_Slice):
    """What the kubelet says of a container's resources."""

    name: str = ""
    resources: msgspec.Raw = _ABSENT
    allocated_resources: msgspec.Raw = _ABSENT


class ResizingSlice(_Slice):
    """What the status says of resources where the spec says otherwise (`berth.objects.pods.Resizing`)."""

    containers: list[ContainerResizingSlice] = []
    resources: msgspec.Raw = _ABSENT
    allocated_resources: msgspec.Raw = _ABSENT
    infeasible: bool = False


class SpecSlice(_Slice):
    """What is kept of a pod's spec; `node_name` is taken out before the rest becomes a key."""

    node_name: str = ""
    scheduler_name: msgspec.Raw = _ABSENT
    containers: list[ContainerSlice] = []
    init_containers: list[ContainerSlice] = []
    resources: msgspec.Raw = _ABSENT
    overhead: msgspec.Raw = _ABSENT
    node_selector: msgspec.Raw = _ABSENT
    affinity: msgspec.Raw = _ABSENT
    tolerations: msgspec.Raw = _ABSENT
    topology_spread_constraints: msgspec.Raw = _ABSENT
    volumes: list[VolumeSlice] = []
    host_network: msgspec.Raw = _ABSENT
    host_users: msgspec.Raw = _ABSENT
    priority: msgspec.Raw = _ABSENT
    priority_class_name: msgspec.Raw = _ABSENT
    preemption_policy: msgspec.Raw = _ABSENT
    scheduling_gates: msgspec.Raw = _ABSENT
    resource_claims: msgspec.Raw = _ABSENT
    scheduling_group: msgspec.Raw = _ABSENT
    resizing: ResizingSlice | None = None


class AnnotationSlice(_Slice):
    """The annotations that scheduling reads."""

    deletion_cost: str = field(default="", name="controller.kubernetes.io/pod-deletion-cost")


class MetadataSlice(_Slice):
    """What is kept of a pod's metadata."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    labels: msgspec.Raw = msgspec.Raw(b"{}")
    annotations: AnnotationSlice | None = None
    owner_references: msgspec.Raw = msgspec.Raw(b"[]")
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None


class ConditionSlice(_Slice):
    """A condition of the pod."""

    type: str = ""
    status: str = ""
    reason: str = ""
    last_transition_time: datetime | None = None


class ContainerStatusSlice(_Slice):
    """How often a container was restarted, and what it has."""

    name: str = ""
    resources: msgspec.Raw = _ABSENT
    allocated_resources: msgspec.Raw = _ABSENT
    restart_count: Annotated[int, msgspec.Meta(ge=0, lt=2**31)] = 0  # a column has no room for more


class StatusSlice(_Slice):
    """What is kept of a pod's status."""

    phase: str = ""
    conditions: list[ConditionSlice] = []
    container_statuses: list[ContainerStatusSlice] = []
    init_container_statuses: list[ContainerStatusSlice] = []
    resources: msgspec.Raw = _ABSENT
    allocated_resources: msgspec.Raw = _ABSENT
    nominated_node_name: str = ""
    start_time: datetime | None = None


class PodRecord(_Slice):
    """A pod, decoded no further than telling it apart needs."""

    metadata: MetadataSlice
    spec: SpecSlice
    status: StatusSlice = field(default_factory=StatusSlice)

    def spec_key(self, *, with_resizing: bool = False) -> bytes:
        """Return the bytes of all that scheduling reads of the spec, the node's name aside.

        Takes the node's name out of the record: read it before.

        Parameters
        ----------
        with_resizing : bool
            Also what the status says of resources, where it is not just what the spec says.
        """
        self.spec.node_name = ""
        self.spec.resizing = self._resizing() if with_resizing else None
        for volume in self.spec.volumes:
            if volume.ephemeral is _ABSENT:
                volume.name = ""
        return _encoder.encode(self.spec)

    def _resizing(self) -> ResizingSlice | None:
        spec, status = self.spec, self.status
        resized = []
        if status.container_statuses or status.init_container_statuses:
            of_name = {c.name: c.resources for c in (*spec.containers, *spec.init_containers)}
            resized = [
                ContainerResizingSlice(
                    name=s.name, resources=s.resources, allocated_resources=s.allocated_resources
                )
                for s in (*status.container_statuses, *status.init_container_statuses)
                if s.name in of_name and _differs(of_name[s.name], s.resources, s.allocated_resources)
            ]
        pod_differs = _differs(spec.resources, status.resources, status.allocated_resources)
        if not resized and not pod_differs:
            return None
        pending = [c.reason for c in status.conditions if c.type == "PodResizePending"]
        return ResizingSlice(
            containers=resized,
            resources=status.resources if pod_differs else _ABSENT,
            allocated_resources=status.allocated_resources if pod_differs else _ABSENT,
            infeasible=pending[:1] == ["Infeasible"],
        )


def _differs(spec: msgspec.Raw, actual: msgspec.Raw, allocated: msgspec.Raw) -> bool:
    """Tell by the texts alone whether what a pod has may be other than what its spec says."""
    if actual == _ABSENT:
        return False
    return actual != spec or (allocated != _ABSENT and b'"requests":' + bytes(allocated) not in bytes(spec))


class PodItem(PodRecord):
    """A pod in a file, with the words that tell it from objects of other kinds."""

    kind: str = ""
    api_version: str = ""


_encoder = msgspec.json.Encoder()
_decoder: msgspec.json.Decoder[Any] = msgspec.json.Decoder(PodRecord)


def decode_record(data: bytes | msgspec.Raw) -> PodRecord:
    """Decode a pod from JSON; a ``null`` counts as absent.

    Raises
    ------
    msgspec.ValidationError
        A field has the wrong type.
    """
    record: PodRecord
    try:
        record = _decoder.decode(data)
    except msgspec.ValidationError:
        record = _decoder.decode(_encoder.encode(without_nulls(msgspec.json.decode(data))))
    return record


def record_of(pod: Pod) -> PodRecord:
    """Return the record of a decoded pod."""
    # Not the pod itself: of that an empty spec is left out.
    parts = {"metadata": pod.metadata, "spec": pod.spec, "status": pod.status}
    return decode_record(_encoder.encode(parts))
