"""The scheduling module's profile, with 1.13's arithmetic (without the gate TaintNodesByCondition)."""

from collections.abc import Mapping
from typing import Any

from berth.errors import InputError
from berth.framework.plugin import ScorePlugin
from berth.framework.profile import NamedFilter, Profile, WeightedScore
from berth.plugins.node_load_forecast import NodeLoadForecast
from berth.releases.legacy_1_13 import RELEASE_1_13
from berth.releases.release import Options

MAXIMUM = RELEASE_1_13.maximum

FILTERS = {
    "CheckNodeCondition": "CheckNodeCondition",
    "PodFitsResources": "PodFitsResources",
    "PodFitsHostPorts": "PodFitsHostPorts",
    "PodMatchNodeSelector": "MatchNodeSelector",
    "PodToleratesNodeTaints": "PodToleratesNodeTaints",
    "CheckVolumeBinding": "CheckVolumeBinding",
    "CheckNodeMemoryPressure": "CheckNodeMemoryPressure",
    "CheckNodePIDPressure": "CheckNodePIDPressure",
    "CheckNodeDiskPressure": "CheckNodeDiskPressure",
    "MatchInterPodAffinity": "MatchInterPodAffinity",
}
"""The predicates in the module's order, with the names that 1.13 has for them."""


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
    options = Options(hard_pod_affinity_weight=hard_pod_affinity_weight)
    known = priorities(options)
    for name in weights:
        if name not in known:
            raise InputError("module.addWeights", name, f"one of {', '.join(known)}")
    return Profile(
        tuple(NamedFilter(name, RELEASE_1_13.filters[theirs](options)) for name, theirs in FILTERS.items()),
        tuple(WeightedScore(name, known[name], weight) for name, weight in weights.items()),
    )


def priorities(options: Options) -> dict[str, ScorePlugin[Any]]:
    """Return every priority that an addition can be scored by: 1.13's that need no argument, and the forecast."""
    found: dict[str, ScorePlugin[Any]] = {"NodeLoadForecastPriority": NodeLoadForecast(MAXIMUM)}
    for name, make in RELEASE_1_13.scores.items():
        plugin = make(options)
        if plugin is not None:
            found[name] = plugin
    return found
