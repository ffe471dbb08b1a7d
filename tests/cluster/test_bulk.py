"""What is done for many rows at once equals what is done for each."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from berth.cluster.arrays import NONE
from berth.cluster.cluster import Cluster
from berth.cluster.labels import LabelColumns
from berth.cluster.pods import PodRows, PodValues
from berth.objects.base import ObjectMeta
from berth.objects.decode import decode
from berth.objects.nodes import Node, NodeStatus
from berth.objects.pods import Container, Pod, PodSpec, ResourceRequirements
from tests.builders import a_pod
from tests.cluster.model import node_state

label_sets = st.dictionaries(st.sampled_from("abc"), st.sampled_from("xyz"))


def a_cluster() -> Cluster:
    cluster = Cluster()
    for name in ("n1", "n2"):
        cluster.put_node(Node(metadata=ObjectMeta(name=name), status=NodeStatus(allocatable={"cpu": "4"})))
    return cluster


def pods_of(cluster: Cluster, n_pods: int) -> list[PodValues]:
    """Pods on two nodes, on one that is not there, and on none."""
    specs = [
        cluster.specs.id_of_pod(
            Pod(spec=PodSpec(containers=(Container(resources=ResourceRequirements(requests={"cpu": cpu})),)))
        )
        for cpu in ("100m", "2")
    ]
    nodes = [cluster.pods.node_names.id(name) for name in ("n1", "n2", "gone")] + [-1]
    namespace_id, labels_id = cluster.namespaces.id("shop"), cluster.labels_id(b"{}")
    owner_id = cluster.owner_sets.id(())
    return [
        PodValues(f"web-{i}", "", namespace_id, specs[i % 2], labels_id, owner_id, nodes[i % 4], created=i)
        for i in range(n_pods)
    ]


def test_pods_added_at_once_are_as_those_added_one_by_one() -> None:
    at_once, one_by_one, rows = a_cluster(), a_cluster(), PodRows()
    for values in pods_of(at_once, 5000):
        rows.append(values)
    at_once.add_pods(rows)
    for values in pods_of(one_by_one, 5000):
        one_by_one.add_pod(values)
    assert [at_once.pods.get(i) for i in range(5000)] == [one_by_one.pods.get(i) for i in range(5000)]
    assert [at_once.requested.get(i) for i in (0, 1)] == [one_by_one.requested.get(i) for i in (0, 1)]
    assert at_once.pods.node_row.tolist() == one_by_one.pods.node_row.tolist()
    assert at_once.n_homeless == one_by_one.n_homeless == 1250
    assert at_once.pods.find(0, "web-4321") == 4321


def test_of_pods_of_one_name_the_first_stays() -> None:
    rows = PodRows()
    first, second = pods_of(a_cluster(), 2)
    second.name = first.name
    assert [rows.append(first), rows.append(second)] == [0, 0]
    assert len(rows) == 1


@given(st.lists(st.tuples(st.integers(0, 5), label_sets), max_size=40))
def test_each_row_has_the_labels_that_it_got_last(changes: list[tuple[int, dict[str, str]]]) -> None:
    columns, wanted = LabelColumns(), dict[int, dict[str, str]]()
    columns.column("a")  # kept from the start on; the one of b is made at the end
    for row, labels in changes:
        columns.set(row, labels)
        wanted[row] = labels
    rows = [wanted.get(row, {}) for row in range(columns.n_rows)]
    assert columns.all() == rows
    assert [columns.get(row) for row in range(columns.n_rows)] == rows
    for key in "ab":
        ids = columns.column(key).tolist()
        assert [columns.value(i) if i != NONE else None for i in ids] == [row.get(key) for row in rows]


def test_labels_that_change_for_months_take_no_more_room() -> None:
    columns = LabelColumns()
    for row in range(10):
        columns.set(row, {"name": f"n{row}", "zone": "a"})
    for i in range(1000):
        columns.set(i % 10, {"name": f"n{i % 10}", "zone": "ab"[i // 10 % 2]})
    assert columns._row.size <= 41  # twenty labels, and gaps that are about to be closed
    assert columns.get(3) == {"name": "n3", "zone": "b"}


def test_of_a_nodes_annotations_only_those_that_are_read_are_kept() -> None:
    text = b'{"metadata":{"name":"n","annotations":{"a":"b","scheduler.alpha.kubernetes.io/preferAvoidPods":"{}"}}}'
    cluster = Cluster()
    row = cluster.put_node(decode(text, Node))
    assert cluster.nodes.get(row).metadata.annotations == {
        "scheduler.alpha.kubernetes.io/preferAvoidPods": "{}"
    }
    assert list(cluster.nodes.all()) == [cluster.nodes.get(row)]


@given(
    rows=st.lists(st.integers(0, 1), max_size=600),
    cpu=st.sampled_from(["100m", None]),
    ports=st.sampled_from([(), (80,)]),
    name=st.sampled_from(["", "web"]),
)
def test_a_pod_assumed_on_many_rows_is_as_assumed_one_by_one(
    rows: list[int], cpu: str | None, ports: tuple[int, ...], name: str
) -> None:
    at_once, one_by_one = a_cluster(), a_cluster()
    made = []
    for cluster in (at_once, one_by_one):
        pod = cluster.incoming(a_pod(cpu=cpu, host_ports=ports))
        if cluster is at_once:
            made.append(cluster.assume_all(pod, np.array(rows, dtype=np.int32), name=name).tolist())
        else:
            made.append([cluster.assume(pod, row, name=name) for row in rows])
    assert made[0] == made[1]
    assert [at_once.pods.get(i) for i in made[0]] == [one_by_one.pods.get(i) for i in made[0]]
    assert at_once.pods.node_row.tolist() == one_by_one.pods.node_row.tolist()
    for row in (0, 1):
        assert node_state(at_once, row) == node_state(one_by_one, row)
    if len(rows) <= 256:
        logged = [cluster.log.since(cluster.log.version - len(rows)) for cluster in (at_once, one_by_one)]
        assert logged[0] is not None
        assert logged[1] is not None
        assert logged[0].pods == logged[1].pods
    for cluster in (at_once, one_by_one):
        for pod_id in made[0]:
            cluster.forget(pod_id)
    for row in (0, 1):
        assert node_state(at_once, row) == node_state(one_by_one, row)
