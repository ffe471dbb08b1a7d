"""Does the node declare the features that the pod needs? NodeDeclaredFeatures.

Source: 1.36, ``plugins/nodedeclaredfeatures`` and ``component-helpers/nodedeclaredfeatures/features``.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from berth.cluster.arrays import ALL_ROWS, IntColumn, Rows
from berth.cluster.cluster import Cluster, Incoming
from berth.cluster.nodes import by_interned
from berth.framework.plugin import FITS, BatchKind, FilterPlugin
from berth.objects.pods import PodSpec

RESTART_ALL = "RestartAllContainersOnContainerExits"
USER_NAMESPACES = "UserNamespacesHostNetworkSupport"

KNOWN = (
    "ExtendWebSocketsToKubelet",
    "InPlacePodLevelResourcesVerticalScaling",
    "InPlacePodVerticalScalingInitContainers",
    RESTART_ALL,
    USER_NAMESPACES,
)
"""All features that 1.36 knows, sorted."""


def read_features(declared: Sequence[str]) -> frozenset[str]:
    """Return the known features of a list, as upstream reads it: it takes it to be sorted, and misses what is not."""
    found, known = set(), list(KNOWN)
    for feature in declared:
        while known and known[0] < feature:
            del known[0]
        if known and known[0] == feature:
            found.add(known.pop(0))
    return frozenset(found)


def needed_features(spec: PodSpec) -> frozenset[str]:
    """Return the features, of those that 1.36 knows, that the pod can't do without on its node."""
    needed = set()
    rules = (r for c in (*spec.containers, *spec.init_containers) for r in c.restart_policy_rules)
    if any(rule.action == "RestartAllContainers" for rule in rules):
        needed.add(RESTART_ALL)
    if spec.host_network and spec.host_users is False:
        needed.add(USER_NAMESPACES)
    return frozenset(needed)


@dataclass(frozen=True, slots=True)
class Needed:
    """The features that the pod needs."""

    cluster: Cluster
    features: frozenset[str]


@dataclass(frozen=True, slots=True)
class NodeDeclaredFeatures(FilterPlugin[Needed]):
    """The node's status lists the features.

    Attributes
    ----------
    enabled : bool
        The gate NodeDeclaredFeatures; without it every node will do.
    """

    enabled: bool = True

    name = "NodeDeclaredFeatures"
    reads_pods = False

    def skips(self, pod: Incoming, cluster: Cluster) -> bool:
        return not self.enabled or not needed_features(pod.info.spec)

    def prepare(self, pod: Incoming, cluster: Cluster) -> Needed:
        return Needed(cluster, needed_features(pod.info.spec) if self.enabled else frozenset())

    def is_idle(self, state: Needed) -> bool:
        return not state.features

    def filter(self, state: Needed, rows: Rows = ALL_ROWS, placed: IntColumn | int = 0) -> IntColumn:
        nodes = state.cluster.nodes
        if not state.features:
            return np.zeros(nodes.n_rows, dtype=np.int64)[rows]
        sets = nodes.feature_sets.items
        return by_interned(
            nodes.features_id[rows], len(sets), lambda i: int(not state.features <= read_features(sets[i]))
        )

    def reasons(self, state: Needed, code: int) -> tuple[str, ...]:
        return ("node(s) didn't match Pod's required features",) if code != FITS else ()

    def batch(self, state: Needed, feasible: NDArray[np.bool_]) -> BatchKind:
        return BatchKind.CONSTANT
