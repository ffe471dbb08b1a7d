"""What stands around pods and nodes: namespaces, services, budgets, priority classes, volumes."""

from .names import DAY, Json, metadata, uid
from .nodes import CSI_DRIVER, Machine
from .owners import CLAIM_CLASS, claim_spec
from .placing import Member
from .workloads import PRIORITY_CLASSES, SERVICES, ZONE

BUDGETS = {("shop", "web"): "80%", ("shop", "api"): "75%", ("data", "db"): 5, ("data", "queue"): 4}


def namespaces() -> list[Json]:
    return [
        {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": metadata("Namespace", name, labels={"kubernetes.io/metadata.name": name}),
            "spec": {"finalizers": ["kubernetes"]},
            "status": {"phase": "Active"},
        }
        for name in ("data", "default", "media", "platform", "shop")
    ]


def priority_classes() -> list[Json]:
    return [
        {
            "apiVersion": "scheduling.k8s.io/v1",
            "globalDefault": False,
            "kind": "PriorityClass",
            "metadata": metadata("PriorityClass", name),
            "preemptionPolicy": "PreemptLowerPriority",
            "value": value,
        }
        for name, value in PRIORITY_CLASSES.items()
    ]


def storage_classes() -> list[Json]:
    return [
        {
            "allowVolumeExpansion": True,
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": metadata("StorageClass", name, annotations=annotations),
            "provisioner": CSI_DRIVER,
            "reclaimPolicy": "Delete",
            "volumeBindingMode": mode,
        }
        for name, mode, annotations in (
            (CLAIM_CLASS, "WaitForFirstConsumer", {}),
            ("standard", "Immediate", {"storageclass.kubernetes.io/is-default-class": "true"}),
        )
    ]


def services() -> list[Json]:
    return [
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": metadata("Service", name, namespace, labels={"app": name}),
            "spec": ({"clusterIP": "None"} if headless else {})
            | {
                "internalTrafficPolicy": "Cluster",
                "ports": [{"name": "main", "port": port, "protocol": "TCP", "targetPort": port}],
                "selector": {"app": name},
                "sessionAffinity": "None",
                "type": "ClusterIP",
            },
            "status": {"loadBalancer": {}},
        }
        for namespace, name, port, headless in SERVICES
    ]


def budgets() -> list[Json]:
    return [
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": metadata("PodDisruptionBudget", name, namespace),
            "spec": {"minAvailable": available, "selector": {"matchLabels": {"app": name}}},
        }
        for (namespace, name), available in BUDGETS.items()
    ]


def claim_and_volume(member: Member, machine: Machine) -> tuple[Json, Json]:
    """A StatefulSet pod's claim and the volume that it is bound to, in the zone of the pod's node."""
    workload = member.workload
    name = f"data-{member.name}"
    volume = "pvc-" + uid("PersistentVolumeClaim", workload.namespace, name)
    shared = {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": workload.claim}}
    made = metadata("PersistentVolumeClaim", name, workload.namespace, age=30 * DAY,
                    labels=workload.pod_labels,
                    annotations={"pv.kubernetes.io/bind-completed": "yes",
                                 "volume.kubernetes.io/selected-node": machine.name,
                                 "volume.kubernetes.io/storage-provisioner": CSI_DRIVER})  # fmt: skip
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": made,
        "spec": claim_spec(workload) | {"volumeName": volume},
        "status": shared | {"phase": "Bound"},
    }
    reference = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "name": name}
    reference |= {"namespace": workload.namespace, "uid": made["uid"]}
    in_zone = {"key": ZONE, "operator": "In", "values": [machine.zone]}
    spec = shared | {
        "claimRef": reference,
        "csi": {"driver": CSI_DRIVER, "fsType": "ext4", "volumeHandle": volume},
        "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [in_zone]}]}},
        "persistentVolumeReclaimPolicy": "Delete",
        "storageClassName": CLAIM_CLASS,
        "volumeMode": "Filesystem",
    }
    bound = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": metadata("PersistentVolume", volume, age=30 * DAY),
        "spec": spec,
        "status": {"phase": "Bound"},
    }
    return claim, bound
