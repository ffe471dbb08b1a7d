"""Which extension points the plugins of 1.36 have, and which plugins its default profile enables.

Source: ``apis/config/v1/default_plugins.go`` and the interfaces that ``framework/plugins`` implement.
"""

from collections.abc import Mapping
from types import MappingProxyType

POINTS: Mapping[str, frozenset[str]] = MappingProxyType({
    "preEnqueue": frozenset({"SchedulingGates", "DefaultPreemption", "DynamicResources", "GangScheduling"}),
    "queueSort": frozenset({"PrioritySort"}),
    "preFilter": frozenset({
        "NodeAffinity", "NodePorts", "NodeResourcesFit", "VolumeRestrictions", "NodeVolumeLimits", "VolumeBinding",
        "VolumeZone", "PodTopologySpread", "InterPodAffinity", "DynamicResources", "NodeDeclaredFeatures",
    }),
    "filter": frozenset({
        "NodeUnschedulable", "NodeName", "TaintToleration", "NodeAffinity", "NodePorts", "NodeResourcesFit",
        "VolumeRestrictions", "NodeVolumeLimits", "VolumeBinding", "VolumeZone", "PodTopologySpread",
        "InterPodAffinity", "DynamicResources", "NodeDeclaredFeatures",
    }),
    "postFilter": frozenset({"DefaultPreemption", "DynamicResources"}),
    "preScore": frozenset({
        "TaintToleration", "NodeAffinity", "NodeResourcesFit", "VolumeBinding", "PodTopologySpread",
        "InterPodAffinity", "NodeResourcesBalancedAllocation",
    }),
    "score": frozenset({
        "TaintToleration", "NodeAffinity", "NodeResourcesFit", "VolumeBinding", "PodTopologySpread",
        "InterPodAffinity", "DynamicResources", "NodeResourcesBalancedAllocation", "ImageLocality",
    }),
    "reserve": frozenset({"VolumeBinding", "DynamicResources"}),
    "permit": frozenset({"GangScheduling"}),
    "preBind": frozenset({"VolumeBinding", "DynamicResources"}),
    "bind": frozenset({"DefaultBinder"}),
    "postBind": frozenset(),
    "placementGenerate": frozenset({"TopologyPlacementGenerator"}),
    "placementScore": frozenset({"NodeResourcesFit", "PodGroupPodsCount"}),
})  # fmt: skip
"""Extension point to the plugins that have it."""

PLUGINS: tuple[str, ...] = tuple(sorted(frozenset().union(*POINTS.values())))

_DEFAULTS: tuple[tuple[str, int], ...] = (
    ("SchedulingGates", 0), ("PrioritySort", 0), ("NodeUnschedulable", 0), ("NodeName", 0), ("TaintToleration", 3),
    ("NodeAffinity", 2), ("NodePorts", 0), ("NodeResourcesFit", 1), ("VolumeRestrictions", 0), ("NodeVolumeLimits", 0),
    ("VolumeBinding", 0), ("VolumeZone", 0), ("PodTopologySpread", 2), ("InterPodAffinity", 2),
    ("DynamicResources", 2), ("DefaultPreemption", 0), ("NodeResourcesBalancedAllocation", 1), ("ImageLocality", 1),
    ("DefaultBinder", 0), ("NodeDeclaredFeatures", 0), ("GangScheduling", 0), ("TopologyPlacementGenerator", 0),
    ("PodGroupPodsCount", 1),
)  # fmt: skip
_GATED: Mapping[str, tuple[str, bool]] = MappingProxyType({
    "NodeDeclaredFeatures": ("NodeDeclaredFeatures", True),
    "DynamicResources": ("DynamicResourceAllocation", True),
    "GangScheduling": ("GangScheduling", False),
    "TopologyPlacementGenerator": ("TopologyAwareWorkloadScheduling", False),
    "PodGroupPodsCount": ("TopologyAwareWorkloadScheduling", False),
})  # fmt: skip


def default_multi_point(feature_gates: Mapping[str, bool]) -> tuple[tuple[str, int], ...]:
    """Return the plugins of the default profile's ``multiPoint`` in order, with their weights (0: none is given)."""

    def is_on(name: str) -> bool:
        gate, default = _GATED.get(name, ("", True))
        return feature_gates.get(gate, default)

    return tuple((name, weight) for name, weight in _DEFAULTS if is_on(name))
