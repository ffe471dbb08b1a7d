"""What a pod asks for and what it holds once it runs, in exact integers: milli-CPU, bytes, counts.

Releases differ: a pod that comes asks for the larger of the sum over its containers and its largest init container; one that
runs holds that sum alone (``GetResourceRequest`` and ``calculateResource`` of 1.13), or the same as it asked for (1.17).
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from berth.objects.base import Quantity
from berth.objects.pods import Container, PodSpec
from berth.objects.quantities import milli_value, value

CPU, MEMORY, EPHEMERAL_STORAGE, PODS = "cpu", "memory", "ephemeral-storage", "pods"
BASE_RESOURCES = (CPU, MEMORY, EPHEMERAL_STORAGE, PODS)
"""Ids 0 to 3 of every cluster's resources; extended resources, huge pages and the like follow."""

DEFAULT_MILLI_CPU = 100
DEFAULT_MEMORY = 200 * 1024 * 1024
"""What the priorities assume of a container that does not say what it requests."""

NVIDIA_GPU = "alpha.kubernetes.io/nvidia-gpu"
"""Graphics cards as a resource of their own, up to 1.10."""

Amounts = dict[str, int]


class Accounting(Protocol):
    """How a release counts the resources of a pod."""

    @property
    def reads_status(self) -> bool:
        """Whether what a pod's status says of resources counts (`berth.objects.pods.Resizing`)."""

    def asked(self, spec: PodSpec) -> Amounts:
        """Return what a pod that is to be placed asks for, by resource."""

    def held(self, spec: PodSpec) -> Amounts:
        """Return what a pod on a node takes of it, by resource."""

    def nonzero(self, spec: PodSpec) -> tuple[int, int]:
        """Return the milli-CPU and memory bytes that priorities count, defaults for silent containers included."""

    def scored(self, spec: PodSpec) -> Amounts:
        """Return what the priorities take a pod that is to be placed to ask for, by resource."""

    def lasting(self, spec: PodSpec) -> tuple[Container, ...]:
        """Return the containers that run as long as the pod does: those that keep their host ports."""


def is_scalar(name: str) -> bool:
    """Tell whether a resource beyond the base ones counts: extended resources, huge pages, attachable volumes."""
    return name.startswith("attachable-volumes-") or "kubernetes.io/" in name or is_scalar_1_10(name)


def is_scalar_1_10(name: str) -> bool:
    """Do the same as releases up to 1.10: extended resources, huge pages, graphics cards."""
    if name.startswith("hugepages-") or name == NVIDIA_GPU:
        return True
    return "/" in name and "kubernetes.io/" not in name and not name.startswith("requests.")


def amounts(resources: Mapping[str, Quantity], counts: Callable[[str], bool] = is_scalar) -> Amounts:
    """Return a resource list in integers: milli-CPU for cpu, else units rounded up; what nobody schedules by is left out."""
    return {
        name: milli_value(quantity) if name == CPU else value(quantity)
        for name, quantity in resources.items()
        if name in BASE_RESOURCES or counts(name)
    }


@dataclass(frozen=True, slots=True)
class LegacyAccounting:
    """1.7 to 1.17.

    Attributes
    ----------
    counts : callable
        Which resources beyond the base ones count.
    init_containers_stay : bool
        Whether a pod that runs holds what its largest init container asked for, too (1.17).
    """

    counts: Callable[[str], bool] = is_scalar
    init_containers_stay: bool = False

    reads_status = False

    def asked(self, spec: PodSpec) -> Amounts:
        """Sum over the containers, at least the largest init container, for each resource."""
        asked = self._sum(spec.containers)
        for container in spec.init_containers:
            for name, amount in amounts(container.resources.requests, self.counts).items():
                # A resource of which 0 is asked counts as asked for by a container, not by an init container.
                if amount > asked.get(name, 0):
                    asked[name] = amount
        return asked

    def held(self, spec: PodSpec) -> Amounts:
        """Sum over the containers; in 1.17 the same as `asked`."""
        return self.asked(spec) if self.init_containers_stay else self._sum(spec.containers)

    def nonzero(self, spec: PodSpec) -> tuple[int, int]:
        """Sum over the containers, 100m and 200 MB where one does not say; in 1.17 at least the largest init container."""
        running = [_nonzero(container) for container in spec.containers]
        cpu, memory = sum(cpu for cpu, _ in running), sum(memory for _, memory in running)
        if self.init_containers_stay:
            for container in spec.init_containers:
                init_cpu, init_memory = _nonzero(container)
                cpu, memory = max(cpu, init_cpu), max(memory, init_memory)
        return cpu, memory

    def _sum(self, containers: Iterable[Container]) -> Amounts:
        total: Amounts = {}
        for container in containers:
            for name, amount in amounts(container.resources.requests, self.counts).items():
                total[name] = total.get(name, 0) + amount
        return total

    def scored(self, spec: PodSpec) -> Amounts:
        """Count cpu and memory like those of pods that are there, all else as it is asked for."""
        milli_cpu, memory = self.nonzero(spec)
        return self.asked(spec) | {CPU: milli_cpu, MEMORY: memory}

    def lasting(self, spec: PodSpec) -> tuple[Container, ...]:
        """Return the containers."""
        return spec.containers


def _nonzero(container: Container) -> tuple[int, int]:
    requests = container.resources.requests
    return (
        milli_value(requests[CPU]) if CPU in requests else DEFAULT_MILLI_CPU,
        value(requests[MEMORY]) if MEMORY in requests else DEFAULT_MEMORY,
    )
