"""Pods that are lifted off their nodes for a moment, and what preemption reads of pods."""

import numpy as np
import pytest
from msgspec.structs import replace

from berth.cluster.arrays import NONE
from berth.objects.base import LabelSelector
from berth.objects.pods import PodAffinity, PodAffinityTerm, PodCondition
from tests.builders import HOST, a_cluster, a_node, a_pod
from tests.cluster.model import node_state

APART = PodAffinity(required=(PodAffinityTerm(label_selector=LabelSelector(), topology_key=HOST),))


def test_a_lifted_pod_holds_nothing_and_comes_back_as_it_was() -> None:
    cluster = a_cluster(
        a_node("n1"),
        pods=[
            a_pod("a", node="n1", cpu="1", host_ports=(80,), anti_affinity=APART),
            a_pod("b", node="n1", cpu="2"),
        ],
    )
    alone = a_cluster(a_node("n1"), pods=[a_pod("b", node="n1", cpu="2")])
    before, version = node_state(cluster, 0), cluster.log.version
    pod = cluster.pods.find(cluster.namespaces.id("default"), "a")
    row = cluster.lift(pod)
    assert (row, int(cluster.pods.node_row[pod])) == (0, NONE)
    assert node_state(cluster, 0) == node_state(alone, 0)
    assert not any(cluster.affinity_pods.values())
    cluster.lower(pod, row)
    assert node_state(cluster, 0) == before
    assert cluster.pods.node_row[pod] == 0
    changes = cluster.log.since(version)
    assert changes is not None
    assert (changes.pods, changes.rows.tolist()) == ([], [0])


def test_starts_and_priorities_are_columns() -> None:
    cluster = a_cluster(
        a_node("n1"),
        pods=[a_pod("a", node="n1", started=1_700_000_000, priority=-7), a_pod("b", node="n1")],
    )
    pods = cluster.pods
    assert pods.column("started").tolist() == [1_700_000_000, 0]
    assert cluster.specs.priority()[pods.column("spec_id")].tolist() == [-7, 0]
    assert [cluster.specs[int(i)].priority for i in pods.column("spec_id")] == [-7, 0]


@pytest.mark.parametrize(
    ("status", "reason", "wanted"),
    [
        ("True", "PreemptionByScheduler", True),
        ("False", "PreemptionByScheduler", False),
        ("True", "EvictionByEvictionAPI", False),
    ],
)
def test_the_first_disruption_target_tells_whether_a_pod_is_preempted(
    status: str, reason: str, wanted: bool
) -> None:
    pod = a_pod("a", node="n1", preempted=True)
    first = PodCondition(type="DisruptionTarget", status=status, reason=reason)
    conditions = (PodCondition(type="Ready", status="True"), first, *pod.status.conditions)
    cluster = a_cluster(pods=[replace(pod, status=replace(pod.status, conditions=conditions))])
    assert cluster.pods.column("preempted").tolist() == [wanted]
    assert np.dtype(bool) == cluster.pods.column("preempted").dtype
