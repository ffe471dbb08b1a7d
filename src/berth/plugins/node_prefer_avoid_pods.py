"""NodePreferAvoidPodsPriority: does the node ask that the pods of the pod's controller go elsewhere?

Source: ``priorities/node_prefer_avoid_pods.go`` of 1.10, 1.13 and 1.17; ``GetAvoidPodsFromNodeAnnotations``.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from berth.cluster.arrays import ALL_ROWS, IntColumn, Rows
from berth.cluster.cluster import Cluster, Incoming
from berth.cluster.nodes import by_interned
from berth.framework.plugin import BatchKind, ScorePlugin

CONTROLLER_KINDS = ("ReplicationController", "ReplicaSet")
"""Pods of other controllers are welcome everywhere."""


class _AvoidStruct(msgspec.Struct, rename="lower"):
    """Go takes keys of either case, so they are compared in lower case."""


class _Controller(_AvoidStruct):
    api_version: str | None = msgspec.field(default=None, name="apiversion")
    kind: str | None = None
    name: str | None = None
    uid: str | None = None
    controller: bool | None = None


class _Signature(_AvoidStruct):
    pod_controller: _Controller | None = msgspec.field(default=None, name="podcontroller")


class _Entry(_AvoidStruct):
    pod_signature: _Signature | None = msgspec.field(default=None, name="podsignature")
    eviction_time: datetime | None = msgspec.field(default=None, name="evictiontime")
    reason: str | None = None
    message: str | None = None


class _AvoidPods(_AvoidStruct):
    prefer_avoid_pods: list[_Entry | None] | None = msgspec.field(default=None, name="preferavoidpods")


def controllers_avoided(annotation: str) -> frozenset[tuple[str, str]]:
    """Return kind and uid of the controllers that an annotation names; none if it can't be read.

    An entry without a controller names none. (The releases crash over it.)
    """
    if not annotation:
        return frozenset()
    try:
        avoided = msgspec.convert(_with_lower_keys(msgspec.json.decode(annotation)), _AvoidPods | None)
    except msgspec.DecodeError:
        return frozenset()
    entries = (avoided.prefer_avoid_pods if avoided else None) or []
    signatures = [entry.pod_signature for entry in entries if entry and entry.pod_signature]
    return frozenset(
        (s.pod_controller.kind or "", s.pod_controller.uid or "") for s in signatures if s.pod_controller
    )


@dataclass(frozen=True, slots=True)
class Avoidance:
    """The pod's controller as (kind, uid), None where no node avoids the pod."""

    cluster: Cluster
    controller: tuple[str, str] | None


@dataclass(frozen=True, slots=True)
class NodePreferAvoidPods(ScorePlugin[Avoidance]):
    """0 where the node's annotation names the pod's ReplicationController or ReplicaSet, else ``maximum``."""

    maximum: int

    name = "NodePreferAvoidPods"
    reads_pods = False

    def prepare(self, pod: Incoming, cluster: Cluster) -> Avoidance:
        owner = pod.controller
        known = owner is not None and owner.kind in CONTROLLER_KINDS
        return Avoidance(cluster, (owner.kind, owner.uid) if owner is not None and known else None)

    def score(self, state: Avoidance, rows: Rows = ALL_ROWS, placed: IntColumn | int = 0) -> IntColumn:
        nodes = state.cluster.nodes
        ids, texts = nodes.avoidance_id[rows], nodes.avoidances.items
        controller = state.controller
        if controller is None or not any(texts):
            return np.full(len(ids), self.maximum, dtype=np.int64)
        read = _read_once(state.cluster)
        return by_interned(ids, len(texts), lambda i: 0 if controller in read[i] else self.maximum)

    def batch(self, state: Avoidance, feasible: NDArray[np.bool_]) -> BatchKind:
        return BatchKind.CONSTANT


def _read_once(cluster: Cluster) -> list[frozenset[tuple[str, str]]]:
    """Return what each distinct annotation says; each is read once in the cluster's life."""
    read: list[frozenset[tuple[str, str]]] = cluster.derived.setdefault("NodePreferAvoidPods", [])
    read.extend(map(controllers_avoided, cluster.nodes.avoidances.items[len(read) :]))
    return read


def _with_lower_keys(value: Any) -> Any:
    if isinstance(value, dict):
        return {key.lower(): _with_lower_keys(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_with_lower_keys(item) for item in value]
    return value
