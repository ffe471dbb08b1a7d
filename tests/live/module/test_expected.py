"""Who comes gets its place: without a control plane."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from berth.cluster.cluster import Cluster, Incoming
from berth.live.events import Event
from berth.live.module.expected import Expected, ExpectedPods
from berth.live.module.orders import ChosenPod, Order
from berth.live.module.pods import LOWEST_COST, active_pods, not_first, rank_of
from berth.live.reservations import HOLD
from berth.objects.base import OwnerReference
from berth.objects.pods import Pod
from tests.builders import a_cluster, a_node, a_pod

OWNER = OwnerReference(api_version="apps/v1", kind="ReplicaSet", name="web-1", uid="rs", controller=True)


def a_web_pod(name: str, node: str = "", **more: Any) -> Pod:
    pod = a_pod(name, namespace="shop", node=node, **more)
    return replace(pod, metadata=replace(pod.metadata, uid=f"uid-{name}", owner_references=(OWNER,)))


def a_world(*pods: Pod) -> Cluster:
    return a_cluster(*(a_node(f"n{i}", cpu="4", memory="8Gi") for i in (1, 2, 3)), pods=pods)


def an_order(*nodes: str | None, before: tuple[str, ...] = (), names: tuple[str, ...] = ()) -> Order:
    decisions = tuple(range(len(nodes)))
    return Order("add", "shop", "Deployment", "web", "rs", decisions, nodes, names, (), before)


def waiting_for(cluster: Cluster, order: Order, *, fits: bool = True) -> ExpectedPods:
    """The order's pods are expected, and their nodes kept free."""
    expected = ExpectedPods(cluster, lambda pod, row: fits)
    its = Expected.of(order, cluster)
    its.keep(cluster.incoming(a_web_pod("template")))
    expected.expect("rs", its)
    return expected


def arrival(cluster: Cluster, name: str) -> Incoming:
    cluster.put_pod(a_web_pod(name))
    return cluster.incoming(a_web_pod(name))


def pods_on(cluster: Cluster, node: str) -> int:
    return int(cluster.requested.of(3)[cluster.nodes.row(node)])


def test_nodes_are_kept_free_until_their_pods_come() -> None:
    cluster = a_world()
    expected = waiting_for(cluster, an_order("n1", "n2"))
    assert [pods_on(cluster, f"n{i}") for i in (1, 2, 3)] == [1, 1, 0]
    assert expected.claim(arrival(cluster, "a")) == "n1"
    assert [pods_on(cluster, f"n{i}") for i in (1, 2, 3)] == [0, 1, 0]
    assert expected.claim(arrival(cluster, "b")) == "n2"
    # Who asks again hears the same; who comes beside is nobody's.
    assert expected.claim(cluster.incoming(a_web_pod("a"))) == "n1"
    assert expected.claim(arrival(cluster, "c")) is None
    assert pods_on(cluster, "n2") == 0


def test_pods_that_were_there_and_pods_of_others_are_nobodys() -> None:
    cluster = a_world(a_web_pod("old"))
    expected = waiting_for(cluster, an_order("n1", before=("uid-old",)))
    assert expected.claim(cluster.incoming(a_web_pod("old"))) is None
    assert expected.claim(cluster.incoming(a_pod("bare", namespace="shop"))) is None
    assert pods_on(cluster, "n1") == 1


def test_a_node_that_is_gone_or_full_leaves_the_pod_to_the_scheduler() -> None:
    cluster = a_world()
    expected = waiting_for(cluster, an_order("n1"), fits=False)
    assert expected.claim(arrival(cluster, "a")) is None
    assert pods_on(cluster, "n1") == 0
    expected = waiting_for(cluster, an_order("n2", before=("uid-a",)))
    cluster.remove_node("n2")
    assert expected.claim(arrival(cluster, "b")) is None
    expected.end_all()
    assert len(cluster.pods) == 2


def test_a_pod_that_goes_again_makes_room_for_the_next() -> None:
    cluster = a_world()
    expected = waiting_for(cluster, an_order("n1"))
    assert expected.claim(arrival(cluster, "a")) == "n1"
    cluster.remove_pod(cluster.pods.find(cluster.namespaces.id("shop"), "a"))
    expected.hear(Event("DELETED", "Pod", "shop", "a", "uid-a"))
    assert expected.claim(arrival(cluster, "b")) == "n1"


def test_after_a_restart_those_that_are_bound_have_their_places() -> None:
    cluster = a_world(a_web_pod("old", "n3"), a_web_pod("a", "n2"), a_web_pod("b"))
    expected = waiting_for(cluster, an_order("n1", "n2", before=("uid-old",)))
    its = expected.of("rs")
    assert [its.bound(place) for place in its.places] == [None, ("a", "n2")]
    assert expected.claim(cluster.incoming(a_web_pod("b"))) == "n1"


def test_a_stateful_sets_pods_are_known_by_name() -> None:
    cluster = a_world()
    expected = waiting_for(cluster, an_order("n1", "n2", names=("db-3", "db-4")))
    assert expected.claim(arrival(cluster, "db-4")) == "n2"
    assert expected.claim(arrival(cluster, "db-3")) == "n1"


def test_what_replaces_a_chosen_pod_is_held_until_the_end() -> None:
    cluster = a_world(a_web_pod("old", "n1"))
    order = Order(
        "remove",
        "shop",
        "Deployment",
        "web",
        "rs",
        (0,),
        pods=(ChosenPod("x", "uid-x"),),
        before=("uid-old",),
    )
    expected = ExpectedPods(cluster, lambda pod, row: True)
    expected.expect("rs", Expected.of(order, cluster))
    released: list[str] = []
    expected.release = released.extend
    for name in ("new", "gone"):
        assert expected.claim(arrival(cluster, name)) is HOLD
    cluster.remove_pod(cluster.pods.find(cluster.namespaces.id("shop"), "gone"))
    expected.hear(Event("DELETED", "Pod", "shop", "gone", "uid-gone"))
    expected.end("rs")
    assert released == ["uid-new"]
    assert not expected.knows("rs")
    assert expected.claim(cluster.incoming(a_web_pod("new"))) is None


def test_a_controllers_pods_are_those_that_count() -> None:
    cluster = a_world(
        a_web_pod("a", "n1"),
        a_web_pod("b"),
        a_web_pod("done", "n1", phase="Succeeded"),
        a_pod("bare", namespace="shop"),
    )
    cluster.assume(cluster.incoming(a_web_pod("b")), 0, uid="")
    names = [cluster.pods.names[pod] for pod in active_pods(cluster, "shop", "rs")]
    assert sorted(names) == ["a", "b"]
    assert active_pods(cluster, "shop", "other") == []


pods = st.tuples(st.booleans(), st.sampled_from(["Pending", "Running"]), st.booleans(), st.integers(-3, 3))


@given(st.lists(st.tuples(pods, st.booleans()), min_size=1, max_size=8))
def test_a_replica_set_takes_exactly_the_chosen_pods_or_what_comes_in_their_place(
    made: list[tuple[Any, bool]],
) -> None:
    """As `ActivePodsWithRanks` has it, ties at the worst: who is late is deleted, and replaced by a pod without a node."""
    cluster = a_world()
    ids: dict[bool, list[int]] = {True: [], False: []}
    for i, ((assigned, phase, ready, cost), is_chosen) in enumerate(made):
        ready_since = 1 if ready else None
        pod = a_web_pod(
            f"p{i}", "n1" if assigned else "", phase=phase, ready_since=ready_since, deletion_cost=str(cost)
        )
        ids[is_chosen].append(cluster.put_pod(pod))
    late = not_first(cluster, ids[True], ids[False])

    def place(assigned: bool, phase: str, ready: bool, cost: int) -> tuple[Any, ...]:
        return assigned, ("Pending", "Unknown", "Running").index(phase), ready, cost

    queue = []
    for i, ((assigned, phase, ready, cost), is_chosen) in enumerate(made):
        pod_id = cluster.pods.find(cluster.namespaces.find("shop"), f"p{i}")
        if pod_id in late:
            queue.append((place(False, "Pending", False, LOWEST_COST), True))
        else:
            queue.append((place(assigned, phase, ready, LOWEST_COST if is_chosen else cost), is_chosen))
    queue.sort()  # of equals those that are not chosen come first
    assert all(is_chosen for _, is_chosen in queue[: len(ids[True])])
    # Nobody is deleted without need.
    for pod_id in late:
        assert any(rank_of(cluster, other) <= rank_of(cluster, pod_id, LOWEST_COST) for other in ids[False])
