"""1.13. Source: v1.13.0, ``algorithm/predicates`` (``predicatesOrdering``) and ``algorithmprovider/defaults``."""

from collections.abc import Mapping

from berth.cluster.accounting import LegacyAccounting
from berth.plugins.equal_priority import EqualPriority
from berth.plugins.image_locality import ImageLocality
from berth.plugins.inter_pod_affinity import InterPodAffinityPriority, MatchInterPodAffinity
from berth.plugins.no_disk_conflict import NoDiskConflict
from berth.plugins.node_affinity import MatchNodeSelector, PreferMatchingNodes
from berth.plugins.node_conditions import DISK_PRESSURE, MEMORY_PRESSURE, PID_PRESSURE, CheckNodeCondition
from berth.plugins.node_name import NodeName
from berth.plugins.node_ports import NodePorts
from berth.plugins.node_prefer_avoid_pods import NodePreferAvoidPods
from berth.plugins.node_resources_fit import NodeResourcesFit
from berth.plugins.node_unschedulable import NodeUnschedulable
from berth.plugins.requested_to_capacity_ratio import RequestedToCapacityRatio, table_of
from berth.plugins.resource_limits import ResourceLimits
from berth.plugins.service_affinity import ServiceAffinity
from berth.plugins.taint_toleration import PreferToleratedTaints, TolerateTaints
from berth.plugins.volume_binding import VolumeBinding
from berth.plugins.volume_zone import VolumeZone
from berth.releases.counted_volumes import volume_counts_1_13
from berth.releases.legacy_common import (
    ALIASES,
    DEFAULT_WEIGHTS,
    NO_EXECUTE_TAINTS,
    cluster_autoscaler,
    general_predicates,
    hard_affinity_weight,
    is_on,
    label_preference,
    label_presence,
    resource_scores,
    service_anti_affinity,
    spread_scores,
)
from berth.releases.release import FilterFactory, Options, Provider, Release, ScoreFactory

TOP = 10

FILTERS: Mapping[str, FilterFactory] = {
    "CheckNodeCondition": lambda options: CheckNodeCondition(),
    "CheckNodeUnschedulable": lambda options: NodeUnschedulable(),
    "GeneralPredicates": lambda options: general_predicates(),
    "HostName": lambda options: NodeName(),
    "PodFitsHostPorts": lambda options: NodePorts(),
    "MatchNodeSelector": lambda options: MatchNodeSelector(),
    "PodFitsResources": lambda options: NodeResourcesFit(),
    "NoDiskConflict": lambda options: NoDiskConflict(),
    "PodToleratesNodeTaints": lambda options: TolerateTaints(),
    "PodToleratesNodeNoExecuteTaints": lambda options: NO_EXECUTE_TAINTS,
    "CheckNodeLabelPresence": label_presence,
    "CheckServiceAffinity": lambda options: ServiceAffinity(options.service_affinity_labels),
    **volume_counts_1_13(),
    "CheckVolumeBinding": lambda options: VolumeBinding(),
    "NoVolumeZoneConflict": lambda options: VolumeZone(),
    "CheckNodeMemoryPressure": lambda options: MEMORY_PRESSURE,
    "CheckNodePIDPressure": lambda options: PID_PRESSURE,
    "CheckNodeDiskPressure": lambda options: DISK_PRESSURE,
    "MatchInterPodAffinity": lambda options: MatchInterPodAffinity(),
}

_LEAST_USED = RequestedToCapacityRatio(table_of([(0, TOP), (100, 0)], TOP))


def _ratio(options: Options) -> RequestedToCapacityRatio:
    if options.ratio is None:
        return _LEAST_USED
    # The resources of the argument came with a later release.
    points = [(point.utilization, point.score) for point in options.ratio.points]
    return RequestedToCapacityRatio(table_of(points, TOP))


SCORES: Mapping[str, ScoreFactory] = {
    **spread_scores(TOP),
    "InterPodAffinityPriority": lambda options: InterPodAffinityPriority(
        maximum=TOP, hard_pod_affinity_weight=hard_affinity_weight(options)
    ),
    **resource_scores(TOP),
    "RequestedToCapacityRatioPriority": _ratio,
    "NodePreferAvoidPodsPriority": lambda options: NodePreferAvoidPods(TOP),
    "NodeAffinityPriority": lambda options: PreferMatchingNodes(TOP),
    "TaintTolerationPriority": lambda options: PreferToleratedTaints(TOP),
    "ImageLocalityPriority": lambda options: ImageLocality(TOP),
    "EqualPriority": lambda options: EqualPriority(),
    "ResourceLimitsPriority": lambda options: ResourceLimits(),
    "NodeLabel": label_preference(TOP),
    "ServiceAntiAffinity": service_anti_affinity(TOP),
}

_DEFAULT = frozenset((
    "CheckNodeCondition", "GeneralPredicates", "NoDiskConflict", "PodToleratesNodeTaints", "MaxEBSVolumeCount",
    "MaxGCEPDVolumeCount", "MaxCSIVolumeCountPred", "MaxAzureDiskVolumeCount", "CheckVolumeBinding",
    "NoVolumeZoneConflict", "CheckNodeMemoryPressure", "CheckNodePIDPressure", "CheckNodeDiskPressure",
    "MatchInterPodAffinity",
))  # fmt: skip
_TAINTS_TELL = frozenset(
    ("CheckNodeCondition", "CheckNodeMemoryPressure", "CheckNodePIDPressure", "CheckNodeDiskPressure")
)
"""What taints say in their place, with the gate TaintNodesByCondition."""


def _taints_tell(options: Options) -> bool:
    return is_on(options, "TaintNodesByCondition", default=False)


def _filters(options: Options) -> frozenset[str]:
    return (_DEFAULT - _TAINTS_TELL) | {"CheckNodeUnschedulable"} if _taints_tell(options) else _DEFAULT


def _scores(options: Options) -> dict[str, int]:
    return {**DEFAULT_WEIGHTS, "ImageLocalityPriority": 1}


def _mandatory(options: Options) -> frozenset[str]:
    if _taints_tell(options):
        return frozenset(("PodToleratesNodeTaints", "CheckNodeUnschedulable"))
    return frozenset(("CheckNodeCondition",))


RELEASE_1_13 = Release(
    name="1.13",
    version="v1.13.0",
    maximum=TOP,
    accounting=LegacyAccounting(),
    filters=FILTERS,
    scores=SCORES,
    default_filters=_filters,
    default_scores=_scores,
    mandatory_filters=_mandatory,
    providers=cluster_autoscaler(Provider(_filters, _scores)),
    aliases=ALIASES,
    checks_claims=True,
)
