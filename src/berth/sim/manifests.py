"""Kubernetes objects of a made-up cluster, with no more in them than scheduling reads."""

import hashlib
from typing import Any, NamedTuple

from berth.sim.recipe import HOSTNAME, MAX_PODS_PER_NODE, POOL, ZONE, JsonObject, NodePlan, Shape

REGION = "region-1"
MADE = "2025-09-01T00:00:00Z"
TAINT = {"effect": "NoSchedule", "key": "example.com/dedicated", "value": "batch"}


class PodNames(NamedTuple):
    """What is a pod's own, where all else is its shape's. ``node`` is empty when it has none."""

    ending: str
    uid: str
    token: str
    digest: str
    address: str
    created: str
    ready: str
    node: str


def uid(kind: str, name: str) -> str:
    """Return a uid that hangs on kind and name alone."""
    drawn = hashlib.sha256(f"{kind}/{name}".encode()).hexdigest()
    return f"{drawn[:8]}-{drawn[8:12]}-4{drawn[13:16]}-a{drawn[17:20]}-{drawn[20:32]}"


def revision(shape: Shape) -> str:
    """The pod-template-hash."""
    return hashlib.sha256(shape.app.encode()).hexdigest()[:10]


def metadata(kind: str, name: str, namespace: str = "", **more: Any) -> JsonObject:
    """Return metadata with a name, a uid and a time."""
    made = {"creationTimestamp": MADE, "name": name, "uid": uid(kind, f"{namespace}/{name}")}
    return made | ({"namespace": namespace} if namespace else {}) | more


def owned_by(kind: str, name: str, namespace: str) -> list[JsonObject]:
    """Return the owner references of what a controller made."""
    owner = uid(kind, f"{namespace}/{name}")
    return [{"apiVersion": "apps/v1", "controller": True, "kind": kind, "name": name, "uid": owner}]


def node_object(node: NodePlan) -> JsonObject:
    """Return a node."""
    labels = {
        "failure-domain.beta.kubernetes.io/region": REGION,
        "failure-domain.beta.kubernetes.io/zone": node.zone,
        HOSTNAME: node.name,
        POOL: node.pool,
        "topology.kubernetes.io/region": REGION,
        ZONE: node.zone,
    }
    capacity = {"cpu": str(node.cpu), "memory": f"{node.memory_gib}Gi", "pods": str(MAX_PODS_PER_NODE)}
    capacity["ephemeral-storage"] = "200Gi"
    room = {"cpu": f"{node.cpu * 1000 - 200}m", "memory": f"{(node.memory_gib - 2) * 2**20}Ki"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": metadata("Node", node.name, labels=labels),
        "spec": {"taints": [TAINT]} if node.pool == "batch" else {},
        "status": {
            "allocatable": capacity | room,
            "capacity": capacity,
            "conditions": [{"lastTransitionTime": MADE, "status": "True", "type": "Ready"}],
        },
    }


def workload_objects(shape: Shape) -> list[JsonObject]:
    """Make a shape's service, Deployment and ReplicaSet."""
    app, namespace = shape.app, shape.namespace
    labels = {"app": app}
    hashed = labels | {"pod-template-hash": revision(shape)}
    parent = {"ownerReferences": owned_by("Deployment", app, namespace)}
    replica_set = f"{app}-{revision(shape)}"
    return [
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": metadata("Service", app, namespace, labels=labels),
            "spec": {"ports": [{"port": 80, "protocol": "TCP", "targetPort": 8080}], "selector": labels},
        },
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": metadata("Deployment", app, namespace, labels=labels),
            "spec": _replicated(shape, labels),
            "status": {"replicas": shape.n_pods},
        },
        {
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "metadata": metadata("ReplicaSet", replica_set, namespace, labels=hashed, **parent),
            "spec": _replicated(shape, hashed),
            "status": {"replicas": shape.n_pods},
        },
    ]


def _replicated(shape: Shape, labels: JsonObject) -> JsonObject:
    template = {"metadata": {"labels": labels}, "spec": pod_spec(shape)}
    return {"replicas": shape.n_pods, "selector": {"matchLabels": labels}, "template": template}


def pod_spec(shape: Shape) -> JsonObject:
    """Return the spec that all pods of a shape share."""
    requests = {"cpu": f"{shape.milli_cpu}m", "memory": f"{shape.memory_mib}Mi"}
    container = {"image": f"example/{shape.app}:1.0.{shape.number}", "name": "main"}
    made: JsonObject = {
        "containers": [container | {"resources": {"requests": requests}}],
        "priority": shape.priority,
        "schedulerName": "default-scheduler",
    }
    if shape.pool:
        made["nodeSelector"] = {POOL: shape.pool}
    if shape.tolerates_batch:
        made["tolerations"] = [TAINT | {"operator": "Equal"}]
    if shape.affinity:
        made["affinity"] = shape.affinity
    return made


def pod_object(shape: Shape, names: PodNames) -> JsonObject:
    """Return a pod of a shape."""
    replica_set = f"{shape.app}-{revision(shape)}"
    made: JsonObject = {
        "creationTimestamp": names.created,
        "generateName": f"{replica_set}-",
        "labels": {"app": shape.app, "pod-template-hash": revision(shape)},
        "name": f"{replica_set}-{names.ending}",
        "namespace": shape.namespace,
        "ownerReferences": owned_by("ReplicaSet", replica_set, shape.namespace),
        "uid": names.uid,
    }
    if not names.node:
        waiting = {"lastTransitionTime": names.created, "reason": "Unschedulable", "status": "False"}
        status: JsonObject = {"conditions": [waiting | {"type": "PodScheduled"}], "phase": "Pending"}
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": made,
            "spec": pod_spec(shape),
            "status": status,
        }
    ready = {"lastTransitionTime": names.ready, "status": "True", "type": "Ready"}
    status = {"conditions": [ready], "phase": "Running", "startTime": names.created}
    spec = pod_spec(shape) | {"nodeName": names.node}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": made, "spec": spec, "status": status}
