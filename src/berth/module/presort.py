"""The order of a round: removals before additions, within each the larger relative size first.

The size of a single-pod operation is its pod's use of the resource that its service is hungry for, over the summed use of
all operations of the round that have the same operation and intensity. Exact fractions: no two sizes compare wrongly.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from berth.cluster.accounting import BASE_RESOURCES, CPU, MEMORY
from berth.cluster.cluster import Cluster
from berth.errors import BerthError
from berth.module.changes import Change
from berth.module.loads import ServiceName
from berth.module.profile import Intensity, ServiceProfile
from berth.module.services import find_service, members, resolve_workload
from berth.module.templates import incoming_of, newest_pod, pattern_of

_CPU_ID, _MEMORY_ID = BASE_RESOURCES.index(CPU), BASE_RESOURCES.index(MEMORY)


@dataclass(frozen=True, slots=True)
class PodSize:
    """What one pod of a service uses, and which resource it is hungry for."""

    intensity: Intensity
    milli_cpu: int
    memory_bytes: int

    @property
    def amount(self) -> int:
        """The use of the resource that counts."""
        return self.milli_cpu if self.intensity is Intensity.CPU else self.memory_bytes


def presort(
    cluster: Cluster, changes: Sequence[Change], profiles: Mapping[ServiceName, ServiceProfile]
) -> list[Change]:
    """Return the changes in the order in which they are decided; equal ones stay in the order of arrival."""
    sizes = [pod_size(cluster, change, profiles) for change in changes]
    sums: dict[tuple[str, Intensity], int] = {}
    for change, size in zip(changes, sizes, strict=True):
        group = change.operation, size.intensity
        sums[group] = sums.get(group, 0) + change.number * size.amount

    def relative(i: int) -> Fraction:
        total = sums[changes[i].operation, sizes[i].intensity]
        return Fraction(sizes[i].amount, total) if total else Fraction(0)

    order = sorted(range(len(changes)), key=lambda i: (changes[i].operation != "remove", -relative(i)))
    return [changes[i] for i in order]


def pod_size(cluster: Cluster, change: Change, profiles: Mapping[ServiceName, ServiceProfile]) -> PodSize:
    """Return the size of one pod of a change's service: of its profile, and where that is silent of its requests."""
    name = ServiceName(change.namespace, change.service)
    profile = profiles.get(name) or ServiceProfile(name)
    milli_cpu, memory = _requests(cluster, change)
    return PodSize(
        intensity=profile.intensity or _hungry_for(cluster, milli_cpu, memory),
        milli_cpu=milli_cpu if profile.milli_cpu is None else profile.milli_cpu,
        memory_bytes=memory if profile.memory_bytes is None else profile.memory_bytes,
    )


def _requests(cluster: Cluster, change: Change) -> tuple[int, int]:
    """Return what a pod of the workload's template asks for, else the service's newest pod, else nothing."""
    try:
        service = find_service(cluster, change.namespace, change.service)
        its_members = members(cluster, service)
        try:
            workload = resolve_workload(cluster, service, change.workload, its_members)
            info = incoming_of(cluster, pattern_of(cluster, service, workload, its_members)).info
        except BerthError:
            newest = newest_pod(cluster, its_members)
            if newest is None:
                return 0, 0
            info = cluster.specs[int(cluster.pods.column("spec_id")[newest])]
    except BerthError:
        return 0, 0
    return info.asked.get(_CPU_ID, 0), info.asked.get(_MEMORY_ID, 0)


def _hungry_for(cluster: Cluster, milli_cpu: int, memory: int) -> Intensity:
    alive = cluster.nodes.alive
    offered = [int(np.sum(cluster.nodes.allocatable.of(i)[alive])) for i in (_CPU_ID, _MEMORY_ID)]
    cpu_share, memory_share = (
        Fraction(amount, total) if total else Fraction(0)
        for amount, total in zip((milli_cpu, memory), offered, strict=True)
    )
    return Intensity.CPU if cpu_share >= memory_share else Intensity.MEMORY
