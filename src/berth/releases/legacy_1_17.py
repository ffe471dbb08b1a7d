"""1.17. Source: v1.17.17, ``algorithm/predicates`` (``predicatesOrdering``) and ``algorithmprovider/defaults``.

Predicates run as plugins of the scheduling framework already, and a plugin gives a node one reason.
"""

from collections.abc import Mapping

from berth.cluster.accounting import LegacyAccounting
from berth.framework.csi_migration import Migration
from berth.plugins.image_locality import ImageLocality
from berth.plugins.inter_pod_affinity import InterPodAffinityPriority, MatchInterPodAffinity, Rules
from berth.plugins.inter_pod_affinity.filtering import AFFINITY, REASONS
from berth.plugins.inter_pod_affinity.scoring import Unreadable
from berth.plugins.no_disk_conflict import NoDiskConflict
from berth.plugins.node_affinity import MatchNodeSelector, PreferMatchingNodes
from berth.plugins.node_name import NodeName
from berth.plugins.node_ports import NodePorts
from berth.plugins.node_prefer_avoid_pods import NodePreferAvoidPods
from berth.plugins.node_resources_fit import NodeResourcesFit
from berth.plugins.node_unschedulable import NodeUnschedulable
from berth.plugins.pod_topology_spread import EVEN_PODS, EvenPodsScore, SpreadFilter
from berth.plugins.requested_to_capacity_ratio import Average, RequestedToCapacityRatio, table_of
from berth.plugins.resource_limits import ResourceLimits
from berth.plugins.service_affinity import ServiceAffinity
from berth.plugins.taint_toleration import PreferToleratedTaints, TolerateTaints
from berth.plugins.volume_binding import BindingRules, SelectedNode, VolumeBinding
from berth.plugins.volume_zone import VolumeZone
from berth.releases.counted_volumes import volume_counts_1_17
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
from berth.releases.release import FilterFactory, Options, Provider, Reasons, Release, ScoreFactory

TOP = 100
POLICY_TOP = 10
"""The highest score in a Policy's arguments."""

FILTERS: Mapping[str, FilterFactory] = {
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
    "CheckServiceAffinity": lambda options: ServiceAffinity(
        options.service_affinity_labels, counts_unknown_nodes=False
    ),
    **volume_counts_1_17(),
    "CheckVolumeBinding": lambda options: VolumeBinding(
        BindingRules(
            selected_node=SelectedNode.PINNED,
            sought_by_annotation=True,
            migration=Migration.of_1_17(options.feature_gates),
        )
    ),
    "NoVolumeZoneConflict": lambda options: VolumeZone(
        unbound='PersistentVolumeClaim was not found: "{name}"'
    ),
    "EvenPodsSpread": lambda options: SpreadFilter(EVEN_PODS),
    "MatchInterPodAffinity": lambda options: MatchInterPodAffinity(Rules.ALL_TERMS),
}


_LEAST_USED = RequestedToCapacityRatio(table_of([(0, TOP), (100, 0)], TOP), average=Average.OF_POSITIVE)


def _ratio(options: Options) -> RequestedToCapacityRatio:
    if options.ratio is None:
        return _LEAST_USED
    scale = TOP // POLICY_TOP
    points = [(point.utilization, point.score * scale) for point in options.ratio.points]
    # A weight that is not said is 1; of a resource that is named twice the last weight holds.
    resources = tuple({name: weight or 1 for name, weight in options.ratio.resources}.items())
    return RequestedToCapacityRatio(
        table_of(points, TOP), resources or _LEAST_USED.resources, Average.OF_POSITIVE
    )


SCORES: Mapping[str, ScoreFactory] = {
    **spread_scores(TOP, all_must_match=True),
    "InterPodAffinityPriority": lambda options: InterPodAffinityPriority(
        Rules.ALL_TERMS, TOP, hard_affinity_weight(options), unreadable=Unreadable.ZERO
    ),
    **resource_scores(TOP),
    "RequestedToCapacityRatioPriority": _ratio,
    "NodePreferAvoidPodsPriority": lambda options: NodePreferAvoidPods(TOP),
    "NodeAffinityPriority": lambda options: PreferMatchingNodes(TOP),
    "TaintTolerationPriority": lambda options: PreferToleratedTaints(TOP),
    "ImageLocalityPriority": lambda options: ImageLocality(TOP),
    "ResourceLimitsPriority": lambda options: ResourceLimits(),
    "EvenPodsSpreadPriority": lambda options: EvenPodsScore(TOP),
    "NodeLabel": label_preference(TOP),
    "ServiceAntiAffinity": service_anti_affinity(TOP, empty_counts=False),
}

_DEFAULT = frozenset((
    "CheckNodeUnschedulable", "GeneralPredicates", "NoDiskConflict", "PodToleratesNodeTaints", "MaxEBSVolumeCount",
    "MaxGCEPDVolumeCount", "MaxCSIVolumeCountPred", "MaxAzureDiskVolumeCount", "CheckVolumeBinding",
    "NoVolumeZoneConflict", "MatchInterPodAffinity",
))  # fmt: skip


def _spreads_evenly(options: Options) -> bool:
    return is_on(options, "EvenPodsSpread", default=True)


def _filters(options: Options) -> frozenset[str]:
    return _DEFAULT | {"EvenPodsSpread"} if _spreads_evenly(options) else _DEFAULT


def _scores(options: Options) -> dict[str, int]:
    weights = {**DEFAULT_WEIGHTS, "ImageLocalityPriority": 1}
    if _spreads_evenly(options):
        weights["EvenPodsSpreadPriority"] = 1
    if is_on(options, "ResourceLimitsPriorityFunction", default=False):
        weights["ResourceLimitsPriority"] = 1
    return weights


def _mandatory(options: Options) -> frozenset[str]:
    return frozenset(("PodToleratesNodeTaints", "CheckNodeUnschedulable"))


def one_reason(reasons: Reasons) -> Reasons:
    """Return the first reason that no preemption could do away with, else the first one."""
    # Pod affinity's second reason is the only one of that kind that ever comes after another.
    return (REASONS[AFFINITY],) if REASONS[AFFINITY] in reasons else reasons[:1]


RELEASE_1_17 = Release(
    name="1.17",
    version="v1.17.17",
    maximum=TOP,
    accounting=LegacyAccounting(init_containers_stay=True),
    filters=FILTERS,
    scores=SCORES,
    default_filters=_filters,
    default_scores=_scores,
    mandatory_filters=_mandatory,
    providers=cluster_autoscaler(Provider(_filters, _scores)),
    aliases=ALIASES,
    checks_claims=True,
    reported=one_reason,
)
