"""Workload objects: what owns the pods, with templates, selectors, and counts taken from the pods."""

from collections.abc import Iterable
from dataclasses import dataclass

from .names import HOUR, Json, metadata, owned_by
from .placing import Member
from .pods import template_spec
from .workloads import Workload

API_VERSIONS = {
    "Deployment": "apps/v1", "ReplicaSet": "apps/v1", "StatefulSet": "apps/v1", "DaemonSet": "apps/v1",
    "ReplicationController": "v1", "Job": "batch/v1",
}  # fmt: skip
CLAIM_CLASS = "fast-ssd"


@dataclass(frozen=True)
class Count:
    """How many pods an owner has, and how many of them are ready."""

    total: int
    ready: int

    @classmethod
    def of(cls, pods: Iterable[Json]) -> "Count":
        listed = list(pods)
        return cls(len(listed), sum(is_ready(pod) for pod in listed))

    def status(self) -> Json:
        return {"availableReplicas": self.ready, "readyReplicas": self.ready, "replicas": self.total}


def is_ready(pod: Json) -> bool:
    found = {c["type"]: c["status"] for c in pod["status"]["conditions"]}
    return found.get("Ready") == "True"


def template(member: Member, more_labels: Json | None = None) -> Json:
    labels = member.workload.pod_labels | (more_labels or {})
    return {"metadata": {"labels": labels}, "spec": template_spec(member)}


def owner_name(member: Member) -> tuple[str, str]:
    """The kind and name of what controls a pod; empty for a bare one."""
    workload = member.workload
    if workload.kind == "Deployment":
        return "ReplicaSet", f"{workload.name}-{member.revision}"
    return ("", "") if workload.kind == "Pod" else (workload.kind, workload.name)


def owner_references(member: Member) -> list[Json]:
    kind, name = owner_name(member)
    if not kind:
        return []
    owner = {"kind": kind, "metadata": metadata(kind, name, member.workload.namespace)}
    return owned_by(API_VERSIONS[kind], owner)


def owners(workload: Workload, pods: list[Json]) -> list[Json]:
    """The objects that own a workload's pods: two or three for a Deployment, none for a bare pod."""
    if workload.kind == "Pod":
        return []
    if workload.kind == "Deployment":
        return [deployment(workload, pods), *replica_sets(workload, pods)]
    make = {"DaemonSet": daemon_set, "StatefulSet": stateful_set, "Job": job}.get(workload.kind, replication)
    return [make(workload, pods)]


def shell(workload: Workload, spec: Json, status: Json) -> Json:
    """An object of the workload's own name."""
    made = metadata(workload.kind, workload.name, workload.namespace, age=workload.age,
                    generation=3, labels={"app": workload.pod_labels["app"]})  # fmt: skip
    observed = {} if workload.kind == "Job" else {"observedGeneration": 3}
    return {
        "apiVersion": API_VERSIONS[workload.kind],
        "kind": workload.kind,
        "metadata": made,
        "spec": spec,
        "status": observed | status,
    }


def selector(workload: Workload, **more: str) -> Json:
    return {"matchLabels": workload.pod_labels | more}


def deployment(workload: Workload, pods: list[Json]) -> Json:
    rolling = {"maxSurge": "25%", "maxUnavailable": "25%"}
    spec = {
        "progressDeadlineSeconds": 600,
        "replicas": workload.replicas,
        "revisionHistoryLimit": 2,
        "selector": selector(workload),
        "strategy": {"rollingUpdate": rolling, "type": "RollingUpdate"},
        "template": template(Member(workload, 0)),
    }
    status = Count.of(pods).status() | {"updatedReplicas": workload.replicas - (workload.older or 0)}
    made = shell(workload, spec, status)
    made["metadata"]["annotations"] = {"deployment.kubernetes.io/revision": revision_number(workload, True)}
    return made


def revision_number(workload: Workload, current: bool) -> str:
    return "1" if workload.older is None or not current else "2"


def replica_sets(workload: Workload, pods: list[Json]) -> list[Json]:
    made = [replica_set(workload, pods, current=True)]
    if workload.older is not None:
        made.append(replica_set(workload, pods, current=False))
    return made


def replica_set(workload: Workload, pods: list[Json], current: bool) -> Json:
    member = Member(workload, 0, current)
    kind, name = owner_name(member)
    own = Count.of(p for p in pods if p["metadata"]["labels"]["pod-template-hash"] == member.revision)
    parent = {"kind": "Deployment", "metadata": metadata("Deployment", workload.name, workload.namespace)}
    young = current and workload.older is not None
    labels = workload.pod_labels | {"pod-template-hash": member.revision}
    made = metadata(
        kind, name, workload.namespace, age=min(workload.age, 6 * HOUR) if young else workload.age,
        annotations={"deployment.kubernetes.io/desired-replicas": str(workload.replicas),
                     "deployment.kubernetes.io/revision": revision_number(workload, current)},
        generation=2, labels=labels, ownerReferences=owned_by("apps/v1", parent),
    )  # fmt: skip
    spec = {
        "replicas": own.total,
        "selector": {"matchLabels": labels},
        "template": template(member, {"pod-template-hash": member.revision}),
    }
    status = own.status() | {"fullyLabeledReplicas": own.total, "observedGeneration": 2}
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": made, "spec": spec, "status": status}


def stateful_set(workload: Workload, pods: list[Json]) -> Json:
    revision = f"{workload.name}-{Member(workload, 0).revision}"
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data"},
        "spec": claim_spec(workload),
    }
    made = template(Member(workload, 0))
    spec = {
        "podManagementPolicy": "OrderedReady",
        "replicas": workload.replicas,
        "selector": selector(workload),
        "serviceName": workload.name,
        "template": made,
        "updateStrategy": {"rollingUpdate": {"partition": 0}, "type": "RollingUpdate"},
        "volumeClaimTemplates": [claim],
    }
    status = {"currentRevision": revision, "updateRevision": revision}
    return shell(workload, spec, Count.of(pods).status() | status)


def claim_spec(workload: Workload) -> Json:
    return {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": workload.claim}},
        "storageClassName": CLAIM_CLASS,
        "volumeMode": "Filesystem",
    }


def daemon_set(workload: Workload, pods: list[Json]) -> Json:
    count = Count.of(pods)
    spec = {
        "selector": selector(workload),
        "template": template(Member(workload, 0)),
        "updateStrategy": {"rollingUpdate": {"maxUnavailable": 1}, "type": "RollingUpdate"},
    }
    status = {
        "currentNumberScheduled": count.total,
        "desiredNumberScheduled": count.total,
        "numberAvailable": count.ready,
        "numberMisscheduled": 0,
        "numberReady": count.ready,
        "numberUnavailable": count.total - count.ready,
        "updatedNumberScheduled": count.total,
    }
    return shell(workload, spec, status)


def replication(workload: Workload, pods: list[Json]) -> Json:
    count = Count.of(pods)
    spec = {
        "replicas": workload.replicas,
        "selector": workload.pod_labels,
        "template": template(Member(workload, 0)),
    }
    return shell(workload, spec, count.status() | {"fullyLabeledReplicas": count.total})


def job(workload: Workload, pods: list[Json]) -> Json:
    uid = metadata("Job", workload.name, workload.namespace)["uid"]
    label = {"batch.kubernetes.io/controller-uid": uid}
    done = pods[0]["status"]["containerStatuses"][0]["state"]["terminated"]["finishedAt"]
    complete = {"lastProbeTime": done, "lastTransitionTime": done, "status": "True", "type": "Complete"}
    spec = {
        "backoffLimit": 6,
        "completions": 1,
        "parallelism": 1,
        "selector": {"matchLabels": label},
        "template": template(Member(workload, 0), label),
    }
    return shell(workload, spec, {"completionTime": done, "conditions": [complete], "succeeded": 1})
