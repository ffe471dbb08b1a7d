"""The scheduling module's profiles, with 1.13's arithmetic (without the gate TaintNodesByCondition)."""

from collections.abc import Mapping
from typing import Any

from berth.errors import InputError
from berth.framework.plugin import ScorePlugin
from berth.framework.profile import NamedFilter, Profile, WeightedScore
from berth.plugins.inter_pod_affinity import InterPodAffinityPriority, MatchInterPodAffinity
from berth.plugins.node_affinity import MatchNodeSelector, PreferMatchingNodes
from berth.plugins.node_conditions import DISK_PRESSURE, MEMORY_PRESSURE, PID_PRESSURE, CheckNodeCondition
from berth.plugins.node_load_forecast import NodeLoadForecast
from berth.plugins.node_ports import NodePorts
from berth.plugins.node_resources_fit import NodeResourcesFit
from berth.plugins.resource_allocation import (
    ResourceAllocation,
    balanced_allocation,
    least_requested,
    most_requested,
)
from berth.plugins.selector_spread import SelectorSpread
from berth.plugins.taint_toleration import PreferToleratedTaints, TolerateTaints
from berth.plugins.volume_binding import VolumeBinding

MAXIMUM = 10


def addition_profile(weights: Mapping[str, int], hard_pod_affinity_weight: int = 1) -> Profile:
    """Make the profile that decides which node gains a pod.

    Parameters
    ----------
    weights : dict of priority name to int
        A priority that is not named is not computed; one of weight 0 is, and adds nothing.

    Raises
    ------
    InputError
        There is no such priority.
    """
    filters = (
        NamedFilter("CheckNodeCondition", CheckNodeCondition()),
        NamedFilter("PodFitsResources", NodeResourcesFit()),
        NamedFilter("PodFitsHostPorts", NodePorts()),
        NamedFilter("PodMatchNodeSelector", MatchNodeSelector()),
        NamedFilter("PodToleratesNodeTaints", TolerateTaints()),
        NamedFilter("CheckVolumeBinding", VolumeBinding()),
        NamedFilter("CheckNodeMemoryPressure", MEMORY_PRESSURE),
        NamedFilter("CheckNodePIDPressure", PID_PRESSURE),
        NamedFilter("CheckNodeDiskPressure", DISK_PRESSURE),
        NamedFilter("MatchInterPodAffinity", MatchInterPodAffinity()),
    )
    known: dict[str, ScorePlugin[Any]] = {
        "LeastRequestedPriority": ResourceAllocation(least_requested, MAXIMUM),
        "BalancedResourceAllocation": ResourceAllocation(balanced_allocation, MAXIMUM),
        "SelectorSpreadPriority": SelectorSpread(MAXIMUM),
        "NodeAffinityPriority": PreferMatchingNodes(MAXIMUM),
        "TaintTolerationPriority": PreferToleratedTaints(MAXIMUM),
        "InterPodAffinityPriority": InterPodAffinityPriority(
            maximum=MAXIMUM, hard_pod_affinity_weight=hard_pod_affinity_weight
        ),
        "NodeLoadForecastPriority": NodeLoadForecast(MAXIMUM),
        "MostRequestedPriority": ResourceAllocation(most_requested, MAXIMUM),
    }
    for name in weights:
        if name not in known:
            raise InputError("module.addWeights", name, f"one of {', '.join(known)}")
    return Profile(
        filters, tuple(WeightedScore(name, known[name], weight) for name, weight in weights.items())
    )
