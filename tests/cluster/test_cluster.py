"""The cluster against a model in plain Python, through any history."""

from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from berth.cluster.accounting import LegacyAccounting
from berth.cluster.arrays import NONE
from berth.cluster.cluster import Cluster
from berth.cluster.pods import SUCCEEDED, PodIds
from berth.objects.base import LabelSelector, ObjectMeta
from berth.objects.decode import decode
from berth.objects.nodes import Node, NodeStatus
from berth.objects.pod_records import record_of
from berth.objects.pods import Pod, PodAffinity, PodAffinityTerm
from berth.objects.quantities import QuantityError
from berth.objects.selectors import from_map
from tests.builders import HOST, a_cluster, a_deployment, a_node, a_pod, a_replica_set, a_service
from tests.cluster.model import ModelPod, columns_of, node_state, wanted_node_state

NODES = ("n1", "n2", "n3", "n4")
NAMES = ("p1", "p2", "p3", "p4", "p5")
APART = PodAffinity(required=(PodAffinityTerm(label_selector=LabelSelector(), topology_key=HOST),))

pods = st.builds(
    a_pod,
    st.sampled_from(NAMES),
    node=st.sampled_from([*NODES, ""]),
    cpu=st.sampled_from([None, "0", "250m"]),
    memory=st.sampled_from([None, "1Gi"]),
    requests=st.sampled_from([{}, {"example.com/gpu": "2"}, {"ephemeral-storage": "1Gi"}]),
    init=st.sampled_from([None, {"cpu": "2"}]),
    host_ports=st.sampled_from([(), (80,), (80, 80), (443,)]),
    anti_affinity=st.sampled_from([None, APART]),
    phase=st.sampled_from(["Running", "Running", "Pending", "Succeeded", "Failed"]),
    terminating=st.booleans(),
    labels=st.sampled_from([{}, {"app": "web"}]),
)
nodes = st.builds(
    a_node, st.sampled_from(NODES), cpu=st.sampled_from(["2", "8"]), zone=st.sampled_from([None, "a", "b"])
)


def model_of(pod: Pod, node: str | None = None) -> ModelPod:
    accounting = LegacyAccounting()
    container = pod.spec.containers[0]
    return ModelPod(
        node=pod.spec.node_name if node is None else node,
        requests=accounting.held(pod.spec),
        nonzero=accounting.nonzero(pod.spec),
        ports=tuple(port.host_port for port in container.ports),
        has_affinity=pod.spec.affinity is not None,
        counts=node is not None or pod.status.phase not in ("Succeeded", "Failed"),
    )


class Histories(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.cluster = Cluster()
        self.nodes: dict[str, Any] = {}
        self.pods: dict[str, ModelPod] = {}
        self.assumed: dict[int, ModelPod] = {}
        self.largest = 0

    @rule(node=nodes)
    def put_node(self, node: Any) -> None:
        before = self.cluster.nodes.row(node.metadata.name)
        row = self.cluster.put_node(node)
        assert before in (NONE, row)
        self.nodes[node.metadata.name] = node
        self.largest = max(self.largest, len(self.nodes))

    @rule(name=st.sampled_from(NODES))
    def remove_node(self, name: str) -> None:
        if name in self.nodes:
            self.cluster.remove_node(name)
            del self.nodes[name]
        else:
            with pytest.raises(KeyError):
                self.cluster.remove_node(name)

    @rule(pod=pods)
    def put_pod(self, pod: Pod) -> None:
        self.cluster.put_pod(pod)
        self.pods[pod.metadata.name] = model_of(pod)

    @rule(name=st.sampled_from(NAMES))
    def remove_pod(self, name: str) -> None:
        pod = self.cluster.pods.find(self.cluster.namespaces.find("default"), name)
        assert (pod != NONE) is (name in self.pods)
        if pod != NONE:
            self.cluster.remove_pod(pod)
            del self.pods[name]

    @rule(names=st.sets(st.sampled_from(NAMES)))
    def remove_pods(self, names: set[str]) -> None:
        self.cluster.remove_pods(self.ids_of(names & set(self.pods)))
        for name in names & set(self.pods):
            del self.pods[name]

    @rule(names=st.sets(st.sampled_from(NAMES)))
    def take_out_and_put_back(self, names: set[str]) -> None:
        names &= set(self.pods)
        before, ids = columns_of(self.cluster), self.ids_of(names)
        self.cluster.put_back(self.cluster.remove_pods(ids))
        assert columns_of(self.cluster) == before
        assert self.ids_of(names).tolist() == ids.tolist()

    def ids_of(self, names: set[str]) -> PodIds:
        namespace_id = self.cluster.namespaces.find("default")
        return np.array([self.cluster.pods.find(namespace_id, name) for name in sorted(names)], dtype=np.intp)

    @rule(pod=pods)
    def update_pod(self, pod: Pod) -> None:
        cluster, name = self.cluster, pod.metadata.name
        if name not in self.pods:
            return
        known = cluster.pods.find(cluster.namespaces.find("default"), name)
        values = cluster.values_of(record_of(pod))
        moves = values != cluster.pods.get(known)
        version = cluster.log.version
        assert cluster.update_pod(known, values) is moves
        assert moves or cluster.log.version == version
        assert cluster.pods.get(cluster.pods.find(values.namespace_id, name)) == values
        assert cluster.pods.find(values.namespace_id, name) == known
        self.pods[name] = model_of(pod)

    @rule(pod=pods, name=st.sampled_from(NODES))
    def assume(self, pod: Pod, name: str) -> None:
        if name in self.nodes:
            incoming = self.cluster.incoming(pod)
            made = self.cluster.assume(incoming, self.cluster.nodes.row(name))
            self.assumed[made] = model_of(pod, name)

    @rule(which=st.integers(0, 99))
    def forget(self, which: int) -> None:
        if self.assumed:
            pod = list(self.assumed)[which % len(self.assumed)]
            self.cluster.forget(pod)
            del self.assumed[pod]

    @rule(which=st.integers(0, 3), delta=st.sampled_from([-1.0, 0.25]))
    def forecast(self, which: int, delta: float) -> None:
        deltas = self.cluster.load_delta.copy()
        deltas[which : which + 1] = delta
        deltas[~self.cluster.nodes.alive] = 0
        self.cluster.set_load_delta(deltas)
        assert self.cluster.load_delta.tolist() == deltas.tolist()

    @invariant()
    def counts_are_those_of_the_model(self) -> None:
        cluster, everyone = self.cluster, [*self.pods.values(), *self.assumed.values()]
        assert len(cluster.nodes) == len(self.nodes)
        assert len(cluster.pods) == len(everyone)
        assert cluster.nodes.n_rows == self.largest  # rows of removed nodes are used again
        for name, node in self.nodes.items():
            row = cluster.nodes.row(name)
            held = [pod for pod in everyone if pod.node == name and pod.counts]
            assert node_state(cluster, row) == wanted_node_state(held)
            assert cluster.nodes.labels.get(row) == node.metadata.labels
            assert cluster.nodes.get(row).status.allocatable["cpu"] == node.status.allocatable["cpu"]
        dead = ~cluster.nodes.alive
        assert not cluster.load_delta[dead].any()
        for row in np.flatnonzero(dead).tolist():
            assert node_state(cluster, row) == wanted_node_state([])
        assert cluster.n_homeless == sum(bool(p.node) and p.node not in self.nodes for p in everyone)
        with_affinity = sum(len(members) for members in cluster.affinity_pods.values())
        assert with_affinity == sum(p.has_affinity and p.counts and p.node in self.nodes for p in everyone)

    @invariant()
    def ranks_follow_names(self) -> None:
        nodes = self.cluster.nodes
        alive = np.flatnonzero(nodes.alive).tolist()
        assert sorted(alive, key=nodes.rank.__getitem__) == sorted(alive, key=nodes.names.__getitem__)


Histories.TestCase.settings = settings(max_examples=150, stateful_step_count=30)
TestHistories = Histories.TestCase


def test_many_pods_at_once_are_counted_as_one_by_one() -> None:
    given = [
        a_pod("a", node="n1", cpu="1", host_ports=(80,)),
        a_pod("b", node="n1", memory="1Gi", anti_affinity=APART),
        a_pod("c", node="gone", cpu="1"),
        a_pod("d"),
        a_pod("e", node="n2", cpu="1", phase="Succeeded"),
        a_pod("f", node="gone", phase="Failed"),
        a_pod("g", node="n2", requests={"example.com/gpu": "1"}, host_ports=(80, 80)),
        a_pod("h", namespace="shop", node="n1", cpu="1"),
    ]
    one_by_one, at_once = (a_cluster(a_node("n1"), a_node("n2")) for _ in range(2))
    for pod in given:
        one_by_one.put_pod(pod)
    at_once.add_pods([at_once.values_of(record_of(pod)) for pod in given[:3]])
    at_once.add_pods([at_once.values_of(record_of(pod)) for pod in given[3:]])
    assert columns_of(at_once) == columns_of(one_by_one)
    for cluster in (one_by_one, at_once):
        cluster.put_node(a_node("gone"))
    assert columns_of(at_once) == columns_of(one_by_one)


def test_pods_that_have_ended_hold_nothing_of_a_node_that_comes_after_them() -> None:
    cluster = a_cluster(pods=[a_pod("done", node="n1", cpu="1", phase="Succeeded")])
    assert cluster.n_homeless == 1
    row = cluster.put_node(a_node("n1"))
    assert cluster.n_homeless == 0
    assert node_state(cluster, row) == wanted_node_state([])


def test_pods_stay_when_their_node_goes_and_count_when_it_comes_back() -> None:
    cluster = a_cluster(a_node("n1"), a_node("n2"), pods=[a_pod("a", node="n1", cpu="1")])
    before = columns_of(cluster)
    cluster.remove_node("n1")
    assert cluster.n_homeless == 1
    assert not cluster.requested.of(0).any()
    cluster.put_node(a_node("n3"))  # takes the row that became free
    assert cluster.nodes.n_rows == 2
    assert not cluster.requested.of(0).any()
    cluster.remove_node("n3")
    cluster.put_node(a_node("n1"))
    assert columns_of(cluster) == before


def test_a_node_that_is_not_there_cannot_be_removed_and_nothing_changes() -> None:
    cluster = a_cluster(a_node("n1"))
    cluster.set_load_delta(np.array([0.5]))
    with pytest.raises(KeyError):
        cluster.remove_node("n2")
    assert cluster.load_delta.tolist() == [0.5]
    with pytest.raises(KeyError):
        Cluster().remove_node("n1")


def test_a_pod_of_the_same_name_replaces_the_first() -> None:
    cluster = a_cluster(a_node("n1"), pods=[a_pod("a", node="n1", cpu="1"), a_pod("a", node="n1", cpu="2")])
    assert len(cluster.pods) == 1
    assert cluster.requested.of(0).tolist() == [2000]


def test_two_pods_of_one_name_do_not_disturb_each_other() -> None:
    # A planned pod may bear the name of one that is about to go.
    cluster = a_cluster(a_node("n1"), pods=[a_pod("db-0", node="n1", cpu="1", terminating=True)])
    before = columns_of(cluster)
    first = cluster.pods.find(cluster.namespaces.find("default"), "db-0")
    planned = cluster.assume(cluster.incoming(a_pod("db-0", cpu="2")), 0, name="db-0")
    assert cluster.requested.of(0).tolist() == [3000]
    cluster.forget(planned)
    assert columns_of(cluster) == before
    planned = cluster.assume(cluster.incoming(a_pod("db-0", cpu="2")), 0, name="db-0")
    cluster.remove_pod(first)
    assert cluster.pods.find(cluster.namespaces.find("default"), "db-0") == planned
    cluster.remove_pod(planned)
    assert len(cluster.pods) == 0


def test_of_two_pods_of_one_name_the_one_that_is_taken_out_is_put_back() -> None:
    cluster = a_cluster(a_node("n1"), pods=[a_pod("db-0", node="n1", cpu="1", terminating=True)])
    cluster.assume(cluster.incoming(a_pod("db-0", cpu="2")), 0, name="db-0")
    before = columns_of(cluster)
    for pod in (0, 1):
        taken = cluster.remove_pods(np.array([pod]))
        assert cluster.pods.find(cluster.namespaces.find("default"), "db-0") == 1 - pod
        cluster.put_back(taken)
        assert columns_of(cluster) == before


def test_pods_that_are_taken_out_and_put_back_leave_nothing_to_mend() -> None:
    made = [a_pod(f"p{i}", node=f"n{i % 2}") for i in range(300)]
    cluster = a_cluster(a_node("n0"), a_node("n1"), pods=made)
    for n, few in ((200, True), (300, False)):
        version = cluster.log.version
        taken = cluster.remove_pods(np.arange(n))
        changes = cluster.log.since(version)
        assert (changes is not None) is few  # more than that is sooner evaluated anew
        assert changes is None or sorted((c.pod, c.row, c.sign) for c in changes.pods) == [
            (i, i % 2, -1) for i in range(n)
        ]
        cluster.put_back(taken)
        changes = cluster.log.since(version)
        assert changes is None or changes.pods == []


def test_relabelling_a_node_is_a_change_of_its_row_alone() -> None:
    cluster = a_cluster(a_node("n1"), a_node("n2"))
    version = cluster.log.version
    cluster.put_node(a_node("n2", zone="b"))
    changes = cluster.log.since(version)
    assert changes is not None
    assert (changes.rows.tolist(), changes.nodes, changes.pods) == ([1], True, [])
    cluster.put_node(a_node("n3"))
    assert cluster.log.since(version) is None


def test_a_nodes_heartbeat_is_no_change() -> None:
    text = b"""{"metadata": {"name": "n", "uid": "1", "labels": {"zone": "a"}, "annotations": {"beat": "%d"}},
        "spec": {"taints": [{"key": "spot", "effect": "NoSchedule"}]},
        "status": {"allocatable": {"cpu": "%s", "example.com/gpu": "0"}, "images": [{"names": ["x"], "sizeBytes": 1}],
                   "conditions": [{"type": "Ready", "status": "%s", "lastHeartbeatTime": "2025-11-05T10:%d:00Z"}]}}"""
    cluster = Cluster()
    cluster.put_node(decode(text % (10, b"2", b"True", 10), Node))
    version = cluster.log.version
    cluster.put_node(decode(text % (11, b"2000m", b"True", 11), Node))
    assert cluster.log.version == version
    cluster.put_node(decode(text % (12, b"2", b"False", 12), Node))
    cluster.put_node(decode(text % (13, b"3", b"False", 13), Node))
    assert cluster.log.version == version + 2
    for meta in (
        ObjectMeta(name="n", uid="1", labels={"zone": "b"}),
        ObjectMeta(name="n", uid="2", labels={"zone": "b"}),
    ):
        cluster.put_node(msgspec.structs.replace(cluster.nodes.get(0), metadata=meta))
    assert cluster.log.version == version + 4


def test_a_node_with_an_amount_that_is_none_changes_nothing() -> None:
    cluster = a_cluster(a_node("n1"))
    for name in ("n1", "n2"):
        with pytest.raises(QuantityError):
            cluster.put_node(
                Node(metadata=ObjectMeta(name=name), status=NodeStatus(allocatable={"cpu": "?"}))
            )
    assert [node.metadata.name for node in cluster.nodes.all()] == ["n1"]
    assert cluster.nodes.n_rows == 1


def test_an_image_that_lies_on_many_nodes_is_kept_once() -> None:
    cluster = Cluster()
    for name, images in (("n1", b"ab"), ("n2", b"bc")):
        listed = b",".join(b'{"names": ["%c"], "sizeBytes": 1}' % image for image in images)
        text = b'{"metadata": {"name": "%s"}, "status": {"images": [%s]}}' % (name.encode(), listed)
        cluster.put_node(decode(text, Node))
    (_, first), (second, _) = cluster.nodes.image_sets.items
    assert first is second


def test_what_no_evaluation_reads_is_not_logged() -> None:
    cluster = a_cluster()
    version = cluster.log.version
    for replicas in (1, 2):
        cluster.put(a_deployment("web", replicas=replicas))
    cluster.remove(a_deployment("web"))
    assert cluster.log.version == version
    cluster.put(a_replica_set("web", replicas=1))
    cluster.put(a_service("web"))
    assert cluster.log.version == version + 2
    cluster.put(a_replica_set("web", replicas=2))
    cluster.put(a_service("web"))
    assert cluster.log.version == version + 2
    cluster.put(a_service("web", {"app": "other"}))
    cluster.remove(a_service("web"))
    assert cluster.log.version == version + 4


def test_a_pod_that_becomes_ready_is_no_change_of_its_nodes_row() -> None:
    cluster = a_cluster(a_node("n1"))
    pod = cluster.put_pod(a_pod("a", node="n1", phase="Pending"))
    version = cluster.log.version
    assert cluster.update_pod(
        pod, msgspec.structs.replace(cluster.pods.get(pod), phase=2, ready=True, restarts=1)
    )
    assert cluster.pods.get(pod).ready
    assert cluster.log.version == version
    assert cluster.update_pod(pod, msgspec.structs.replace(cluster.pods.get(pod), phase=SUCCEEDED))
    assert cluster.log.version == version + 1
    assert cluster.requested.get(0)["pods"] == 0


def test_what_each_change_leaves_in_the_log() -> None:
    cluster = a_cluster(a_node("n1"), a_node("n2"))
    version = cluster.log.version
    pod = cluster.put_pod(a_pod("a", node="n2", terminating=True))
    cluster.put_pod(a_pod("b"))
    cluster.put_pod(a_pod("c", node="n1", phase="Succeeded"))
    cluster.put_pod(a_pod("d", node="gone"))
    changes = cluster.log.since(version)
    assert changes is not None
    assert [(c.row, c.pod, c.sign, c.terminating) for c in changes.pods] == [(1, pod, 1, True)]
    cluster.remove_pod(pod)
    changes = cluster.log.since(version)
    assert changes is not None
    assert (changes.rows.tolist(), changes.pods) == ([1], [])  # they cancel out
    version = cluster.log.version
    cluster.set_load_delta(np.array([0.0, 0.5]))
    changes = cluster.log.since(version)
    assert changes is not None
    assert changes.rows.tolist() == [1]
    cluster.put(a_service("web"))
    assert cluster.log.since(version) is None


@pytest.mark.parametrize(
    ("text", "cost"),
    [
        ("0", 0),
        ("-0", 0),
        ("12", 12),
        ("-12", -12),
        ("2147483647", 2**31 - 1),
        ("-2147483648", -(2**31)),
        ("2147483648", 0),
        ("-2147483649", 0),
        ("+5", 0),
        ("05", 0),
        ("-05", -5),
        ("00", 0),
        ("", 0),
        ("-", 0),
        ("--1", 0),
        ("1.5", 0),
        (" 1", 0),
        ("٣", 0),
        ("1_0", 0),
        ("9" * 5000, 0),
        ("-" + "0" * 5000 + "7", -7),
    ],
)
def test_deletion_costs_are_read_as_kubernetes_does(text: str, cost: int) -> None:
    pod = a_cluster().values_of(record_of(a_pod("a", deletion_cost=text)))
    assert pod.deletion_cost == cost


def test_pods_matching_a_selector_are_those_of_the_namespace() -> None:
    web = {"app": "web"}
    cluster = a_cluster(
        pods=[a_pod("a", labels=web), a_pod("b"), a_pod("c", labels=web, namespace="shop", phase="Failed")]
    )
    assert cluster.pods_matching("shop", from_map(web)).tolist() == [2]
    assert cluster.pods_matching("none", from_map(web)).tolist() == []


def test_a_node_is_put_together_again_from_its_columns() -> None:
    node = a_node("n1", zone="a", taints=["spot=yes:NoSchedule"], unschedulable=True, example_com__gpu="2")
    cluster = a_cluster(node)
    again = cluster.nodes.get(0)
    assert again.metadata.labels == node.metadata.labels
    assert again.spec == node.spec
    assert again.status.conditions == node.status.conditions
    other = a_cluster(msgspec.structs.replace(again))
    assert other.nodes.allocatable.get(0) == cluster.nodes.allocatable.get(0)
