"""1.36: plugins under the names that they still have, in the order and with the weights of the default profile.

Source: ``pkg/scheduler/apis/config/v1/default_plugins.go`` and ``pkg/features/kube_features.go`` of 1.36.
"""

from collections.abc import Mapping

from berth.cluster.modern_accounting import ModernAccounting
from berth.plugins.image_locality import ImageLocality
from berth.plugins.inter_pod_affinity import InterPodAffinityPriority, MatchInterPodAffinity, Rules
from berth.plugins.inter_pod_affinity.scoring import Unreadable
from berth.plugins.no_disk_conflict import VolumeRestrictions
from berth.plugins.node_affinity import NodeAffinity, PreferMatchingNodes
from berth.plugins.node_declared_features import NodeDeclaredFeatures
from berth.plugins.node_name import NodeName
from berth.plugins.node_ports import NodePorts
from berth.plugins.node_resources_fit import NodeResourcesFit
from berth.plugins.node_resources_score import (
    CPU_AND_MEMORY,
    BalancedAllocation,
    CapacityRatio,
    ResourcesScore,
    least_allocated,
    most_allocated,
)
from berth.plugins.node_unschedulable import NodeUnschedulable
from berth.plugins.pod_topology_spread import SpreadFilter, SpreadScore
from berth.plugins.requested_to_capacity_ratio import table_of
from berth.plugins.taint_toleration import PreferToleratedTaints, TolerateTaints
from berth.plugins.unsupported import DYNAMIC_RESOURCES, GANG_SCHEDULING, DynamicResourcesScore
from berth.plugins.volume_binding import BindingRules, VolumeBinding, VolumeBindingScore
from berth.plugins.volume_zone import VolumeZone
from berth.releases.counted_volumes import volume_limits_1_36
from berth.releases.release import FilterFactory, Options, Release, ScoreFactory

MAXIMUM = 100

GATES: Mapping[str, bool] = {
    "PodLevelResources": True,
    "InPlacePodLevelResourcesVerticalScaling": True,
    "NodeDeclaredFeatures": True,
    "TaintTolerationComparisonOperators": False,
}
"""The feature gates that are heeded, with the release's defaults."""


def gate(options: Options, name: str) -> bool:
    """Tell whether a feature gate is on."""
    return options.feature_gates.get(name, GATES[name])


def _tolerate_taints(options: Options) -> TolerateTaints:
    return TolerateTaints(
        reason="node(s) had untolerated taint(s)",
        compares=gate(options, "TaintTolerationComparisonOperators"),
    )


def _filters() -> dict[str, FilterFactory]:
    fit = NodeResourcesFit(asked_only=True, too_many_pods="Too many pods")
    return {
        "NodeUnschedulable": lambda options: NodeUnschedulable(
            compares=gate(options, "TaintTolerationComparisonOperators")
        ),
        "NodeName": lambda options: NodeName(reason="node(s) didn't match the requested node name"),
        "TaintToleration": _tolerate_taints,
        "NodeAffinity": lambda options: NodeAffinity(),
        "NodePorts": lambda options: NodePorts(),
        "NodeResourcesFit": lambda options: fit,
        "VolumeRestrictions": lambda options: VolumeRestrictions(),
        "NodeVolumeLimits": lambda options: volume_limits_1_36(),
        "VolumeBinding": lambda options: VolumeBinding(BindingRules.of_1_36()),
        "VolumeZone": lambda options: VolumeZone(unbound="PersistentVolume had no name", refuses=True),
        "PodTopologySpread": lambda options: SpreadFilter(),
        "InterPodAffinity": lambda options: MatchInterPodAffinity(Rules.TODAY),
        "DynamicResources": lambda options: DYNAMIC_RESOURCES,
        "NodeDeclaredFeatures": lambda options: NodeDeclaredFeatures(gate(options, "NodeDeclaredFeatures")),
        # No filter upstream; a pod that has a group comes from a cluster where the gate is on.
        "GangScheduling": lambda options: GANG_SCHEDULING,
    }


def _scores() -> dict[str, ScoreFactory]:
    return {
        "TaintToleration": lambda options: PreferToleratedTaints(
            MAXIMUM, compares=gate(options, "TaintTolerationComparisonOperators")
        ),
        "NodeAffinity": lambda options: PreferMatchingNodes(MAXIMUM, with_fields=True),
        "NodeResourcesFit": lambda options: ResourcesScore(least_allocated, MAXIMUM),
        "VolumeBinding": lambda options: VolumeBindingScore(),
        "PodTopologySpread": lambda options: SpreadScore(MAXIMUM),
        "InterPodAffinity": lambda options: InterPodAffinityPriority(
            rules=Rules.TODAY,
            maximum=MAXIMUM,
            hard_pod_affinity_weight=options.hard_pod_affinity_weight,
            from_zero=False,
            unreadable=Unreadable.LEFT_OUT,
        ),
        "DynamicResources": lambda options: DynamicResourcesScore(),
        "NodeResourcesBalancedAllocation": lambda options: BalancedAllocation(MAXIMUM),
        "ImageLocality": lambda options: ImageLocality(MAXIMUM, all_images=True),
        "NodeResourcesFit/MostAllocated": lambda options: ResourcesScore(most_allocated, MAXIMUM),
        "NodeResourcesFit/RequestedToCapacityRatio": _requested_to_capacity_ratio,
    }


def _requested_to_capacity_ratio(options: Options) -> ResourcesScore | None:
    if options.ratio is None:
        return None
    # Scores of the shape go to 10.
    points = [(point.utilization, point.score * (MAXIMUM // 10)) for point in options.ratio.points]
    resources = tuple((name, weight or 1) for name, weight in options.ratio.resources)
    return ResourcesScore(
        CapacityRatio(table_of(points, MAXIMUM)), MAXIMUM, resources or CPU_AND_MEMORY, ratio=True
    )


_WEIGHTS = {
    "TaintToleration": 3,
    "NodeAffinity": 2,
    "NodeResourcesFit": 1,
    "VolumeBinding": 1,
    "PodTopologySpread": 2,
    "InterPodAffinity": 2,
    "DynamicResources": 2,
    "NodeResourcesBalancedAllocation": 1,
    "ImageLocality": 1,
}


def _accounting(options: Options) -> ModernAccounting:
    return ModernAccounting(
        pod_level=gate(options, "PodLevelResources"),
        resizes_pod_level=gate(options, "InPlacePodLevelResourcesVerticalScaling"),
    )


_FILTERS = _filters()

RELEASE_1_36 = Release(
    name="1.36",
    version="v1.36.3",
    maximum=MAXIMUM,
    accounting=ModernAccounting(),
    filters=_FILTERS,
    scores=_scores(),
    default_filters=lambda options: frozenset(_FILTERS),
    default_scores=lambda options: dict(_WEIGHTS),
    gated_accounting=_accounting,
    refuses_empty=False,
    scores_lone_node=True,
)

MODERN: Mapping[str, Release] = {RELEASE_1_36.name: RELEASE_1_36}
