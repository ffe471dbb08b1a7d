"""The scheduling module's arithmetic, as 1.13 has it (without the gate TaintNodesByCondition) and as 1.36 has it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from berth.cluster.accounting import Accounting
from berth.errors import InputError
from berth.framework.plugin import ScorePlugin
from berth.framework.profile import NamedFilter, Profile, WeightedScore
from berth.plugins.node_load_forecast import NodeLoadForecast
from berth.plugins.volume_binding import BindingRules
from berth.releases.legacy_1_13 import RELEASE_1_13
from berth.releases.modern import RELEASE_1_36
from berth.releases.module_removal import REMOVAL_1_13, REMOVAL_1_36, RemovalArithmetic
from berth.releases.profiles import provider_profile
from berth.releases.release import Options, RatioShape, Release, ShapePoint

Filters = Callable[[Options], tuple[NamedFilter, ...]]
Priorities = Callable[[Options], dict[str, ScorePlugin[Any] | None]]


@dataclass(frozen=True, slots=True)
class ModuleRelease:
    """A release whose arithmetic the module can have.

    Attributes
    ----------
    filters : callable
        Makes the filters of additions, in their order.
    priorities : callable
        Makes what scores additions, by the names that the module has for it; None what needs an argument.
    removal : RemovalArithmetic
    binding : BindingRules
        How volumes are bound for a pod that was placed.
    """

    release: Release
    filters: Filters
    priorities: Priorities
    removal: RemovalArithmetic
    binding: BindingRules

    @property
    def name(self) -> str:
        """The name that settings have for it."""
        return self.release.name

    @property
    def accounting(self) -> Accounting:
        """How the pods of a cluster are counted on which it decides."""
        return self.release.accounting


_FILTERS_1_13 = {
    "CheckNodeCondition": "CheckNodeCondition",
    "PodFitsResources": "PodFitsResources",
    "PodFitsHostPorts": "PodFitsHostPorts",
    "PodMatchNodeSelector": "MatchNodeSelector",
    "PodToleratesNodeTaints": "PodToleratesNodeTaints",
    "CheckVolumeBinding": "CheckVolumeBinding",
    "CheckNodeMemoryPressure": "CheckNodeMemoryPressure",
    "CheckNodePIDPressure": "CheckNodePIDPressure",
    "CheckNodeDiskPressure": "CheckNodeDiskPressure",
    "MatchInterPodAffinity": "MatchInterPodAffinity",
}
"""The predicates in the module's order, with the names that 1.13 has for them."""

_PRIORITIES_1_36 = {
    "SelectorSpreadPriority": "PodTopologySpread",
    "InterPodAffinityPriority": "InterPodAffinity",
    "LeastRequestedPriority": "NodeResourcesFit",
    "MostRequestedPriority": "NodeResourcesFit/MostAllocated",
    "RequestedToCapacityRatioPriority": "NodeResourcesFit/RequestedToCapacityRatio",
    "BalancedResourceAllocation": "NodeResourcesBalancedAllocation",
    "NodeAffinityPriority": "NodeAffinity",
    "TaintTolerationPriority": "TaintToleration",
    "ImageLocalityPriority": "ImageLocality",
}
"""The priorities that are there still, with today's plugins."""

_EMPTY_FIRST = RatioShape((ShapePoint(0, 10), ShapePoint(100, 0)))
"""The shape that 1.13 has without one of its own."""


def _filters_1_13(options: Options) -> tuple[NamedFilter, ...]:
    made = RELEASE_1_13.filters
    return tuple(NamedFilter(name, made[theirs](options)) for name, theirs in _FILTERS_1_13.items())


def _priorities_1_13(options: Options) -> dict[str, ScorePlugin[Any] | None]:
    return {name: make(options) for name, make in RELEASE_1_13.scores.items()}


def _priorities_1_36(options: Options) -> dict[str, ScorePlugin[Any] | None]:
    options = replace(options, ratio=options.ratio or _EMPTY_FIRST)
    return {name: RELEASE_1_36.scores[today](options) for name, today in _PRIORITIES_1_36.items()}


MODULE_1_13 = ModuleRelease(RELEASE_1_13, _filters_1_13, _priorities_1_13, REMOVAL_1_13, BindingRules())
MODULE_1_36 = ModuleRelease(
    RELEASE_1_36,
    lambda options: provider_profile(RELEASE_1_36, options).filters,
    _priorities_1_36,
    REMOVAL_1_36,
    BindingRules.of_1_36(),
)
MODULE_RELEASES: Mapping[str, ModuleRelease] = MappingProxyType(
    {m.name: m for m in (MODULE_1_13, MODULE_1_36)}
)
"""Every release whose arithmetic the module can have, by name (``module.release``)."""


def addition_profile(
    weights: Mapping[str, int], hard_pod_affinity_weight: int = 1, module: ModuleRelease = MODULE_1_13
) -> Profile:
    """Make the profile that decides which node gains a pod.

    Parameters
    ----------
    weights : dict of priority name to int
        A priority that is not named is not computed; one of weight 0 is, and adds nothing.

    Raises
    ------
    InputError
        The release has no such priority.
    """
    options = Options(hard_pod_affinity_weight=hard_pod_affinity_weight)
    known = priorities(options, module)
    for name in weights:
        if name not in known:
            raise InputError("module.addWeights", name, f"one of {module.name}'s: {', '.join(known)}")
    return Profile(
        module.filters(options),
        tuple(WeightedScore(name, known[name], weight) for name, weight in weights.items()),
    )


def priorities(options: Options, module: ModuleRelease = MODULE_1_13) -> dict[str, ScorePlugin[Any]]:
    """Return every priority that an addition can be scored by: the release's that need no argument, and the forecast."""
    found: dict[str, ScorePlugin[Any]] = {
        "NodeLoadForecastPriority": NodeLoadForecast(module.release.maximum)
    }
    return found | {name: plugin for name, plugin in module.priorities(options).items() if plugin is not None}
