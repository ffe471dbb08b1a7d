"""Worlds in a line for the old releases: nodes and pods as JSON, and what `berth answer` says of them."""

from typing import Any

import msgspec

from berth.releases import RELEASES
from berth.sources.cases import answer_case

Json = dict[str, Any]

HOSTNAME = "kubernetes.io/hostname"
ZONE = "failure-domain.beta.kubernetes.io/zone"
AVOID = "scheduler.alpha.kubernetes.io/preferAvoidPods"


def a_node(name: str, *, labels: dict[str, str] | None = None, cpu: str = "4", **more: Any) -> Json:
    """A node that is ready; keywords are of ``status`` (conditions, images), ``spec`` (taints, unschedulable), or
    ``annotations``."""
    spec = {key: more.pop(key) for key in ("taints", "unschedulable") if key in more}
    annotations = more.pop("annotations", {})
    allocatable = {"cpu": cpu, "memory": "8Gi", "pods": "10", "ephemeral-storage": "20Gi"}
    return {
        "metadata": {"name": name, "labels": {HOSTNAME: name} | (labels or {}), "annotations": annotations},
        "spec": spec,
        "status": {"allocatable": allocatable | more.pop("allocatable", {}), **more},
    }


def a_pod(name: str = "p", node: str = "", *, app: str = "web", **more: Any) -> Json:
    """A pod of one container; ``requests``, ``limits``, ``image``, ``ports`` are the container's, ``owner`` is (kind, uid),
    all else the spec's."""
    resources = {key: more.pop(key) for key in ("requests", "limits") if key in more}
    container = {
        "name": "c",
        "image": more.pop("image", ""),
        "ports": more.pop("ports", []),
        "resources": resources,
    }
    owner = more.pop("owner", None)
    owners = [{"kind": owner[0], "name": "x", "uid": owner[1], "controller": True}] if owner else []
    return {
        "metadata": {"name": name, "namespace": "default", "labels": {"app": app}, "ownerReferences": owners},
        "spec": {"containers": [container], **({"nodeName": node} if node else {}), **more},
    }


def ask(release: str, pod: Json, nodes: list[Json], pods: list[Json] | None = None, **more: Any) -> Json:
    """Answer a case."""
    case = {"id": "x", "pod": pod, "nodes": nodes, "pods": pods or [], **more}
    return answer_case(msgspec.json.encode(case), RELEASES[release])
