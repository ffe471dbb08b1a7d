"""What the tables of the old releases share. Names are those of the time; no release is described here."""

from collections.abc import Mapping
from typing import Any

from berth.errors import InputError
from berth.framework.compose import AllOf
from berth.framework.plugin import ScorePlugin
from berth.plugins.node_affinity import MatchNodeSelector
from berth.plugins.node_label import CheckNodeLabelPresence, PreferNodeLabels
from berth.plugins.node_name import NodeName
from berth.plugins.node_ports import NodePorts
from berth.plugins.node_resources_fit import NodeResourcesFit
from berth.plugins.resource_allocation import (
    ResourceAllocation,
    balanced_allocation,
    least_requested,
    most_requested,
)
from berth.plugins.selector_spread import SelectorSpread
from berth.plugins.service_affinity import ServiceAntiAffinity
from berth.plugins.taint_toleration import TolerateTaints
from berth.releases.release import LabelRule, Options, Provider, ScoreFactory, Weights

AVOID_PODS_WEIGHT = 10_000
"""Enough to outweigh all other priorities."""

NO_EXECUTE_TAINTS = TolerateTaints(effects=("NoExecute",))
ALIASES = {"PodFitsPorts": "PodFitsHostPorts"}
"""The name of 1.0."""

DEFAULT_WEIGHTS: Mapping[str, int] = {
    "SelectorSpreadPriority": 1,
    "InterPodAffinityPriority": 1,
    "LeastRequestedPriority": 1,
    "BalancedResourceAllocation": 1,
    "NodePreferAvoidPodsPriority": AVOID_PODS_WEIGHT,
    "NodeAffinityPriority": 1,
    "TaintTolerationPriority": 1,
}
"""The seven priorities that are on by default in every release from 1.7 to 1.17."""


def is_on(options: Options, gate: str, default: bool) -> bool:
    """Tell whether a feature gate is on."""
    return options.feature_gates.get(gate, default)


def general_predicates(
    resources: NodeResourcesFit | None = None, selector: MatchNodeSelector | None = None
) -> AllOf:
    """Make GeneralPredicates: resources first, then what all pods need."""
    return AllOf(
        (resources or NodeResourcesFit(), NodeName(), NodePorts(), selector or MatchNodeSelector()),
    )


def label_presence(options: Options) -> CheckNodeLabelPresence:
    """Make CheckNodeLabelPresence; without its argument every node passes."""
    return CheckNodeLabelPresence(*_as_lists(options.labels_presence))


def label_preference(maximum: int) -> ScoreFactory:
    """Make NodeLabel, which is there only with its argument."""
    return lambda options: (
        PreferNodeLabels(maximum, *_as_lists(options.label_preference)) if options.label_preference else None
    )


def service_anti_affinity(
    maximum: int, *, counts_terminating: bool = False, empty_counts: bool = True
) -> ScoreFactory:
    """Make ServiceAntiAffinity, which is there only with its argument."""

    def make(options: Options) -> ServiceAntiAffinity | None:
        label = options.service_anti_affinity_label
        return ServiceAntiAffinity(label, maximum, counts_terminating, empty_counts) if label else None

    return make


def resource_scores(maximum: int) -> dict[str, ScoreFactory]:
    """Make the priorities on how full a node is; they are alike in all releases."""
    kernels = {
        "LeastRequestedPriority": least_requested,
        "BalancedResourceAllocation": balanced_allocation,
        "MostRequestedPriority": most_requested,
    }
    return {name: always(ResourceAllocation(kernel, maximum)) for name, kernel in kernels.items()}


def always(plugin: ScorePlugin[Any]) -> ScoreFactory:
    """Return the same plugin whatever the options."""
    return lambda options: plugin


def spread_scores(maximum: int, *, all_must_match: bool = False) -> dict[str, ScoreFactory]:
    """Make the priorities that spread the pods of a service or a controller.

    From 1.8 on ServiceSpreadingPriority is no different: it takes the selectors that were gathered for the other one.
    """
    plugin = SelectorSpread(maximum, all_must_match=all_must_match)
    return {
        "SelectorSpreadPriority": always(plugin),
        "ServiceSpreadingPriority": always(plugin),
    }


def hard_affinity_weight(options: Options) -> int:
    """Return the weight of required affinity in the priorities.

    Raises
    ------
    InputError
        The releases refuse it.
    """
    weight = options.hard_pod_affinity_weight
    if not 1 <= weight <= 100:
        raise InputError("hardPodAffinitySymmetricWeight", weight, "from 1 to 100")
    return weight


def cluster_autoscaler(default: Provider) -> dict[str, Provider]:
    """Make the provider that fills nodes up rather than keeping them free."""

    def fill_up(options: Options) -> dict[str, int]:
        weights = dict(default.scores(options))
        weights["MostRequestedPriority"] = weights.pop("LeastRequestedPriority")
        return weights

    scores: Weights = fill_up
    return {"DefaultProvider": default, "ClusterAutoscalerProvider": Provider(default.filters, scores)}


def _as_lists(rule: LabelRule | None) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the labels that must be there, and those that must not."""
    if rule is None:
        return (), ()
    return (rule.labels, ()) if rule.presence else ((), rule.labels)
