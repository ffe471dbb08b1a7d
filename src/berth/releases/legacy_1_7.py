"""1.7, of which there is no Go module, hence no oracle: 1.10's arithmetic and words, with what is known to differ.

- Nodes that are not ready, out of disk, without network or cordoned are left out before any predicate is asked: they are
  not among the N of ``0/N nodes are available``.
- Every node is asked every predicate, for the release has no order of them. Its reasons come in the order of the table
  below (in the release: in the random order of a Go map). With an error on any node the decision fails.
- An empty topology key of a preferred term means hostname, zone and region: nodes that share any of them.
- NoVolumeNodeConflict reads the alpha annotation of volumes. It is on here; the release has its gate,
  PersistentLocalVolumes, off.
"""

from collections.abc import Mapping

from berth.plugins.inter_pod_affinity import DEFAULT_KEYS, InterPodAffinityPriority, Rules
from berth.plugins.node_conditions import CheckNodeCondition
from berth.plugins.selector_spread import SelectorSpread
from berth.plugins.volume_node_conflict import VolumeNodeConflict
from berth.releases import legacy_1_10
from berth.releases.legacy_common import (
    ALIASES,
    DEFAULT_WEIGHTS,
    cluster_autoscaler,
    hard_affinity_weight,
    is_on,
)
from berth.releases.release import FilterFactory, Options, Provider, Release, ScoreFactory

_SINCE_1_8 = frozenset(("CheckNodeCondition", "CheckNodeUnschedulable", "CheckVolumeBinding"))

FILTERS: Mapping[str, FilterFactory] = {
    **{name: make for name, make in legacy_1_10.FILTERS.items() if name not in _SINCE_1_8},
    "NoVolumeNodeConflict": lambda options: VolumeNodeConflict(),
}

SCORES: Mapping[str, ScoreFactory] = {
    **{name: make for name, make in legacy_1_10.SCORES.items() if name != "ResourceLimitsPriority"},
    # Not yet the same as SelectorSpreadPriority.
    "ServiceSpreadingPriority": lambda options: SelectorSpread(legacy_1_10.TOP, services_only=True),
    "InterPodAffinityPriority": lambda options: InterPodAffinityPriority(
        Rules.EACH_TERM, legacy_1_10.TOP, hard_affinity_weight(options), any_of=DEFAULT_KEYS
    ),
}

_DEFAULT = frozenset((
    "NoDiskConflict", "NoVolumeZoneConflict", "PodToleratesNodeTaints", "CheckNodeMemoryPressure",
    "CheckNodeDiskPressure", "MaxEBSVolumeCount", "MaxGCEPDVolumeCount", "MaxAzureDiskVolumeCount",
    "MatchInterPodAffinity", "GeneralPredicates", "NoVolumeNodeConflict",
))  # fmt: skip


def _filters(options: Options) -> frozenset[str]:
    if is_on(options, "PersistentLocalVolumes", default=True):
        return _DEFAULT
    return _DEFAULT - {"NoVolumeNodeConflict"}


def _scores(options: Options) -> dict[str, int]:
    return dict(DEFAULT_WEIGHTS)


RELEASE_1_7 = Release(
    name="1.7",
    version="v1.7",
    maximum=legacy_1_10.TOP,
    accounting=legacy_1_10.ACCOUNTING,
    filters=FILTERS,
    scores=SCORES,
    default_filters=_filters,
    default_scores=_scores,
    providers=cluster_autoscaler(Provider(_filters, _scores)),
    aliases=ALIASES,
    drops=CheckNodeCondition(),
    asks_all=True,
)
