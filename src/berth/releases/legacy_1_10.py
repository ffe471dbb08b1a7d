"""1.10. Source: v1.10.13, ``algorithm/predicates`` (``predicatesOrdering``) and ``algorithmprovider/defaults``."""

from collections.abc import Mapping

from berth.cluster.accounting import (
    CPU,
    EPHEMERAL_STORAGE,
    MEMORY,
    NVIDIA_GPU,
    LegacyAccounting,
    is_scalar_1_10,
)
from berth.plugins.equal_priority import EqualPriority
from berth.plugins.image_locality import ImageLocality, ImageRule
from berth.plugins.inter_pod_affinity import InterPodAffinityPriority, MatchInterPodAffinity, Rules
from berth.plugins.no_disk_conflict import NoDiskConflict
from berth.plugins.node_affinity import MatchNodeSelector, PreferMatchingNodes
from berth.plugins.node_conditions import DISK_PRESSURE, MEMORY_PRESSURE, CheckNodeCondition
from berth.plugins.node_name import NodeName
from berth.plugins.node_ports import NodePorts
from berth.plugins.node_prefer_avoid_pods import NodePreferAvoidPods
from berth.plugins.node_resources_fit import NodeResourcesFit
from berth.plugins.node_unschedulable import NodeUnschedulable
from berth.plugins.resource_limits import ResourceLimits
from berth.plugins.service_affinity import ServiceAffinity
from berth.plugins.taint_toleration import PreferToleratedTaints, TolerateTaints
from berth.plugins.volume_binding import BindingRules, SelectedNode, VolumeBinding
from berth.plugins.volume_zone import VolumeZone
from berth.releases.counted_volumes import volume_counts_1_10
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

ACCOUNTING = LegacyAccounting(counts=is_scalar_1_10)
RESOURCES = NodeResourcesFit(always=(CPU, MEMORY, NVIDIA_GPU, EPHEMERAL_STORAGE))
SELECTOR = MatchNodeSelector(match_fields=False)
BINDING = BindingRules(
    missing_claim='error getting PVC "{name}": persistentvolumeclaim "{name}" not found',
    unbound="pod has unbound PersistentVolumeClaims",
    selected_node=SelectedNode.IGNORED,
    prebound_counts=True,
    binding_mode_required=False,
    match_fields=False,
    volume_modes=False,
    available_only=False,
    provisions=False,
)

FILTERS: Mapping[str, FilterFactory] = {
    "CheckNodeCondition": lambda options: CheckNodeCondition(),
    "CheckNodeUnschedulable": lambda options: NodeUnschedulable(tolerable=False),
    "GeneralPredicates": lambda options: general_predicates(RESOURCES, SELECTOR),
    "HostName": lambda options: NodeName(),
    "PodFitsHostPorts": lambda options: NodePorts(),
    "MatchNodeSelector": lambda options: SELECTOR,
    "PodFitsResources": lambda options: RESOURCES,
    "NoDiskConflict": lambda options: NoDiskConflict(),
    "PodToleratesNodeTaints": lambda options: TolerateTaints(),
    "PodToleratesNodeNoExecuteTaints": lambda options: NO_EXECUTE_TAINTS,
    "CheckNodeLabelPresence": label_presence,
    "CheckServiceAffinity": lambda options: ServiceAffinity(options.service_affinity_labels),
    **volume_counts_1_10(),
    "CheckVolumeBinding": lambda options: VolumeBinding(BINDING),
    "NoVolumeZoneConflict": lambda options: VolumeZone(class_annotation=False, binding_mode_required=False),
    "CheckNodeMemoryPressure": lambda options: MEMORY_PRESSURE,
    "CheckNodeDiskPressure": lambda options: DISK_PRESSURE,
    "MatchInterPodAffinity": lambda options: MatchInterPodAffinity(Rules.EACH_TERM),
}

SCORES: Mapping[str, ScoreFactory] = {
    **spread_scores(TOP),
    "InterPodAffinityPriority": lambda options: InterPodAffinityPriority(
        Rules.EACH_TERM, TOP, hard_affinity_weight(options)
    ),
    **resource_scores(TOP),
    "NodePreferAvoidPodsPriority": lambda options: NodePreferAvoidPods(TOP),
    "NodeAffinityPriority": lambda options: PreferMatchingNodes(TOP),
    "TaintTolerationPriority": lambda options: PreferToleratedTaints(TOP),
    "ImageLocalityPriority": lambda options: ImageLocality(TOP, ImageRule.OWN_SIZE),
    "EqualPriority": lambda options: EqualPriority(),
    "ResourceLimitsPriority": lambda options: ResourceLimits(),
    "NodeLabel": label_preference(TOP),
    "ServiceAntiAffinity": service_anti_affinity(TOP, counts_terminating=True),
}

_DEFAULT = frozenset((
    "CheckNodeCondition", "GeneralPredicates", "NoDiskConflict", "PodToleratesNodeTaints", "MaxEBSVolumeCount",
    "MaxGCEPDVolumeCount", "MaxAzureDiskVolumeCount", "CheckVolumeBinding", "NoVolumeZoneConflict",
    "CheckNodeMemoryPressure", "CheckNodeDiskPressure", "MatchInterPodAffinity",
))  # fmt: skip


def _taints_tell(options: Options) -> bool:
    return is_on(options, "TaintNodesByCondition", default=False)


def _filters(options: Options) -> frozenset[str]:
    return _DEFAULT - {"CheckNodeCondition"} if _taints_tell(options) else _DEFAULT


def _scores(options: Options) -> dict[str, int]:
    return dict(DEFAULT_WEIGHTS)


def _mandatory(options: Options) -> frozenset[str]:
    return frozenset(("PodToleratesNodeTaints" if _taints_tell(options) else "CheckNodeCondition",))


RELEASE_1_10 = Release(
    name="1.10",
    version="v1.10.13",
    maximum=TOP,
    accounting=ACCOUNTING,
    filters=FILTERS,
    scores=SCORES,
    default_filters=_filters,
    default_scores=_scores,
    mandatory_filters=_mandatory,
    providers=cluster_autoscaler(Provider(_filters, _scores)),
    aliases=ALIASES,
    checks_claims=True,
)
