from typing import Any

import numpy as np
import pytest

from berth.cluster.cluster import Cluster
from berth.framework.plugin import BatchKind
from berth.framework.profile import NamedFilter, Profile
from berth.objects.base import ObjectMeta
from berth.objects.nodes import Node
from berth.objects.pods import Pod, PodSpec, PodStatus, Volume
from berth.plugins.no_disk_conflict import NoDiskConflict, conflict
from berth.scheduling.evaluation import Evaluation
from tests.plugins.volume_cases import answer, golden, read

GOLDEN = golden("volumes.jsonl.gz")


def a_disk(kind: str, **of_disk: Any) -> Volume:
    return read({"name": "v", kind: of_disk}, Volume)


def a_pod(name: str, *disks: Volume, node: str = "", phase: str = "Running") -> Pod:
    spec = PodSpec(node_name=node, volumes=disks)
    return Pod(metadata=ObjectMeta(name=name, namespace="default"), spec=spec, status=PodStatus(phase=phase))


def a_cluster(*pods: Pod) -> Cluster:
    cluster = Cluster()
    for name in ("n1", "n2"):
        cluster.put_node(Node(metadata=ObjectMeta(name=name)))
    for pod in pods:
        cluster.put_pod(pod)
    return cluster


EBS = a_disk("awsElasticBlockStore", volumeID="vol", readOnly=True)
GCE, GCE_READ = (a_disk("gcePersistentDisk", pdName="pd", readOnly=read_only) for read_only in (False, True))


def test_answers_are_those_of_the_releases() -> None:
    for record in GOLDEN:
        got = answer(NoDiskConflict(), record["case"])
        assert got == record["predicates"]["NoDiskConflict"], record["case"]["id"]


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        (EBS, EBS, True),
        (GCE, GCE_READ, True),
        (GCE_READ, GCE_READ, False),
        (GCE, EBS, False),
        (a_disk("iscsi", iqn="q", lun=0), a_disk("iscsi", iqn="q", lun=1), True),
        (a_disk("rbd", monitors=["a", "b"], image="i"), a_disk("rbd", monitors=["b"], image="i"), True),
        (a_disk("rbd", monitors=["a"], image="i"), a_disk("rbd", monitors=["b"], image="i"), False),
        (a_disk("rbd", monitors=["a"], image="i"), a_disk("rbd", monitors=["a"], image="j"), False),
        (a_disk("azureDisk", diskName="d"), a_disk("azureDisk", diskName="d"), False),
    ],
)
def test_two_disks(a: Volume, b: Volume, expected: bool) -> None:
    assert conflict(a, b) is expected
    assert conflict(b, a) is expected


def an_evaluation(cluster: Cluster, pod: Pod) -> Evaluation:
    profile = Profile((NamedFilter("NoDiskConflict", NoDiskConflict()),), ())
    return Evaluation(profile, cluster.incoming(pod), cluster)


def test_pods_that_ended_hold_no_disk() -> None:
    cluster = a_cluster(a_pod("a", GCE, node="n1"), a_pod("b", GCE, node="n2", phase="Succeeded"))
    assert an_evaluation(cluster, a_pod("c", GCE)).fits.tolist() == [False, True]


def test_placed_pods_hold_their_disks() -> None:
    cluster, plugin = a_cluster(), NoDiskConflict()
    evaluation = an_evaluation(cluster, a_pod("a", GCE))
    (state,) = evaluation.filter_states
    assert plugin.batch(state, evaluation.fits) is BatchKind.LOCAL
    assert plugin.filter(state, placed=np.array([0, 1])).tolist() == [0, 1]
    placed = cluster.assume(evaluation.pod, 1)
    other = cluster.put_pod(a_pod("other", GCE_READ, node="n1"))
    evaluation.mend()
    assert evaluation.fits.tolist() == [False, False]
    cluster.forget(placed)
    cluster.remove_pod(other)
    evaluation.mend()
    assert evaluation.fits.tolist() == [True, True]


def test_readers_are_no_trouble_to_each_other() -> None:
    evaluation = an_evaluation(a_cluster(), a_pod("a", GCE_READ))
    (state,) = evaluation.filter_states
    assert NoDiskConflict().batch(state, evaluation.fits) is BatchKind.CONSTANT
    assert NoDiskConflict().filter(state, placed=1).tolist() == [0, 0]
