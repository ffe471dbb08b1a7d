"""A cluster of two nodes as objects, to be written into files."""

import json
from pathlib import Path
from typing import Any

Json = dict[str, Any]


def an_object(kind: str, name: str, api_version: str = "v1", **rest: Any) -> Json:
    metadata = {"name": name, **rest.pop("metadata", {})}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **rest}


def a_node(name: str, cpu: str = "4", memory: str = "8Gi") -> Json:
    resources = {"cpu": cpu, "memory": memory, "pods": "110"}
    status = {
        "allocatable": resources,
        "capacity": resources,
        "conditions": [{"type": "Ready", "status": "True"}],
    }
    return an_object("Node", name, status=status)


def a_spec(cpu: str) -> Json:
    return {"containers": [{"name": "main", "resources": {"requests": {"cpu": cpu, "memory": "256Mi"}}}]}


def a_pod(name: str, app: str, node: str, cpu: str = "500m", owner: tuple[str, str] | None = None) -> Json:
    metadata: Json = {
        "namespace": "shop",
        "labels": {"app": app},
        "creationTimestamp": "2026-01-01T00:00:00Z",
    }
    if owner:
        kind, owner_name = owner
        metadata["ownerReferences"] = [
            {"apiVersion": "apps/v1", "kind": kind, "name": owner_name, "uid": owner_name, "controller": True}
        ]
    spec = a_spec(cpu) | {"nodeName": node}
    return an_object("Pod", name, metadata=metadata, spec=spec, status={"phase": "Running"})


def a_service(app: str) -> Json:
    return an_object("Service", app, metadata={"namespace": "shop"}, spec={"selector": {"app": app}})


def a_replica_set(app: str, replicas: int, cpu: str = "500m") -> Json:
    labels = {"app": app}
    spec = {
        "replicas": replicas,
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": a_spec(cpu)},
    }
    return an_object("ReplicaSet", app, "apps/v1", metadata={"namespace": "shop", "uid": app}, spec=spec)


def a_shop() -> list[Json]:
    return [
        a_node("n1"),
        a_node("n2", cpu="2"),
        *(a_service(app) for app in ("web", "api", "agent")),
        a_replica_set("web", 2),
        a_replica_set("api", 1, cpu="1"),
        a_pod("web-1", "web", "n1", owner=("ReplicaSet", "web")),
        a_pod("web-2", "web", "n2", owner=("ReplicaSet", "web")),
        a_pod("api-1", "api", "n1", cpu="1", owner=("ReplicaSet", "api")),
        a_pod("agent-1", "agent", "n1", cpu="100m", owner=("DaemonSet", "agent")),
    ]


def write_list(path: Path, items: list[Json]) -> Path:
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    return path
