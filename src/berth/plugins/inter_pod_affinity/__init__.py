"""Inter-pod affinity: pods that want, or shun, the company of other pods within a topology domain."""

from berth.plugins.inter_pod_affinity.filtering import MatchInterPodAffinity
from berth.plugins.inter_pod_affinity.scoring import InterPodAffinityPriority
from berth.plugins.inter_pod_affinity.tally import DEFAULT_KEYS
from berth.plugins.inter_pod_affinity.terms import Rules

__all__ = ["DEFAULT_KEYS", "InterPodAffinityPriority", "MatchInterPodAffinity", "Rules"]
