"""Worlds in a line, from cases of the oracle protocol too, and the plugins' answers to them."""

from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np

from berth.cluster.cluster import Cluster, Incoming
from berth.framework.plugin import FITS
from berth.objects.nodes import Node
from berth.objects.pods import Pod
from berth.objects.workloads import Namespace
from berth.plugins.inter_pod_affinity import InterPodAffinityPriority, MatchInterPodAffinity, Rules
from berth.plugins.inter_pod_affinity.scoring import Unreadable

Json = dict[str, Any]

FILTERS = {
    "1.10": MatchInterPodAffinity(Rules.EACH_TERM),
    "1.13": MatchInterPodAffinity(Rules.ALL_TERMS),
    "1.17": MatchInterPodAffinity(Rules.ALL_TERMS),
    "1.36": MatchInterPodAffinity(Rules.TODAY),
}


def priority_of(release: str, hard_pod_affinity_weight: int = 1) -> InterPodAffinityPriority:
    return {
        "1.10": InterPodAffinityPriority(Rules.EACH_TERM, 10, hard_pod_affinity_weight),
        "1.13": InterPodAffinityPriority(Rules.ALL_TERMS, 10, hard_pod_affinity_weight),
        "1.17": InterPodAffinityPriority(
            Rules.ALL_TERMS, 100, hard_pod_affinity_weight, unreadable=Unreadable.ZERO
        ),
        "1.36": InterPodAffinityPriority(
            Rules.TODAY, 100, hard_pod_affinity_weight, from_zero=False, unreadable=Unreadable.LEFT_OUT
        ),
    }[release]


@dataclass
class World:
    cluster: Cluster
    pod: Incoming


def world_of(case: Json) -> World:
    cluster = Cluster()
    for node in case["nodes"]:
        cluster.put_node(msgspec.convert(node, Node))
    for pod in case["pods"]:
        cluster.put_pod(pod_of(pod))
    for namespace in case.get("namespaces", ()):
        cluster.put(msgspec.convert(namespace, Namespace))
    return World(cluster, cluster.incoming(pod_of(case["pod"])))


def pod_of(pod: Json) -> Pod:
    return msgspec.convert(pod | {"metadata": {"namespace": "default"} | pod["metadata"]}, Pod)


def a_node(name: str, **labels: str) -> Json:
    return {"metadata": {"name": name, "labels": {"kubernetes.io/hostname": name} | labels}}


def a_pod(name: str, app: str, node: str = "", *, namespace: str = "default", **affinity: Json) -> Json:
    """A pod labelled ``app``; keywords are ``podAffinity`` and ``podAntiAffinity``."""
    return {
        "metadata": {"name": name, "namespace": namespace, "labels": {"app": app}},
        "spec": {"nodeName": node, "affinity": affinity},
    }


def required(*terms: Json) -> Json:
    return {"requiredDuringSchedulingIgnoredDuringExecution": list(terms)}


def preferred(*terms: tuple[int, Json]) -> Json:
    weighted = [{"weight": weight, "podAffinityTerm": term} for weight, term in terms]
    return {"preferredDuringSchedulingIgnoredDuringExecution": weighted}


def term(app: str, key: str = "zone", **more: Any) -> Json:
    return {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": key} | more


def predicate_answer(plugin: MatchInterPodAffinity, world: World) -> Json:
    """What the protocol says of the predicate: the nodes that fail with their reasons, or an error."""
    state = plugin.prepare(world.pod, world.cluster)
    codes = plugin.filter(state)
    if (codes < 0).any():
        return {"error": plugin.reasons(state, int(codes.min()))[0]}
    names = world.cluster.nodes.names
    return {
        names[row]: list(plugin.reasons(state, int(codes[row])))
        for row in np.flatnonzero(codes != FITS).tolist()
    }


def priority_answer(plugin: InterPodAffinityPriority, world: World, feasible: list[str]) -> Json:
    """What the protocol says of the priority: the score of every feasible node, or an error."""
    rows = np.array([world.cluster.nodes.row(name) for name in feasible], dtype=np.intp)
    state = plugin.prepare(world.pod, world.cluster)
    error = plugin.error(state)
    if error is not None:
        return {"error": error}
    scores = plugin.normalize(state, plugin.score(state)[rows], rows)
    return dict(zip(feasible, scores.tolist(), strict=True))
