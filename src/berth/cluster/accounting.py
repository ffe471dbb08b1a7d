"""What a pod asks for and what it holds once it runs, in exact integers: milli-CPU, bytes, counts.

Releases differ: up to 1.17 a pod that runs holds the sum over its containers, while one that comes asks for the larger of
that and its largest init container (``GetResourceRequest`` and ``calculateResource`` of 1.13).
"""

from collections.abc import Iterable, Mapping
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

Amounts = dict[str, int]


class Accounting(Protocol):
    """How a release counts the resources of a pod."""

    def asked(self, spec: PodSpec) -> Amounts:
        """Return what a pod that is to be placed asks for, by resource."""

    def held(self, spec: PodSpec) -> Amounts:
        """Return what a pod on a node takes of it, by resource."""

    def nonzero(self, spec: PodSpec) -> tuple[int, int]:
        """Return the milli-CPU and memory bytes that priorities count, defaults for silent containers included."""


class LegacyAccounting:
    """1.7 to 1.17."""

    def asked(self, spec: PodSpec) -> Amounts:
        """Sum over the containers, at least the largest init container, for each resource."""
        asked = _sum(spec.containers)
        for container in spec.init_containers:
            for name, amount in amounts(container.resources.requests).items():
                # An extended resource of which only an init container asks for 0 is not asked for at all.
                if amount > asked.get(name, 0):
                    asked[name] = amount
        return asked

    def held(self, spec: PodSpec) -> Amounts:
        """Sum over the containers."""
        return _sum(spec.containers)

    def nonzero(self, spec: PodSpec) -> tuple[int, int]:
        """Sum over the containers, 100m and 200 MB where one does not say."""
        requests = [container.resources.requests for container in spec.containers]
        return (
            sum(milli_value(r[CPU]) if CPU in r else DEFAULT_MILLI_CPU for r in requests),
            sum(value(r[MEMORY]) if MEMORY in r else DEFAULT_MEMORY for r in requests),
        )


def amounts(resources: Mapping[str, Quantity]) -> Amounts:
    """Return a resource list in integers: milli-CPU for cpu, else units rounded up; what nobody schedules by is left out."""
    return {
        name: milli_value(quantity) if name == CPU else value(quantity)
        for name, quantity in resources.items()
        if name in BASE_RESOURCES or is_scalar(name)
    }


def is_scalar(name: str) -> bool:
    """Tell whether a resource beyond the base ones counts: extended resources, huge pages, attachable volumes."""
    if name.startswith(("hugepages-", "attachable-volumes-")) or "kubernetes.io/" in name:
        return True
    return "/" in name and not name.startswith("requests.")


def _sum(containers: Iterable[Container]) -> Amounts:
    total: Amounts = {}
    for container in containers:
        for name, amount in amounts(container.resources.requests).items():
            total[name] = total.get(name, 0) + amount
    return total
