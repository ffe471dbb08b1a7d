"""What a pod asks for and holds as 1.36 counts it: sidecars, overhead, resources of the pod as a whole, resizing in place.

Amounts are summed exactly and rounded up once, at the end. Source: 1.36, ``component-helpers/resource/helpers.go``
(``PodRequests``) and ``PodInfo.CalculateResource``.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from berth.cluster.accounting import (
    BASE_RESOURCES,
    CPU,
    DEFAULT_MEMORY,
    DEFAULT_MILLI_CPU,
    MEMORY,
    Amounts,
    is_scalar,
)
from berth.objects.base import Quantity
from berth.objects.pods import Container, ContainerResizing, PodSpec, ResourceRequirements
from berth.objects.quantities import milli_value_of_nano, nano_value, value_of_nano

Nanos = dict[str, int]
"""Thousand-millionths by resource."""

_DEFAULTS: Nanos = {CPU: DEFAULT_MILLI_CPU * 10**6, MEMORY: DEFAULT_MEMORY * 10**9}


@dataclass(frozen=True, slots=True)
class ModernAccounting:
    """1.36.

    Attributes
    ----------
    pod_level : bool
        Whether the pod's own ``resources`` count (gate PodLevelResources).
    resizes_pod_level : bool
        Whether what the status says of these counts (gate InPlacePodLevelResourcesVerticalScaling).
    """

    pod_level: bool = True
    resizes_pod_level: bool = True
    reads_status: bool = True

    def asked(self, spec: PodSpec) -> Amounts:
        """Count what the spec says, whatever the status."""
        total = self._requests(spec, {}, with_status=False, pod_level=self.pod_level)
        return {name: max(0, amount) for name, amount in _amounts(total).items()}

    def held(self, spec: PodSpec) -> Amounts:
        """Count what the pod may have at any time while it is resized."""
        return _amounts(self._requests(spec, {}, with_status=True, pod_level=self.pod_level))

    def nonzero(self, spec: PodSpec) -> tuple[int, int]:
        """Count defaults for silent containers; in a pod with resources of its own, only for what nobody asks for."""
        defaults = _DEFAULTS
        if self.pod_level and _pod_requests(spec):
            asked = self._requests(spec, {}, with_status=True, pod_level=True)
            defaults = {name: amount for name, amount in _DEFAULTS.items() if name not in asked}
        total = self._requests(spec, defaults, with_status=True, pod_level=self.pod_level)
        return milli_value_of_nano(total.get(CPU, 0)), value_of_nano(total.get(MEMORY, 0))

    def scored(self, spec: PodSpec) -> Amounts:
        """Count containers alone, with defaults: NodeResourcesFit scores without a look at the pod's own resources."""
        return _amounts(self._requests(spec, _DEFAULTS, with_status=False, pod_level=False))

    def lasting(self, spec: PodSpec) -> tuple[Container, ...]:
        """Return sidecars and containers."""
        return (*(c for c in spec.init_containers if c.is_sidecar), *spec.containers)

    def _requests(self, spec: PodSpec, defaults: Nanos, *, with_status: bool, pod_level: bool) -> Nanos:
        """Return what the pod as a whole asks for.

        Parameters
        ----------
        defaults : dict of resource to nano amount
            What a container counts as asking for that does not say.
        """
        total = _of_containers(spec, defaults, with_status)
        own = _pod_requests(spec) if pod_level else {}
        if own:
            resizing = spec.resizing if with_status and self.resizes_pod_level else None
            if resizing is not None and resizing.resources is not None:
                given = _at_most(spec, resizing.resources, resizing.allocated_resources, spec.resources)
                own = {name: given.get(name, 0) for name in own}
            total |= own
        _add(total, _nanos(spec.overhead))
        return total


def _of_containers(spec: PodSpec, defaults: Nanos, with_status: bool) -> Nanos:
    """Sum over containers and sidecars, at least what any init container needs with the sidecars before it."""
    resized = {c.name: c for c in spec.resizing.containers} if with_status and spec.resizing else {}
    total: Nanos = {}
    for container in spec.containers:
        _add(total, defaults | _of_container(spec, container, resized))
    sidecars: Nanos = {}
    starting: Nanos = {}
    for container in spec.init_containers:
        needed = defaults | _of_container(spec, container, resized if container.is_sidecar else {})
        if container.is_sidecar:
            _add(total, needed)
            _add(sidecars, needed)
            needed = sidecars
        else:
            _add(needed, sidecars)
        _take_larger(starting, needed)
    _take_larger(total, starting)
    return total


def _of_container(spec: PodSpec, container: Container, resized: Mapping[str, ContainerResizing]) -> Nanos:
    status = resized.get(container.name)
    if status is None or status.resources is None:
        return _nanos(container.resources.requests)
    return _at_most(spec, status.resources, status.allocated_resources, container.resources)


def _at_most(
    spec: PodSpec,
    actual: ResourceRequirements,
    allocated: Mapping[str, Quantity],
    wanted: ResourceRequirements | None,
) -> Nanos:
    """Return the most that is wanted, allocated or in use; what can't ever be given is not waited for."""
    most = _nanos(actual.requests)
    _take_larger(most, _nanos(allocated))
    if wanted is not None and not (spec.resizing and spec.resizing.infeasible):
        _take_larger(most, _nanos(wanted.requests))
    return most


def _pod_requests(spec: PodSpec) -> Nanos:
    """Return what the pod asks for as a whole: cpu, memory and huge pages alone count there."""
    if spec.resources is None:
        return {}
    return {
        name: nano_value(quantity)
        for name, quantity in spec.resources.requests.items()
        if name in (CPU, MEMORY) or name.startswith("hugepages-")
    }


def _nanos(resources: Mapping[str, Quantity]) -> Nanos:
    return {name: nano_value(quantity) for name, quantity in resources.items()}


def _add(total: Nanos, more: Nanos) -> None:
    for name, amount in more.items():
        total[name] = total.get(name, 0) + amount


def _take_larger(largest: Nanos, others: Nanos) -> None:
    for name, amount in others.items():
        largest[name] = max(largest.get(name, amount), amount)


def _amounts(total: Nanos) -> Amounts:
    return {
        name: milli_value_of_nano(nano) if name == CPU else value_of_nano(nano)
        for name, nano in total.items()
        if name in BASE_RESOURCES or is_scalar(name)
    }
