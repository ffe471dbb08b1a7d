"""A cluster as Kubernetes objects again: as one ``List``, or as rows for a database."""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any, BinaryIO

import msgspec

from berth.cluster.cluster import Cluster
from berth.cluster.objects import NamedObject
from berth.cluster.pods import PHASES, PodValues
from berth.objects.pod_records import DISRUPTION_TARGET, PREEMPTION_BY_SCHEDULER
from berth.objects.pods import PodSpec
from berth.sources.checks import SnapshotError
from berth.sources.intake import Intake
from berth.sources.json_stream import Found
from berth.sources.kinds import KINDS

Row = tuple[str, str, str, bytes]
"""Kind, namespace (empty for cluster-scoped kinds), name, and the object as JSON."""

_HEAD = b'{"apiVersion":"v1","items":[\n'
_TAIL = b'\n],"kind":"List","metadata":{"resourceVersion":""}}\n'
_encoder = msgspec.json.Encoder()


def write_snapshot(cluster: Cluster, file: BinaryIO) -> int:
    """Write what the cluster holds as one JSON ``List``, an object a line; return how many objects.

    Pods without a name, which are only planned, are left out.
    """
    n_objects = 0
    file.write(_HEAD)
    for _, _, _, text in cluster_objects(cluster):
        file.write(b",\n" + text if n_objects else text)
        n_objects += 1
    file.write(_TAIL)
    return n_objects


def cluster_objects(cluster: Cluster) -> Iterator[Row]:
    """Yield all objects of the cluster, pods last; those without a name, which are only planned, are left out."""
    for node in cluster.nodes.all():
        yield "Node", "", node.metadata.name, _typed("Node", node)
    for kind, shelf in cluster.objects.by_kind().items():
        for item in shelf.all():
            yield kind, item.metadata.namespace, item.metadata.name, _typed(kind, item)
    pods = _PodWriter(cluster)
    namespaces, namespace_ids = cluster.namespaces.items, cluster.pods.column("namespace_id")
    for pod in cluster.pods.alive.nonzero()[0].tolist():
        if cluster.pods.names[pod]:
            yield "Pod", namespaces[namespace_ids[pod]], cluster.pods.names[pod], pods.object(pod)


def load_objects(rows: Iterable[Row], cluster: Cluster | None = None) -> Cluster:
    """Make a cluster of rows; the inverse of `cluster_objects`.

    Parameters
    ----------
    cluster : Cluster, optional
        What to add to; a new one by default.

    Raises
    ------
    SnapshotError
        Something is wrong with the objects.
    """
    intake = Intake(cluster if cluster is not None else Cluster())
    intake.start_file("saved state")
    for number, (_, _, _, data) in enumerate(rows, 1):
        text = memoryview(data)
        try:
            decoded = intake.decode(text)
        except (msgspec.DecodeError, RecursionError):
            decoded = None
        intake.take(Found(number, text, decoded, None))
    if intake.mistakes:
        raise SnapshotError(intake.mistakes)
    intake.finish()
    return intake.cluster


def pod_objects(cluster: Cluster, pods: Iterable[int]) -> Iterator[bytes]:
    """Yield pods as Kubernetes objects in JSON.

    A pod that is terminating gets 1970 for the time of its deletion: that time is not kept.
    """
    return map(_PodWriter(cluster).object, pods)


def pod_object(cluster: Cluster, pod: int) -> bytes:
    """Return a single pod as `pod_objects` does."""
    return next(pod_objects(cluster, [pod]))


def named_object(item: NamedObject) -> bytes:
    """Return an object other than a pod or node as a Kubernetes object in JSON."""
    return _typed(type(item).__name__, item)


class _PodWriter:
    """Writes pods; what many have in common is made once."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._labels: dict[int, dict[str, str]] = {}
        self._all_labels: list[dict[str, str]] | None = None

    def object(self, pod: int) -> bytes:
        cluster = self._cluster
        values = cluster.pods.get(pod)
        node_name = cluster.pods.node_names.items[values.node_name_id] if values.node_name_id >= 0 else ""
        return _encoder.encode(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": self._metadata(values),
                "spec": msgspec.Raw(_with_node_name(self._spec(values.spec_id), node_name)),
                "status": _status(values, cluster.specs[values.spec_id].spec),
            }
        )

    def _spec(self, spec_id: int) -> bytes:
        """Return a spec as JSON, without what is the status's."""
        spec = self._cluster.specs[spec_id].spec
        if spec.resizing is None:
            return self._cluster.specs.key(spec_id)
        return _encoder.encode(msgspec.structs.replace(spec, resizing=None))

    def _metadata(self, values: PodValues) -> dict[str, Any]:
        cluster = self._cluster
        meta: dict[str, Any] = {
            "name": values.name,
            "namespace": cluster.namespaces.items[values.namespace_id],
        }
        if values.uid:
            meta["uid"] = values.uid
        if labels := self._labels_of(values.labels_id):
            meta["labels"] = labels
        if owners := cluster.owner_sets.items[values.owner_id]:
            meta["ownerReferences"] = owners
        if values.deletion_cost:
            meta["annotations"] = {"controller.kubernetes.io/pod-deletion-cost": str(values.deletion_cost)}
        if values.created:
            meta["creationTimestamp"] = _time(values.created)
        if values.terminating:
            meta["deletionTimestamp"] = _time(0)
        return meta

    def _labels_of(self, labels_id: int) -> dict[str, str]:
        """Look up a few label sets one by one, then all of them in one pass: each look-up goes over all sets."""
        if self._all_labels is None and len(self._labels) < 3:
            if labels_id not in self._labels:
                self._labels[labels_id] = self._cluster.label_sets.get(labels_id)
            return self._labels[labels_id]
        if self._all_labels is None:
            self._all_labels = self._cluster.label_sets.all()
        return self._all_labels[labels_id]


def _status(values: PodValues, spec: PodSpec) -> dict[str, Any]:
    status = _resources(spec)
    if phase := PHASES[values.phase]:
        status["phase"] = phase
    if values.ready or values.ready_since:
        ready: dict[str, str] = {"type": "Ready", "status": "True" if values.ready else "False"}
        if values.ready_since:
            ready["lastTransitionTime"] = _time(values.ready_since)
        status.setdefault("conditions", []).append(ready)
    if values.preempted:
        preempted = {"type": DISRUPTION_TARGET, "status": "True", "reason": PREEMPTION_BY_SCHEDULER}
        status.setdefault("conditions", []).append(preempted)
    if values.started:
        status["startTime"] = _time(values.started)
    if values.restarts:
        status.setdefault("containerStatuses", []).append({"restartCount": values.restarts})
    return status


def _resources(spec: PodSpec) -> dict[str, Any]:
    """Return what the status says of resources, where the cluster keeps it with the spec."""
    resizing = spec.resizing
    if resizing is None:
        return {}
    initial = {container.name for container in spec.init_containers}
    status: dict[str, Any] = {
        "containerStatuses": [c for c in resizing.containers if c.name not in initial],
        "initContainerStatuses": [c for c in resizing.containers if c.name in initial],
        "resources": resizing.resources,
        "allocatedResources": resizing.allocated_resources,
    }
    status = {key: value for key, value in status.items() if value}
    if resizing.infeasible:
        pending = {"type": "PodResizePending", "status": "True", "reason": "Infeasible"}
        status["conditions"] = [pending]
    return status


def _with_node_name(spec: bytes, node_name: str) -> bytes:
    if not node_name:
        return spec
    between = b"," if len(spec) > len(b"{}") else b""
    return b'{"nodeName":' + _encoder.encode(node_name) + between + spec[1:]


def _typed(kind: str, item: msgspec.Struct) -> bytes:
    """Return an object as JSON with its kind, which structs do not hold."""
    version = KINDS[kind].api_version
    return f'{{"apiVersion":"{version}","kind":"{kind}",'.encode() + _encoder.encode(item)[1:]


def _time(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
