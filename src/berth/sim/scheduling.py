"""Runs a workload file: its cluster in 1.36's accounting, its pods by 1.36's default profile, every node scored."""

from collections.abc import Callable, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from berth.cluster.arrays import NONE
from berth.cluster.cluster import Cluster, Incoming
from berth.cluster.pods import PodIds, PodRows, PodValues
from berth.framework.profile import Profile
from berth.objects.decode import decode
from berth.objects.nodes import Node
from berth.objects.pods import Pod
from berth.objects.workloads import Namespace, Service
from berth.releases import RELEASES
from berth.releases.profiles import provider_profile
from berth.releases.release import Options
from berth.scheduling.evaluations import Evaluations
from berth.scheduling.pending import place_all
from berth.scheduling.ties import TieBreaker
from berth.sim.made_cluster import MadeCluster, PodStream
from berth.sim.workload_files import Size, WorkloadFile

RELEASE = "1.36"
_PODS_AT_A_TIME = 65_536

Undo = Callable[[], None]


def prepare(file: WorkloadFile, size: Size) -> Callable[[], Undo]:
    """Make the cluster of a workload; return one run of its measured pods, which returns what takes it back."""
    made = MadeCluster(file, size)
    cluster, profile, ties = filled_cluster(made), default_profile(), TieBreaker()
    stream = made.measured()
    patterns = patterns_of(cluster, stream)
    counter = ties.counter

    def run() -> Undo:
        pods = schedule(cluster, profile, patterns, stream.order, ties)

        def undo() -> None:
            # In parts: what went is kept for a moment, to be put back.
            for start in range(0, len(pods), _PODS_AT_A_TIME):
                cluster.remove_pods(pods[start : start + _PODS_AT_A_TIME])
            ties.counter = counter

        return undo

    return run


def default_profile() -> Profile:
    """Return what is measured."""
    return provider_profile(RELEASES[RELEASE], Options())


def schedule(
    cluster: Cluster,
    profile: Profile,
    patterns: Sequence[Incoming],
    order: NDArray[np.int32],
    ties: TieBreaker,
) -> PodIds:
    """Schedule pods one after another; return those that found a node, as counted there.

    The one place where the benchmarks call the engine. Nothing is kept from one call to the next.
    """
    placed = place_all(Evaluations(profile, cluster), patterns, order, ties)
    return placed.pod[placed.pod != NONE]


def filled_cluster(made: MadeCluster) -> Cluster:
    """Make the cluster with its existing pods: placed in turn, or scheduled as those that are measured will be."""
    cluster = Cluster(RELEASES[RELEASE].accounting_for(Options()))
    for node in made.nodes():
        cluster.put_node(decode(msgspec.json.encode(node), Node))
    for namespace in made.namespaces():
        cluster.put(decode(msgspec.json.encode(namespace), Namespace))
    for service in made.services():
        cluster.put(decode(msgspec.json.encode(service), Service))
    ties = TieBreaker()
    for stream in made.existing():
        patterns = patterns_of(cluster, stream)
        if stream.placed == "in turn":
            _place_in_turn(cluster, patterns, stream.order)
        else:
            schedule(cluster, default_profile(), patterns, stream.order, ties)
    return cluster


def patterns_of(cluster: Cluster, stream: PodStream) -> list[Incoming]:
    """Return the templates of pods as the engine takes them."""
    return [cluster.incoming(decode(msgspec.json.encode(template), Pod)) for template in stream.templates]


def _place_in_turn(cluster: Cluster, patterns: Sequence[Incoming], order: NDArray[np.int32]) -> None:
    rows = PodRows()
    names = [cluster.pods.node_names.id(name) for name in cluster.nodes.names]
    for i, number in enumerate(order.tolist()):
        pattern = patterns[number]
        rows.append(
            PodValues(
                name="",
                uid="",
                namespace_id=pattern.namespace_id,
                spec_id=pattern.spec_id,
                labels_id=pattern.labels_id,
                owner_id=pattern.owners_id,
                node_name_id=names[i % len(names)],
            )
        )
    cluster.add_pods(rows)
