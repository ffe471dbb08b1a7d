"""A pod as the API server shows it: the template, what admission adds, and its status."""

import json

from .names import DAY, Json, ago, chance, digest, metadata, suffix
from .nodes import NOT_READY, NOT_READY_SINCE, Machine
from .placing import Member
from .workloads import PRIORITY_CLASSES

OLDER_IMAGES = {"shop/api:5.3.1": "shop/api:5.3.0", "shop/web:2.14.0": "shop/web:2.13.2"}

# The one pod without a node asks for more CPU than any node has.
NO_ROOM = (
    "0/50 nodes are available: 1 node(s) had untolerated taint {node.kubernetes.io/unreachable: }, "
    "1 node(s) were unschedulable, "
    "3 node(s) had untolerated taint {node-role.kubernetes.io/control-plane: }, "
    "31 Insufficient memory, 40 Insufficient cpu, 5 node(s) had untolerated taint {nvidia.com/gpu: present}."
)


def template_spec(member: Member) -> Json:
    """The template's spec; that of the ReplicaSet before differs in its image."""
    text = json.dumps(member.workload.spec)
    if not member.current:
        for image, older in OLDER_IMAGES.items():
            text = text.replace(image, older)
    made: Json = json.loads(text)
    return made


def pod(member: Member, machine: Machine | None, owners: list[Json]) -> Json:
    workload = member.workload
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata(
            "Pod",
            member.name,
            workload.namespace,
            age=member.age,
            labels=labels(member, owners),
            annotations=workload.annotations,
            generateName="" if workload.kind == "Pod" else member.name.rpartition("-")[0] + "-",
            ownerReferences=owners,
        ),
        "spec": bound_spec(member, machine),
        "status": status(member, machine),
    }


def labels(member: Member, owners: list[Json]) -> dict[str, str]:
    """The template's labels and those that the controller adds."""
    workload, revision = member.workload, member.revision
    added = {
        "Deployment": {"pod-template-hash": revision},
        "DaemonSet": {"controller-revision-hash": revision, "pod-template-generation": "3"},
        "StatefulSet": {
            "apps.kubernetes.io/pod-index": str(member.number),
            "controller-revision-hash": f"{workload.name}-{revision}",
            "statefulset.kubernetes.io/pod-name": member.name,
        },
    }
    if workload.kind == "Job":
        uid = owners[0]["uid"]
        return workload.pod_labels | {
            "batch.kubernetes.io/controller-uid": uid,
            "batch.kubernetes.io/job-name": workload.name,
        }
    return workload.pod_labels | added.get(workload.kind, {})


def bound_spec(member: Member, machine: Machine | None) -> Json:
    spec = template_spec(member)
    token = "kube-api-access-" + suffix(5, "token", member.name)
    mount = {
        "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount",
        "name": token,
        "readOnly": True,
    }
    for container in spec["containers"] + spec.get("initContainers", []):
        container["volumeMounts"] = [*container.get("volumeMounts", []), mount]
    volumes = []
    if member.workload.claim:
        volumes.append({"name": "data", "persistentVolumeClaim": {"claimName": f"data-{member.name}"}})
        spec |= {"hostname": member.name, "subdomain": member.workload.name}
    spec["volumes"] = [*volumes, token_volume(token)]
    spec["tolerations"] = [*spec.get("tolerations", []), *admitted_tolerations(member)]
    if member.workload.kind == "DaemonSet" and machine:
        own = {"key": "metadata.name", "operator": "In", "values": [machine.name]}
        terms = [{"matchFields": [own]}]
        here = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
        spec["affinity"] = {"nodeAffinity": here}
    spec |= {
        "enableServiceLinks": True,
        "preemptionPolicy": "PreemptLowerPriority",
        "priority": PRIORITY_CLASSES.get(spec.get("priorityClassName", ""), 0),
        "serviceAccountName": "default",
    }
    return spec | ({"nodeName": machine.name} if machine else {})


def token_volume(name: str) -> Json:
    sources: list[Json] = [
        {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
        {"configMap": {"items": [{"key": "ca.crt", "path": "ca.crt"}], "name": "kube-root-ca.crt"}},
    ]
    return {"name": name, "projected": {"defaultMode": 420, "sources": sources}}


def admitted_tolerations(member: Member) -> list[Json]:
    """Everyone stays five minutes on a lost node; a DaemonSet's pods stay for good."""
    if member.workload.kind == "DaemonSet":
        return []
    return [
        {
            "effect": "NoExecute",
            "key": f"node.kubernetes.io/{trouble}",
            "operator": "Exists",
            "tolerationSeconds": 300,
        }
        for trouble in ("not-ready", "unreachable")
    ]


def status(member: Member, machine: Machine | None) -> Json:
    if machine is None:
        unscheduled = condition("PodScheduled", "False", member.age, "Unschedulable", NO_ROOM)
        return {"conditions": [unscheduled], "phase": "Pending", "qosClass": "Burstable"}
    lost = machine.name == NOT_READY
    if lost:
        ready = condition("Ready", "False", NOT_READY_SINCE - 1, "NodeNotReady")
    elif member.trouble == "done":
        ready = condition("Ready", "False", member.age - 6, "PodCompleted")
    elif member.trouble:
        ready = condition("Ready", "False", min(member.age, 3), "ContainersNotReady")
    else:
        ready = condition("Ready", "True", ready_age(member))
    phase = {"done": "Succeeded", "creating": "Pending", "no image": "Pending"}
    conditions = [
        condition(
            "Initialized", "True", member.age - 0.1, "PodCompleted" if member.trouble == "done" else ""
        ),
        ready,
        ready | {"type": "ContainersReady"},
        condition("PodScheduled", "True", member.age),
    ]
    return {
        "conditions": conditions,
        "containerStatuses": [container_status(member, c) for c in template_spec(member)["containers"]],
        "phase": phase.get(member.trouble, "Running"),
        "qosClass": "Burstable",
        "startTime": ago(member.age),
    }


def ready_age(member: Member) -> float:
    """Minutes since the pod became ready: most soon after they came, a few anew later."""
    drawn = chance("ready", member.workload.namespace, member.name)
    return member.age * 0.6 * drawn if restarts(member) else member.age - 0.3 - drawn


def restarts(member: Member) -> int:
    if member.trouble:
        return 7 + member.number if member.trouble == "crashing" else 0
    unlucky = member.age > DAY and chance("restart", member.workload.namespace, member.name) > 0.93
    return 1 + member.number % 3 if unlucky else 0


def condition(kind: str, status: str, age: float, reason: str = "", message: str = "") -> Json:
    made = {"lastProbeTime": None, "lastTransitionTime": ago(age), "status": status, "type": kind}
    return made | ({"reason": reason} if reason else {}) | ({"message": message} if message else {})


def container_status(member: Member, container: Json) -> Json:
    image = container["image"]
    made = {"image": image, "imageID": "", "name": container["name"], "ready": False}
    made |= {"restartCount": restarts(member), "started": False, "state": {}}
    waiting = {
        "creating": "ContainerCreating",
        "no image": "ImagePullBackOff",
        "crashing": "CrashLoopBackOff",
    }
    if member.trouble not in {"creating", "no image"}:
        made["containerID"] = "containerd://" + digest("container", member.name, container["name"]).hex()
        made["imageID"] = "sha256:" + digest("image", image).hex()
    if member.trouble in waiting:
        made["state"] = {"waiting": {"reason": waiting[member.trouble]}}
    elif member.trouble == "done":
        times = {"finishedAt": ago(member.age - 6), "startedAt": ago(member.age - 0.2)}
        made["state"] = {"terminated": {"exitCode": 0, "reason": "Completed"} | times}
    else:
        started = ready_age(member) + 0.2
        made |= {"ready": True, "started": True, "state": {"running": {"startedAt": ago(started)}}}
    return made
