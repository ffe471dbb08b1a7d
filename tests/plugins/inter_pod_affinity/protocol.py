"""Worlds from cases of the oracle protocol, and the plugins' answers to them."""

from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np

from berth.cluster.cluster import Cluster, Incoming
from berth.framework.plugin import FITS
from berth.objects.nodes import Node
from berth.objects.pods import Pod
from berth.objects.workloads import Namespace
from berth.plugins.inter_pod_affinity import InterPodAffinityPriority, MatchInterPodAffinity

Case = dict[str, Any]


@dataclass
class World:
    cluster: Cluster
    pod: Incoming


def world_of(case: Case) -> World:
    cluster = Cluster()
    for node in case["nodes"]:
        cluster.put_node(msgspec.convert(node, Node))
    for pod in case["pods"]:
        cluster.put_pod(pod_of(pod))
    for namespace in case.get("namespaces", ()):
        cluster.put(msgspec.convert(namespace, Namespace))
    return World(cluster, cluster.incoming(pod_of(case["pod"])))


def pod_of(pod: Case) -> Pod:
    return msgspec.convert(pod | {"metadata": {"namespace": "default"} | pod["metadata"]}, Pod)


def predicate_answer(plugin: MatchInterPodAffinity, world: World) -> dict[str, Any]:
    state = plugin.prepare(world.pod, world.cluster)
    codes = plugin.filter(state)
    if (codes < 0).any():
        return {"error": plugin.reasons(state, int(codes.min()))[0]}
    names = world.cluster.nodes.names
    return {
        names[row]: list(plugin.reasons(state, int(codes[row])))
        for row in np.flatnonzero(codes != FITS).tolist()
    }


def priority_answer(
    plugin: InterPodAffinityPriority, world: World, feasible: list[str]
) -> dict[str, int] | dict[str, str]:
    rows = np.array([world.cluster.nodes.row(name) for name in feasible], dtype=np.intp)
    state = plugin.prepare(world.pod, world.cluster)
    error = plugin.error(state)
    if error is not None:
        return {"error": error}
    scores = plugin.normalize(state, plugin.score(state)[rows], rows)
    return dict(zip(feasible, scores.tolist(), strict=True))
