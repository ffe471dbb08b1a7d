"""Which pod leaves: the order of leaving, who may, and the nodes' scores, kept from one removal to the next."""

from functools import cmp_to_key
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from berth.cluster.cluster import Cluster
from berth.errors import InputError
from berth.module.changes import WorkloadName
from berth.module.removal import REMOVAL_PRIORITIES, Leaving, Removal, in_leaving_order, may_leave
from berth.module.services import members
from berth.objects.pods import Pod
from berth.objects.workloads import Service
from berth.scheduling.ties import TieBreaker
from tests.builders import (
    a_cluster,
    a_deployment,
    a_node,
    a_pod,
    a_service,
    a_stateful_set,
    replica_set_of,
)

WEB = {"app": "web"}
SERVICE = a_service("web")
WEIGHTS = dict.fromkeys(REMOVAL_PRIORITIES, 1)
DEPLOYMENT = a_deployment("web")
REPLICA_SET = replica_set_of(DEPLOYMENT)
DB = a_stateful_set("db", labels=WEB)


def web_pod(name: str, **more: Any) -> Pod:
    return a_pod(name, labels=WEB, **more)


def leaving(cluster: Cluster, workload: WorkloadName | None = None, service: Service = SERVICE) -> Leaving:
    return Leaving(cluster, service, workload, WEIGHTS, 10)


def chosen(cluster: Cluster, workload: WorkloadName | None = None, n: int = 99) -> list[str]:
    """The names of the pods that leave, one after another."""
    going, ties = leaving(cluster, workload), TieBreaker("name")
    names: list[str] = []
    while len(names) < n and (removal := going.choose(ties)) is not None:
        names.append(cluster.pods.names[removal.pod])
        going.remove(removal)
    return names


# -- the order of leaving ----------------------------------------------------------------------------------------------

their_pods = st.builds(
    web_pod,
    st.just(""),
    phase=st.sampled_from(["Running", "Pending"]),
    ready_since=st.sampled_from([None, 0, 10, 20]),
    deletion_cost=st.sampled_from([None, "5", "-5", "x"]),
    restarts=st.integers(0, 2),
    created=st.sampled_from([0, 1, 2]),
)


def first_of_two(a: Pod, b: Pod) -> int:
    """The rule as it is written down, for two pods: negative if ``a`` leaves first."""

    def ready(pod: Pod) -> bool:
        return pod.status.conditions[0].status == "True"

    def cost(pod: Pod) -> int:
        text = next(iter(pod.metadata.annotations.values()), "0")
        return 0 if text == "x" else int(text)

    def since(pod: Pod) -> float:
        when = pod.status.conditions[0].last_transition_time
        return when.timestamp() if when else 0

    def restarts(pod: Pod) -> int:
        return pod.status.container_statuses[0].restart_count

    def created(pod: Pod) -> float:
        when = pod.metadata.creation_timestamp
        return when.timestamp() if when else 0

    if a.status.phase != b.status.phase:
        return -1 if a.status.phase == "Pending" else 1
    if ready(a) != ready(b):
        return 1 if ready(a) else -1
    if cost(a) != cost(b):
        return -1 if cost(a) < cost(b) else 1
    if ready(a) and ready(b) and since(a) != since(b):
        return -1 if since(a) > since(b) else 1
    if restarts(a) != restarts(b):
        return -1 if restarts(a) > restarts(b) else 1
    if created(a) != created(b):
        return -1 if created(a) > created(b) else 1
    return -1 if a.metadata.name < b.metadata.name else 1


@given(st.lists(their_pods, max_size=8), st.randoms(use_true_random=False))
def test_the_order_is_that_of_the_rule(given_pods: list[Pod], random: Any) -> None:
    names = [f"p{i}" for i in range(len(given_pods))]
    random.shuffle(names)
    pods = [
        Pod(metadata=_named(pod, name), spec=pod.spec, status=pod.status)
        for pod, name in zip(given_pods, names, strict=True)
    ]
    cluster = a_cluster(pods=pods)
    order = in_leaving_order(cluster, np.flatnonzero(cluster.pods.alive))
    wanted = sorted(pods, key=cmp_to_key(first_of_two))
    assert [cluster.pods.names[i] for i in order] == [pod.metadata.name for pod in wanted]


def _named(pod: Pod, name: str) -> Any:
    return replace(pod.metadata, name=name)


def test_one_step_of_the_order_after_another() -> None:
    pods = [
        web_pod("h", ready_since=10),
        web_pod("g", ready_since=10, created=5),
        web_pod("f", ready_since=10, restarts=1),
        web_pod("e", ready_since=20),
        web_pod("d", ready_since=5, deletion_cost="-1"),
        web_pod("c", deletion_cost="100"),
        web_pod("b", phase="Pending", ready_since=9, deletion_cost="500"),
    ]
    cluster = a_cluster(pods=pods)
    order = in_leaving_order(cluster, np.flatnonzero(cluster.pods.alive))
    assert "".join(cluster.pods.names[i] for i in order) == "bcdefgh"


# -- who may leave -----------------------------------------------------------------------------------------------------


def allowed(cluster: Cluster, workload: WorkloadName | None = None) -> list[str]:
    mask = may_leave(cluster, SERVICE, members(cluster, SERVICE).own, workload)
    return sorted(cluster.pods.names[i] for i in np.flatnonzero(mask))


def a_mixed_cluster() -> Cluster:
    return a_cluster(
        a_node("n1"),
        services=[SERVICE],
        objects=[DEPLOYMENT, REPLICA_SET, DB],
        pods=[
            web_pod("web-a", owner=REPLICA_SET, node="n1"),
            web_pod("web-b", owner=REPLICA_SET),
            web_pod("web-gone", owner=REPLICA_SET, node="gone"),
            web_pod("db-0", owner=DB, node="n1"),
            web_pod("db-1", owner=DB, node="n1"),
            web_pod("db-10", owner=DB, node="n1"),
            web_pod("agent", owner="DaemonSet/agent", node="n1"),
            web_pod("orphan", owner="ReplicaSet/forgotten", node="n1"),
            web_pod("bare", node="n1"),
        ],
    )


def test_daemon_set_pods_never_leave_and_of_a_stateful_set_only_the_last() -> None:
    assert allowed(a_mixed_cluster()) == ["bare", "db-10", "orphan", "web-a", "web-b"]


@pytest.mark.parametrize(
    ("workload", "names"),
    [
        (WorkloadName("Deployment", "web"), ["web-a", "web-b"]),
        (WorkloadName("ReplicaSet", "web-1"), ["web-a", "web-b"]),
        (WorkloadName("StatefulSet", "db"), ["db-10"]),
        (WorkloadName("ReplicaSet", "forgotten"), ["orphan"]),
        (WorkloadName("StatefulSet", "web"), []),
    ],
)
def test_where_a_workload_is_named_only_its_pods_may_leave(workload: WorkloadName, names: list[str]) -> None:
    assert allowed(a_mixed_cluster(), workload) == names


@pytest.mark.parametrize(
    ("last", "names"),
    [
        (web_pod("db-5", owner=DB, node="gone"), []),
        (web_pod("db-5", owner=DB, phase="Succeeded"), []),
        (a_pod("db-5", owner=DB), []),  # not of the service, but of the set
        (web_pod("db-5", owner=DB, terminating=True), ["db-1"]),
        (web_pod("db-5", owner=DB, namespace="shop"), ["db-1"]),
        (web_pod("db-5", owner=DB), ["db-5"]),
    ],
)
def test_the_highest_ordinal_is_sought_among_all_pods_of_the_set(last: Pod, names: list[str]) -> None:
    pods = [web_pod("db-0", owner=DB, node="n1"), web_pod("db-1", owner=DB, node="n1"), last]
    assert allowed(a_cluster(a_node("n1"), pods=pods, objects=[DB])) == names


# -- one removal after another -----------------------------------------------------------------------------------------


def test_pods_without_a_node_leave_first_in_the_same_order() -> None:
    cluster = a_cluster(
        a_node("n1"),
        pods=[
            web_pod("placed", node="n1", phase="Pending"),
            web_pod("old", phase="Pending", created=1),
            web_pod("new", phase="Pending", created=2),
        ],
    )
    going = leaving(cluster)
    removal = going.choose(TieBreaker())
    assert removal == Removal(pod=cluster.pods.find(cluster.namespaces.id("default"), "new"))
    assert chosen(cluster) == ["new", "old", "placed"]


def test_stateful_sets_leave_from_the_highest_ordinal_down() -> None:
    pods = [web_pod(f"db-{i}", owner=DB, node=f"n{i % 2}") for i in (0, 1, 2, 10)]
    cluster = a_cluster(a_node("n0"), a_node("n1"), pods=pods, objects=[DB])
    assert chosen(cluster) == ["db-10", "db-2", "db-1", "db-0"]


def test_scores_of_the_chosen_node() -> None:
    cluster = a_cluster(
        a_node("n1", cpu="4", memory="4Gi"),
        a_node("n2", cpu="4", memory="4Gi"),
        a_node("n3"),
        pods=[
            web_pod("a", node="n1", cpu="1", memory="1Gi"),
            web_pod("b", node="n1", cpu="1", memory="1Gi"),
            web_pod("c", node="n2", cpu="1", memory="1Gi"),
            a_pod("other", node="n2", cpu="2", memory="1Gi"),
        ],
    )
    cluster.set_load_delta(np.array([-0.5, 0.7, 1.0]))
    removal = leaving(cluster).choose(TieBreaker("name"))
    assert removal is not None
    # Without c, n2 has 2 of 4 cores and 1 of 4 Gi in use.
    assert removal.scores == {
        "MostRequestedPriority": 3,
        "BalancedResourceAllocation": 7,
        "ServicePodsOnNodePriority": 3,
        "NodeLoadForecastPriority": 8,
    }
    assert (removal.row, removal.score, removal.n_feasible) == (1, 21, 2)
    assert cluster.pods.names[removal.pod] == "c"


def test_a_weight_of_no_removal_priority_is_refused() -> None:
    cluster = a_cluster(a_node("n1"), pods=[web_pod("a", node="n1")])
    going = Leaving(cluster, SERVICE, None, {"LeastRequestedPriority": 1}, 10)
    with pytest.raises(InputError, match=r"module\.removeWeights: 'LeastRequestedPriority' is not one of"):
        going.choose(TieBreaker())


members_of_all_kinds = st.lists(
    st.builds(
        web_pod,
        st.just(""),
        phase=st.sampled_from(["Running", "Pending"]),
        ready_since=st.sampled_from([None, 10, 20]),
        node=st.sampled_from(["n1", "n2", "n3", "n3", "", "gone"]),
        cpu=st.sampled_from([None, "100m", "1"]),
        memory=st.sampled_from([None, "1Gi"]),
        owner=st.sampled_from([None, REPLICA_SET, DB, DB, "DaemonSet/agent"]),
        restarts=st.integers(0, 1),
        terminating=st.sampled_from([False, False, False, True]),
    ),
    max_size=12,
)


@settings(max_examples=150)
@given(
    members_of_all_kinds,
    st.sampled_from([None, WorkloadName("Deployment", "web"), WorkloadName("StatefulSet", "db")]),
)
def test_what_is_kept_equals_what_is_found_anew(given_pods: list[Pod], workload: WorkloadName | None) -> None:
    pods = []
    for i, pod in enumerate(given_pods):
        owner = pod.metadata.controller()
        name = f"db-{i}" if owner is not None and owner.kind == "StatefulSet" else f"web-{i}"
        pods.append(Pod(metadata=_named(pod, name), spec=pod.spec, status=pod.status))
    cluster = a_cluster(
        a_node("n1"), a_node("n2"), a_node("n3", cpu="2"), pods=pods, objects=[DEPLOYMENT, REPLICA_SET, DB]
    )
    cluster.set_load_delta(np.array([0.0, 0.3, -0.3]))
    kept = leaving(cluster, workload)
    ties, twin = TieBreaker(), TieBreaker()
    for _ in range(len(pods) + 1):
        removal = kept.choose(ties)
        assert removal == leaving(cluster, workload).choose(twin)
        assert ties == twin
        if removal is None:
            break
        kept.remove(removal)
    assert kept.choose(ties) is None
