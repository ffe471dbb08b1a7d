"""The nodes: five pools in three zones."""

from dataclasses import dataclass, field

from .names import DAY, HOUR, Json, ago, chance, metadata, uid

REGION = "north-1"
ZONES = ("north-1a", "north-1b", "north-1c")
CORDONED = "general-b-8"
NOT_READY = "general-c-8"
CSI_DRIVER = "disk.csi.example.com"
CORDONED_SINCE = 3 * HOUR
NOT_READY_SINCE = 26 * HOUR
KUBELET = "v1.33.4"


@dataclass(frozen=True)
class Pool:
    name: str
    instance: str
    per_zone: tuple[int, int, int]
    cpu: int
    memory_gib: int
    gpus: int = 0
    taint: Json = field(default_factory=dict)


POOLS = (
    Pool("control", "c4.large", (1, 1, 1), 4, 16,
         taint={"effect": "NoSchedule", "key": "node-role.kubernetes.io/control-plane"}),
    Pool("general", "g8.large", (8, 8, 8), 8, 16),
    Pool("memory", "m16.huge", (3, 3, 3), 16, 128),
    Pool("gpu", "a16.accel", (2, 2, 1), 16, 64, gpus=2,
         taint={"effect": "NoSchedule", "key": "nvidia.com/gpu", "value": "present"}),
    Pool("spot", "s8.large", (3, 3, 3), 8, 16,
         taint={"effect": "PreferNoSchedule", "key": "example.com/spot", "value": "true"}),
)  # fmt: skip


@dataclass(frozen=True)
class Machine:
    """A node as placement sees it. [milli-CPU, bytes, GPUs]"""

    name: str
    zone: str
    pool: Pool

    @property
    def milli_cpu(self) -> int:
        return self.pool.cpu * 1000 - 180

    @property
    def memory(self) -> int:
        """What is left of the memory when the system has its share: 1.5 GiB."""
        return (self.pool.memory_gib * 1024 - 1536) * 2**20


def machines() -> list[Machine]:
    return [
        Machine(f"{pool.name}-{zone[-1]}-{number + 1}", zone, pool)
        for pool in POOLS
        for zone, count in zip(ZONES, pool.per_zone, strict=True)
        for number in range(count)
    ]


def node(machine: Machine, images: list[Json]) -> Json:
    age = (30 + 60 * chance("node age", machine.name)) * DAY
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": metadata(
            "Node",
            machine.name,
            age=age,
            labels=labels(machine),
            annotations={"volumes.kubernetes.io/controller-managed-attach-detach": "true"},
        ),
        "spec": spec(machine),
        "status": {
            "addresses": [{"address": machine.name, "type": "Hostname"}],
            **amounts(machine),
            "conditions": conditions(machine, age),
            "images": images,
            "nodeInfo": node_info(machine),
        },
    }


def labels(machine: Machine) -> Json:
    made = {
        "beta.kubernetes.io/arch": "amd64",
        "beta.kubernetes.io/os": "linux",
        "example.com/pool": machine.pool.name,
        "failure-domain.beta.kubernetes.io/region": REGION,
        "failure-domain.beta.kubernetes.io/zone": machine.zone,
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/hostname": machine.name,
        "kubernetes.io/os": "linux",
        "node.kubernetes.io/instance-type": machine.pool.instance,
        "topology.kubernetes.io/region": REGION,
        "topology.kubernetes.io/zone": machine.zone,
    }
    if machine.pool.name == "control":
        made["node-role.kubernetes.io/control-plane"] = ""
    if machine.pool.gpus:
        made["nvidia.com/gpu.present"] = "true"
    return made


def spec(machine: Machine) -> Json:
    made: Json = {"providerID": f"example:///{machine.zone}/{machine.name}"}
    taints = [machine.pool.taint] if machine.pool.taint else []
    if machine.name == CORDONED:
        made["unschedulable"] = True
        taints.append(since(CORDONED_SINCE, "NoSchedule", "node.kubernetes.io/unschedulable"))
    if machine.name == NOT_READY:
        taints.append(since(NOT_READY_SINCE, "NoSchedule", "node.kubernetes.io/unreachable"))
        taints.append(since(NOT_READY_SINCE, "NoExecute", "node.kubernetes.io/unreachable"))
    return made | ({"taints": taints} if taints else {})


def since(minutes: float, effect: str, key: str) -> Json:
    return {"effect": effect, "key": key, "timeAdded": ago(minutes)}


def amounts(machine: Machine) -> Json:
    pool = machine.pool
    capacity = {
        "cpu": str(pool.cpu),
        "ephemeral-storage": "101430960Ki",
        "hugepages-1Gi": "0",
        "hugepages-2Mi": "0",
        "memory": f"{pool.memory_gib * 2**20}Ki",
        "pods": "110",
    }
    allocatable = capacity | {
        "cpu": f"{machine.milli_cpu}m",
        "ephemeral-storage": "93478772582",
        "memory": f"{machine.memory // 1024}Ki",
    }
    gpus = {"nvidia.com/gpu": str(pool.gpus)} if pool.gpus else {}
    return {"allocatable": allocatable | gpus, "capacity": capacity | gpus}


def conditions(machine: Machine, age: float) -> list[Json]:
    lost = machine.name == NOT_READY
    texts = (
        ("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
        ("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
        ("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
        ("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
    )
    return [
        {
            "lastHeartbeatTime": ago(NOT_READY_SINCE if lost else 2),
            "lastTransitionTime": ago(NOT_READY_SINCE - 1 if lost else age - 1),
            "message": "Kubelet stopped posting node status." if lost else message,
            "reason": "NodeStatusUnknown" if lost else reason,
            "status": "Unknown" if lost else status,
            "type": kind,
        }
        for kind, status, reason, message in texts
    ]


def node_info(machine: Machine) -> Json:
    return {
        "architecture": "amd64",
        "bootID": uid("boot", machine.name),
        "containerRuntimeVersion": "containerd://2.1.4",
        "kernelVersion": "6.12.41",
        "kubeProxyVersion": KUBELET,
        "kubeletVersion": KUBELET,
        "machineID": uid("machine", machine.name).replace("-", ""),
        "operatingSystem": "linux",
        "osImage": "Example Linux 12",
        "systemUUID": uid("system", machine.name),
    }


def csi_node(machine: Machine) -> Json:
    driver = {
        "allocatable": {"count": 24},
        "name": CSI_DRIVER,
        "nodeID": machine.name,
        "topologyKeys": ["topology.kubernetes.io/zone"],
    }
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSINode",
        "metadata": metadata("CSINode", machine.name, age=30 * DAY),
        "spec": {"drivers": [driver]},
    }
