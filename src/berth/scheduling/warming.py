"""Exercises for compiled loops: inputs as small as can be, of the types that they meet in earnest."""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import msgspec
import numpy as np

from berth.cluster.cluster import Cluster, Incoming
from berth.framework.profile import Profile
from berth.objects.base import LabelSelector, ObjectMeta
from berth.objects.nodes import Node, NodeSpec, NodeStatus, Taint
from berth.objects.pods import (
    Affinity,
    Container,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    PodSpec,
    ResourceRequirements,
    WeightedPodAffinityTerm,
)
from berth.objects.workloads import Service, ServiceSpec
from berth.plugins.service_pods_on_node import PodsOnNode
from berth.scheduling.batch import place_columns
from berth.scheduling.batch_kernels import BATCH
from berth.scheduling.board import CLOSED, Layout, new_board
from berth.scheduling.compiled import Group
from berth.scheduling.decide import decide
from berth.scheduling.evaluation import Evaluation
from berth.scheduling.look_kernels import LOOK
from berth.scheduling.running import run_board
from berth.scheduling.stream import place_stream
from berth.scheduling.stream_kernels import STREAM
from berth.scheduling.ties import TieBreaker

Exercise = Callable[[], object]

_LABELS = {"app": "x"}


def exercises(profile: Profile) -> Iterable[tuple[Group[Any], Exercise]]:
    """Return the groups of loops that place pods, each with its exercise under a profile."""
    return (
        (BATCH, partial(_batches, profile)),
        (STREAM, partial(_stream, profile)),
        (LOOK, partial(_look, profile)),
    )


def _cluster() -> tuple[Cluster, list[Incoming]]:
    """Return two nodes with room for all, one of them tainted, and pods: of no service, of one, avoiding its like."""
    cluster = Cluster()
    status = NodeStatus(allocatable={"cpu": "99", "memory": "99Gi", "pods": "99"})
    for name, taints in (("n1", ()), ("n2", (Taint(key="x", effect="PreferNoSchedule"),))):
        labels = {"kubernetes.io/hostname": name, "topology.kubernetes.io/zone": name, "rack": "r"}
        meta, spec_of_node = ObjectMeta(name=name, labels=labels), NodeSpec(taints=taints)
        cluster.put_node(Node(metadata=meta, spec=spec_of_node, status=status))
    cluster.put(Service(metadata=ObjectMeta(name="x", namespace="x"), spec=ServiceSpec(selector=_LABELS)))
    asked = ResourceRequirements(requests={"cpu": "1", "memory": "1Mi"})
    spec = PodSpec(containers=(Container(name="x", resources=asked),))
    like = LabelSelector(match_labels={"app": "shy"})
    by_host, by_rack = (
        PodAffinityTerm(label_selector=like, topology_key=key) for key in ("kubernetes.io/hostname", "rack")
    )
    # By rack it counts as a filter, whatever the profile scores; by host as a score.
    avoided = PodAffinity(
        required=(by_rack,), preferred=(WeightedPodAffinityTerm(weight=1, pod_affinity_term=by_host),)
    )
    shy = msgspec.structs.replace(spec, affinity=Affinity(pod_anti_affinity=avoided))
    pods = (
        Pod(metadata=ObjectMeta(namespace="x", labels=labels), spec=of)
        for labels, of in (({}, spec), (_LABELS, spec), ({"app": "shy"}, shy))
    )
    return cluster, [cluster.incoming(pod) for pod in pods]


def _look(profile: Profile) -> None:
    cluster, pods = _cluster()
    for pod in pods:
        decide(Evaluation(profile, pod, cluster), TieBreaker())


def _batches(profile: Profile) -> None:
    cluster, pods = _cluster()
    for pod in pods:
        place_columns(Evaluation(profile, pod, cluster), 2, TieBreaker())
    # And pods that leave: one from each of two nodes.
    part = PodsOnNode(np.ones(2, dtype=np.int64), np.array([2]), 10)
    levels = np.array([[1, 1], [CLOSED, CLOSED]], dtype=np.int32)
    layout = Layout.of(part, np.arange(2))
    board = new_board(layout, np.arange(2), levels, 2, 0)
    run_board(board, part, np.ones(1, np.int64), 2, TieBreaker(), lambda board, status: None)


def _stream(profile: Profile) -> None:
    cluster, pods = _cluster()
    evaluations = [Evaluation(profile, pod, cluster) for pod in pods]
    # The last one has a pod that is decided alone.
    for order in ([0, 0], [1, 0, 1], [2, 0]):
        place_stream(evaluations, np.array(order, dtype=np.int32), TieBreaker())
