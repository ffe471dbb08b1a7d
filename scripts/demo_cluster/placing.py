"""Which pods there are, and which node each already has. A small scheduler of its own, without berth."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from .names import DAY, HOUR, Json, chance, suffix
from .nodes import CORDONED, CORDONED_SINCE, NOT_READY, Machine
from .workloads import Workload

UNITS = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30}
# No node is filled further than this: rounds in the demo should find room.
FILL = 0.88
MINUTES_SINCE_ROLLOUT = 40

# Pods that are not simply Running and Ready, by workload and number.
TROUBLES = {
    ("web", 7): "creating",
    ("thumbs", 11): "no image",
    ("api", 3): "crashing",
    ("api", 17): "crashing",
    ("reindex-all", 0): "no room",
    ("nightly-report", 0): "done",
}
YOUNG = {"creating": 1, "no image": 12}


@dataclass(frozen=True)
class Member:
    """One pod of a workload. ``current`` is false for those of the ReplicaSet before."""

    workload: Workload
    number: int
    current: bool = True

    @property
    def trouble(self) -> str:
        return TROUBLES.get((self.workload.name, self.number), "")

    @property
    def revision(self) -> str:
        return suffix(10, "revision", self.workload.namespace, self.workload.name, self.current)

    @property
    def name(self) -> str:
        workload = self.workload
        ending = suffix(5, "pod", workload.namespace, workload.name, self.number)
        if workload.kind == "Pod":
            return workload.name
        if workload.kind == "StatefulSet":
            return f"{workload.name}-{self.number}"
        if workload.kind == "Deployment":
            return f"{workload.name}-{self.revision}-{ending}"
        return f"{workload.name}-{ending}"

    @property
    def age(self) -> float:
        """Minutes since the pod was created."""
        drawn = chance("pod age", self.workload.namespace, self.workload.name, self.number)
        if self.trouble in YOUNG:
            return YOUNG[self.trouble] + drawn
        if self.workload.kind in ("Pod", "Job"):
            return self.workload.age
        if self.workload.older and self.current:
            return 5 + drawn * (MINUTES_SINCE_ROLLOUT - 5)
        return min(self.workload.age * 0.95, 4 * HOUR + drawn * 20 * DAY)


def members(workload: Workload) -> list[Member]:
    older = workload.older or 0
    return [Member(workload, n, current=n < workload.replicas - older) for n in range(workload.replicas)]


def amount(text: str) -> float:
    for unit, factor in UNITS.items():
        if text.endswith(unit):
            return float(text.removesuffix(unit)) * factor
    return float(text[:-1]) / 1000 if text.endswith("m") else float(text)


def requests(spec: Json) -> dict[str, float]:
    """A pod's requests: the sum over its containers, or the largest init container if that is more."""
    total: dict[str, float] = defaultdict(float)
    for container in spec["containers"]:
        for name, text in container["resources"]["requests"].items():
            total[name] += amount(text)
    for container in spec.get("initContainers", []):
        for name, text in container["resources"]["requests"].items():
            total[name] = max(total[name], amount(text))
    return total


class Placement:
    """Fills the nodes, unevenly, as clusters are."""

    def __init__(self, machines: Iterable[Machine]) -> None:
        self.machines = list(machines)
        self.room = {
            machine.name: {
                "cpu": machine.milli_cpu / 1000 * FILL,
                "memory": machine.memory * FILL,
                "nvidia.com/gpu": float(machine.pool.gpus),
            }
            for machine in self.machines
        }
        self.used: dict[str, dict[str, float]] = {name: defaultdict(float) for name in self.room}
        self.apps: dict[str, dict[str, int]] = {name: defaultdict(int) for name in self.room}

    def place(self, member: Member) -> Machine | None:
        """The node that a pod has, or none if it asks too much for every node."""
        wanted = requests(member.workload.spec)
        for pool in member.workload.pools:
            fitting = [m for m in self.machines if m.pool.name == pool and self.fits(m, member, wanted)]
            if fitting:
                best = max(fitting, key=lambda machine: self.liking(machine, member))
                for name, value in wanted.items():
                    self.used[best.name][name] += value
                self.apps[best.name][member.workload.name] += 1
                return best
        return None

    def fits(self, machine: Machine, member: Member, wanted: dict[str, float]) -> bool:
        on_every_node = member.workload.kind == "DaemonSet"
        if machine.name == NOT_READY and not on_every_node:
            return False
        if machine.name == CORDONED and member.age < CORDONED_SINCE:
            return False
        if member.workload.alone and self.apps[machine.name][member.workload.name]:
            return False
        room, used = self.room[machine.name], self.used[machine.name]
        return all(used[name] + value <= room[name] for name, value in wanted.items())

    def liking(self, machine: Machine, member: Member) -> float:
        """Emptier is better, and so is a node with fewer pods of the same app; the rest is chance."""
        room, used = self.room[machine.name], self.used[machine.name]
        fill = max(used[name] / room[name] for name in ("cpu", "memory"))
        apps = self.apps[machine.name]
        near = 0.05 * apps[member.workload.near] if member.workload.near else 0.0
        bias = 0.35 * chance("bias", machine.name) + 0.1 * chance("liking", machine.name, member.name)
        return bias + near - fill - 0.06 * apps[member.workload.name]
