"""What a Policy of an old release may name. Knows nothing of how a Policy is written.

Source: ``algorithmprovider/defaults`` and ``factory/plugins.go`` (1.17: ``algorithm_factory.go``) of each release.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from berth.releases.release import Options, Release

TAINT_NODES = "TaintNodesByCondition"
EVEN_PODS_SPREAD = "EvenPodsSpread"
RESOURCE_LIMITS = "ResourceLimitsPriorityFunction"


@dataclass(frozen=True, slots=True)
class Registered:
    """Names that a release registers.

    Attributes
    ----------
    unordered : frozenset of str
        Predicates that a Policy may name but the release never asks: its list of predicates lacks them.
    as_plugins : bool
        Whether predicates run as plugins of the framework: it stops at the first that fails, whatever
        ``alwaysCheckAllPredicates`` says, and refuses a plugin that two predicates stand for.
    keeps_names : bool
        Whether a predicate or priority with an argument goes by the Policy's name, and is one of its own.
    has_ratio : bool
        Whether it knows ``requestedToCapacityRatioArguments``.
    """

    predicates: frozenset[str]
    priorities: frozenset[str]
    unordered: frozenset[str] = frozenset()
    as_plugins: bool = False
    keeps_names: bool = True
    has_ratio: bool = True


_GENERAL_PARTS = ("PodFitsResources", "HostName", "PodFitsHostPorts", "MatchNodeSelector")
GENERAL_PARTS: Mapping[str, tuple[str, ...]] = MappingProxyType({"GeneralPredicates": _GENERAL_PARTS})
"""The predicates that one stands for where predicates run as plugins, in that order."""

_VOLUMES = frozenset(
    {"NoVolumeZoneConflict", "MaxEBSVolumeCount", "MaxGCEPDVolumeCount", "MaxAzureDiskVolumeCount"}
)
_ALWAYS = _VOLUMES | {
    "GeneralPredicates", "PodFitsPorts", "PodFitsHostPorts", "PodFitsResources", "HostName", "MatchNodeSelector",
    "NoDiskConflict", "PodToleratesNodeTaints", "MatchInterPodAffinity",
}  # fmt: skip
_PRESSURES = frozenset({"CheckNodeMemoryPressure", "CheckNodeDiskPressure"})
_PRIORITIES = frozenset({
    "SelectorSpreadPriority", "InterPodAffinityPriority", "LeastRequestedPriority", "BalancedResourceAllocation",
    "NodePreferAvoidPodsPriority", "NodeAffinityPriority", "TaintTolerationPriority", "ImageLocalityPriority",
    "ServiceSpreadingPriority", "EqualPriority", "MostRequestedPriority",
})  # fmt: skip
_PORTS = frozenset({"PodFitsPorts"})


def registered(release: Release, options: Options) -> Registered:
    """Return what an old release registers under its feature gates."""
    gates = options.feature_gates
    mandatory = release.mandatory_filters(options)
    limits = {"ResourceLimitsPriority"} if gates.get(RESOURCE_LIMITS, False) else set()
    match release.name:
        case "1.7":
            return Registered(_ALWAYS | _PRESSURES | {"NoVolumeNodeConflict"}, _PRIORITIES, has_ratio=False)
        case "1.10":
            predicates = _ALWAYS | _PRESSURES | {"CheckVolumeBinding"} | mandatory
            return Registered(predicates, _PRIORITIES | limits, _PORTS, has_ratio=False)
        case "1.13":
            predicates = _ALWAYS | {"CheckVolumeBinding", "MaxCSIVolumeCountPred"} | mandatory
            if not gates.get(TAINT_NODES, False):
                predicates |= _PRESSURES | {"CheckNodePIDPressure"}
            return Registered(predicates, _PRIORITIES | limits | {"RequestedToCapacityRatioPriority"}, _PORTS)
        case _:
            predicates = _ALWAYS | {"CheckVolumeBinding", "MaxCSIVolumeCountPred", "MaxCinderVolumeCount"}
            priorities = _PRIORITIES | limits | {"RequestedToCapacityRatioPriority"}
            if gates.get(EVEN_PODS_SPREAD, True):
                predicates |= {"EvenPodsSpread"}
                priorities |= {"EvenPodsSpreadPriority"}
            return Registered(predicates | mandatory, priorities, _PORTS, as_plugins=True, keeps_names=False)


_OWN_GATES: Mapping[str, Mapping[str, bool]] = MappingProxyType({
    "1.7": MappingProxyType({"PersistentLocalVolumes": False}),
    "1.13": MappingProxyType({TAINT_NODES: True}),
    "1.17": MappingProxyType({EVEN_PODS_SPREAD: False}),
})  # fmt: skip


def own_feature_gates(release: str) -> dict[str, bool]:
    """Return the gates that a release itself sets otherwise than the answers to the oracle protocol assume."""
    return dict(_OWN_GATES.get(release, {}))
