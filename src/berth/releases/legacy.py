"""1.10, 1.13 and 1.17: predicates and priorities under the names of the time.

Source: ``algorithm/predicates`` (``predicatesOrdering``) and ``algorithmprovider/defaults`` of each release.
"""

from collections.abc import Mapping

from berth.cluster.accounting import LegacyAccounting
from berth.framework.compose import AllOf
from berth.plugins.inter_pod_affinity import InterPodAffinityPriority, MatchInterPodAffinity
from berth.plugins.no_disk_conflict import NoDiskConflict
from berth.plugins.node_affinity import MatchNodeSelector, PreferMatchingNodes
from berth.plugins.node_conditions import DISK_PRESSURE, MEMORY_PRESSURE, PID_PRESSURE, CheckNodeCondition
from berth.plugins.node_ports import NodePorts
from berth.plugins.node_resources_fit import NodeResourcesFit
from berth.plugins.resource_allocation import (
    ResourceAllocation,
    balanced_allocation,
    least_requested,
    most_requested,
)
from berth.plugins.selector_spread import SelectorSpread
from berth.plugins.service_affinity import ServiceAffinity, ServiceAntiAffinity
from berth.plugins.taint_toleration import PreferToleratedTaints, TolerateTaints
from berth.plugins.volume_binding import VolumeBinding
from berth.plugins.volume_zone import VolumeZone
from berth.releases.counted_volumes import volume_counts_1_13
from berth.releases.release import FilterFactory, Options, Release, ScoreFactory

AVOID_PODS_WEIGHT = 10_000

_NO_EXECUTE = TolerateTaints(effects=("NoExecute",))


def _filters_1_13() -> dict[str, FilterFactory]:
    counts = volume_counts_1_13()
    return {
        "CheckNodeCondition": lambda options: CheckNodeCondition(),
        "GeneralPredicates": lambda options: AllOf((NodeResourcesFit(), NodePorts(), MatchNodeSelector())),
        "PodFitsHostPorts": lambda options: NodePorts(),
        "MatchNodeSelector": lambda options: MatchNodeSelector(),
        "PodFitsResources": lambda options: NodeResourcesFit(),
        "NoDiskConflict": lambda options: NoDiskConflict(),
        "PodToleratesNodeTaints": lambda options: TolerateTaints(),
        "PodToleratesNodeNoExecuteTaints": lambda options: _NO_EXECUTE,
        "CheckServiceAffinity": lambda options: ServiceAffinity(options.service_affinity_labels),
        "MaxEBSVolumeCount": counts["MaxEBSVolumeCount"],
        "MaxGCEPDVolumeCount": counts["MaxGCEPDVolumeCount"],
        "MaxCSIVolumeCountPred": counts["MaxCSIVolumeCountPred"],
        "MaxAzureDiskVolumeCount": counts["MaxAzureDiskVolumeCount"],
        "CheckVolumeBinding": lambda options: VolumeBinding(),
        "NoVolumeZoneConflict": lambda options: VolumeZone(),
        "CheckNodeMemoryPressure": lambda options: MEMORY_PRESSURE,
        "CheckNodePIDPressure": lambda options: PID_PRESSURE,
        "CheckNodeDiskPressure": lambda options: DISK_PRESSURE,
        "MatchInterPodAffinity": lambda options: MatchInterPodAffinity(),
    }


def _scores_1_13() -> dict[str, ScoreFactory]:
    top = 10
    return {
        "SelectorSpreadPriority": lambda options: SelectorSpread(top),
        "InterPodAffinityPriority": lambda options: InterPodAffinityPriority(
            maximum=top, hard_pod_affinity_weight=options.hard_pod_affinity_weight
        ),
        "LeastRequestedPriority": lambda options: ResourceAllocation(least_requested, top),
        "BalancedResourceAllocation": lambda options: ResourceAllocation(balanced_allocation, top),
        "NodeAffinityPriority": lambda options: PreferMatchingNodes(top),
        "TaintTolerationPriority": lambda options: PreferToleratedTaints(top),
        "MostRequestedPriority": lambda options: ResourceAllocation(most_requested, top),
        "ServiceAntiAffinity": lambda options: (
            ServiceAntiAffinity(options.service_anti_affinity_label, top)
            if options.service_anti_affinity_label
            else None
        ),
    }


def _on(*names: str) -> frozenset[str]:
    return frozenset(names)


_DEFAULT_1_13 = _on(
    "CheckNodeCondition", "GeneralPredicates", "NoDiskConflict", "PodToleratesNodeTaints", "MaxEBSVolumeCount",
    "MaxGCEPDVolumeCount", "MaxCSIVolumeCountPred", "MaxAzureDiskVolumeCount", "CheckVolumeBinding",
    "NoVolumeZoneConflict", "CheckNodeMemoryPressure", "CheckNodePIDPressure", "CheckNodeDiskPressure",
    "MatchInterPodAffinity",
)  # fmt: skip

_DEFAULT_WEIGHTS_1_13 = {
    "SelectorSpreadPriority": 1,
    "InterPodAffinityPriority": 1,
    "LeastRequestedPriority": 1,
    "BalancedResourceAllocation": 1,
    "NodePreferAvoidPodsPriority": AVOID_PODS_WEIGHT,
    "NodeAffinityPriority": 1,
    "TaintTolerationPriority": 1,
    "ImageLocalityPriority": 1,
}


def _default_filters_1_13(options: Options) -> frozenset[str]:
    if not options.feature_gates.get("TaintNodesByCondition", False):
        return _DEFAULT_1_13
    replaced = {"CheckNodeCondition"} | {f"CheckNode{kind}Pressure" for kind in ("Memory", "PID", "Disk")}
    return (_DEFAULT_1_13 - replaced) | {"CheckNodeUnschedulable"}


RELEASE_1_13 = Release(
    name="1.13",
    version="v1.13.0",
    maximum=10,
    accounting=LegacyAccounting(),
    filters=_filters_1_13(),
    scores=_scores_1_13(),
    default_filters=_default_filters_1_13,
    default_scores=lambda options: dict(_DEFAULT_WEIGHTS_1_13),
)

LEGACY: Mapping[str, Release] = {release.name: release for release in (RELEASE_1_13,)}
