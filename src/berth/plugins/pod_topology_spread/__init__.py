"""Pods of a kind spread evenly over the domains of topology keys: EvenPodsSpread (1.17), PodTopologySpread (1.36)."""

from berth.plugins.pod_topology_spread.constraints import (
    EVEN_PODS,
    SYSTEM_DEFAULTS,
    TOPOLOGY_SPREAD,
    SpreadRules,
)
from berth.plugins.pod_topology_spread.filtering import SpreadFilter
from berth.plugins.pod_topology_spread.scoring import EvenPodsScore, SpreadScore

__all__ = [
    "EVEN_PODS", "SYSTEM_DEFAULTS", "TOPOLOGY_SPREAD", "EvenPodsScore", "SpreadFilter", "SpreadRules", "SpreadScore",
]  # fmt: skip
