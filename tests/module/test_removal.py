"""Which pod leaves: the order of leaving, who may, and the nodes' scores, kept from one removal to the next."""

from collections.abc import Mapping
from copy import copy
from functools import cmp_to_key
from math import floor
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from berth.cluster.accounting import Accounting
from berth.cluster.arrays import NONE
from berth.cluster.cluster import Cluster
from berth.cluster.modern_accounting import ModernAccounting
from berth.cluster.pods import PodIds
from berth.errors import InputError
from berth.module import removal
from berth.module.changes import WorkloadName
from berth.module.removal import REMOVAL_PRIORITIES, Leaving, in_leaving_order, may_leave
from berth.module.services import members
from berth.objects.pods import Pod
from berth.releases.module_removal import REMOVAL_1_13, REMOVAL_1_36, RemovalArithmetic
from berth.scheduling.batch_kernels import BATCH
from berth.scheduling.ties import TieBreaker, TieRule
from tests.builders import (
    a_cluster,
    a_deployment,
    a_node,
    a_pod,
    a_service,
    a_stateful_set,
    replica_set_of,
)
from tests.cluster.model import columns_of

WEB = {"app": "web"}
SERVICE = a_service("web")
WEIGHTS = dict.fromkeys(REMOVAL_PRIORITIES, 1)
DEPLOYMENT = a_deployment("web")
REPLICA_SET = replica_set_of(DEPLOYMENT)
DB = a_stateful_set("db", labels=WEB)


def web_pod(name: str, **more: Any) -> Pod:
    return a_pod(name, labels=WEB, **more)


class Removal(NamedTuple):
    """One removal: the pod that leaves, its node and what was said of it (None, empty and 0 without a node)."""

    pod: str
    node: str | None = None
    score: int | None = None
    scores: Mapping[str, int] = {}
    feasible: int = 0


def removed(
    cluster: Cluster,
    n: int,
    ties: TieBreaker,
    workload: WorkloadName | None = None,
    weights: Mapping[str, int] = WEIGHTS,
    arithmetic: RemovalArithmetic = REMOVAL_1_13,
) -> list[Removal]:
    """Remove up to ``n`` pods, as many at once as go."""
    found: list[Removal] = []
    while len(found) < n:
        its_members = members(cluster, SERVICE)
        leaving = Leaving(cluster, SERVICE, its_members, workload, weights, arithmetic)
        departures = leaving.take(n - len(found), ties)
        if not len(departures.pods):
            break
        names = [cluster.pods.names[pod] for pod in departures.pods]
        if departures.nodes is None:
            found += [Removal(name) for name in names]
        else:
            found += [
                Removal(name, cluster.nodes.names[d.row], d.score, d.scores, d.n_feasible)
                for name, d in zip(names, departures.nodes.decisions(), strict=True)
                if d.row is not None
            ]
        cluster.remove_pods(departures.pods)
    return found


def chosen(cluster: Cluster, workload: WorkloadName | None = None, n: int = 99) -> list[str]:
    """The names of the pods that leave, one after another."""
    return [removal.pod for removal in removed(cluster, n, TieBreaker("name"), workload)]


def removed_one_by_one(
    cluster: Cluster,
    n: int,
    ties: TieBreaker,
    workload: WorkloadName | None = None,
    weights: Mapping[str, int] = WEIGHTS,
    arithmetic: RemovalArithmetic = REMOVAL_1_13,
) -> list[Removal]:
    """The same as the rule is written down: each removal looks at everything anew, node by node, in plain integers."""
    found: list[Removal] = []
    while len(found) < n:
        own = members(cluster, SERVICE).own
        order = in_leaving_order(cluster, may_leave(cluster, SERVICE, own, workload)).tolist()
        if not order:
            break
        row_of = cluster.pods.node_row.tolist()
        pod = next((pod for pod in order if row_of[pod] == NONE), None)
        if pod is not None:
            found.append(Removal(cluster.pods.names[pod]))
        else:
            first = {row_of[pod]: pod for pod in reversed(order)}
            scores = {row: scores_of(cluster, row, first[row], own, weights, arithmetic) for row in first}
            total = {
                row: sum(weights[name] * s for name, s in of_row.items()) for row, of_row in scores.items()
            }
            best = max(total.values())
            tied = sorted((row for row in first if total[row] == best), key=cluster.nodes.names.__getitem__)
            row = tied[ties.index(len(tied))]
            pod = first[row]
            name = cluster.pods.names[pod]
            found.append(Removal(name, cluster.nodes.names[row], best, scores[row], len(first)))
        cluster.remove_pod(pod)
    return found


def scores_of(
    cluster: Cluster,
    row: int,
    pod: int,
    own: PodIds,
    weights: Mapping[str, int],
    arithmetic: RemovalArithmetic,
) -> dict[str, int]:
    info, maximum = cluster.specs[int(cluster.pods.column("spec_id")[pod])], arithmetic.maximum
    used = [
        int(cluster.nonzero_milli_cpu[row]) - info.nonzero[0],
        int(cluster.nonzero_memory[row]) - info.nonzero[1],
    ]
    asked = [int(cluster.requested.of(resource)[row]) for resource in (0, 1)]
    left = [amount - info.held.get(resource, 0) for resource, amount in enumerate(asked)]
    offered = [int(cluster.nodes.allocatable.of(resource)[row]) for resource in (0, 1)]
    if arithmetic is REMOVAL_1_13:
        most, balanced = most_of_1_13(used, offered), balanced_of_1_13(used, offered)
    else:
        most, balanced = most_of_1_36(used, offered), balanced_of_1_36(asked, left, offered)
    on_node = int((cluster.pods.node_row[own] == row).sum())
    scores = {
        "MostRequestedPriority": most,
        "BalancedResourceAllocation": balanced,
        "ServicePodsOnNodePriority": maximum * on_node // len(own),
        "NodeLoadForecastPriority": floor(maximum / 2 + maximum / 2 * float(cluster.load_delta[row])),
    }
    return {name: scores[name] for name in weights}


def most_of_1_13(used: list[int], offered: list[int]) -> int:
    return sum(u * 10 // o if o > 0 and u <= o else 0 for u, o in zip(used, offered, strict=True)) // 2


def balanced_of_1_13(used: list[int], offered: list[int]) -> int:
    shares = [u / o if o else 1.0 for u, o in zip(used, offered, strict=True)]
    return 0 if max(shares) >= 1 else int((1 - abs(shares[0] - shares[1])) * 10)


def most_of_1_36(used: list[int], offered: list[int]) -> int:
    there = [min(u, o) * 100 // o for u, o in zip(used, offered, strict=True) if o]
    return sum(there) // len(there) if there else 0


def balanced_of_1_36(before: list[int], after: list[int], offered: list[int]) -> int:
    def evenness(used: list[int]) -> int:
        shares = [min(u / o, 1.0) for u, o in zip(used, offered, strict=True) if o]
        return int((1 - (abs(shares[0] - shares[1]) / 2 if len(shares) == 2 else 0.0)) * 100.0)

    return 50 + (50 + evenness(after) - evenness(before)) // 2


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
    pods = may_leave(cluster, SERVICE, members(cluster, SERVICE).own, workload)
    return sorted(cluster.pods.names[pod] for pod in pods)


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
    assert removed(cluster, 2, TieBreaker()) == [Removal("new"), Removal("old")]
    assert chosen(cluster) == ["placed"]


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
    (made,) = removed(cluster, 1, TieBreaker("name"))
    # Without c, n2 has 2 of 4 cores and 1 of 4 Gi in use.
    assert made.scores == {
        "MostRequestedPriority": 3,
        "BalancedResourceAllocation": 7,
        "ServicePodsOnNodePriority": 3,
        "NodeLoadForecastPriority": 8,
    }
    assert (made.pod, made.node, made.score, made.feasible) == ("c", "n2", 21, 2)


def test_scores_of_the_chosen_node_by_hand_in_1_36() -> None:
    cluster = a_cluster(
        a_node("n1", cpu="4", memory="4Gi"),
        a_node("n2", cpu="4", memory="4Gi"),
        pods=[
            web_pod("a", node="n1", cpu="1", memory="1Gi"),
            web_pod("b", node="n1", cpu="1", memory="1Gi"),
            web_pod("c", node="n2", cpu="1"),
            a_pod("other", node="n2", cpu="2", memory="1Gi"),
        ],
        accounting=ModernAccounting(),
    )
    cluster.set_load_delta(np.array([-0.5, 0.7]))
    first, *others = removed(cluster, 3, TieBreaker("name"), arithmetic=REMOVAL_1_36)
    # n2 without c: 2 of 4 cores, 1 of 4 Gi. The shares were 75 % and 25 % (c asks for no memory): evenness 75. They are
    # 50 % and 25 % now: 87. The change counts half: 50 + (50 + 12) / 2. Of three pods it holds one.
    assert (first.pod, first.node, first.score, first.feasible) == ("c", "n2", 236, 2)
    assert first.scores == {
        "MostRequestedPriority": (50 + 25) // 2,
        "BalancedResourceAllocation": 81,
        "ServicePodsOnNodePriority": 33,
        "NodeLoadForecastPriority": 85,
    }
    # n1 is as even after as before, also when it is empty.
    assert [(one.pod, *one.scores.values()) for one in others] == [
        ("a", 25, 75, 100, 25),
        ("b", 0, 75, 100, 25),
    ]


def test_an_overfull_node_counts_as_full_in_1_36_and_as_empty_in_1_13() -> None:
    pods = [web_pod(name, node="n1", cpu="3", memory="3Gi") for name in ("a", "b")]
    cluster = a_cluster(a_node("n1", cpu="2", memory="4Gi"), pods=pods)
    (before,) = removed(a_cluster(a_node("n1", cpu="2", memory="4Gi"), pods=pods), 1, TieBreaker())
    (today,) = removed(cluster, 1, TieBreaker(), arithmetic=REMOVAL_1_36)
    assert before.scores["MostRequestedPriority"] == (0 + 7) // 2
    assert today.scores["MostRequestedPriority"] == (100 + 75) // 2


def test_a_weight_of_no_removal_priority_is_refused() -> None:
    cluster = a_cluster(a_node("n1"), pods=[web_pod("a", node="n1")])
    with pytest.raises(InputError, match=r"module\.removeWeights: 'LeastRequestedPriority' is not one of"):
        removed(cluster, 1, TieBreaker(), weights={"LeastRequestedPriority": 1})


members_of_all_kinds = st.lists(
    st.builds(
        web_pod,
        st.just(""),
        phase=st.sampled_from(["Running", "Pending"]),
        ready_since=st.sampled_from([None, 10, 20]),
        node=st.sampled_from(["n1", "n2", "n3", "n3", "", "gone"]),
        cpu=st.sampled_from([None, "100m", "1"]),
        memory=st.sampled_from([None, "1Gi"]),
        init=st.sampled_from([{}, {"cpu": "3"}]),
        owner=st.sampled_from([None, REPLICA_SET, DB, DB, "DaemonSet/agent"]),
        restarts=st.integers(0, 1),
        terminating=st.sampled_from([False, False, False, True]),
    ),
    max_size=40,
)


def a_cluster_with(given_pods: list[Pod], accounting: Accounting | None = None) -> Cluster:
    """Pods under the names that their controllers would give them, on three nodes of several sizes."""
    pods = []
    for i, pod in enumerate(given_pods):
        owner = pod.metadata.controller()
        name = f"db-{i}" if owner is not None and owner.kind == "StatefulSet" else f"web-{i}"
        pods.append(Pod(metadata=_named(pod, name), spec=pod.spec, status=pod.status))
    # Node order is by name, not by row.
    nodes = [a_node("n3", cpu="2"), a_node("n1"), a_node("n2", memory="0")]
    cluster = a_cluster(*nodes, pods=pods, objects=[DEPLOYMENT, REPLICA_SET, DB], accounting=accounting)
    cluster.set_load_delta(np.array([-0.3, 0.0, 0.3]))
    return cluster


weightings = st.sampled_from(
    [
        WEIGHTS,
        {"ServicePodsOnNodePriority": 1},
        {"MostRequestedPriority": 3, "NodeLoadForecastPriority": 1},
        {},
        dict.fromkeys(REMOVAL_PRIORITIES, 2**31 - 1),
    ]
)
tie_breakers = st.builds(
    TieBreaker, st.sampled_from(["round-robin", "random", "name"]), counter=st.integers(0, 9)
)


@pytest.mark.usefixtures("compiled_loops")
@settings(max_examples=150)
@given(
    members_of_all_kinds,
    st.sampled_from([None, WorkloadName("Deployment", "web"), WorkloadName("StatefulSet", "db")]),
    weightings,
    st.sampled_from([REMOVAL_1_13, REMOVAL_1_36]),
    tie_breakers,
    st.integers(1, 45),
    st.sampled_from([removal.MAX_AHEAD, 1, 6]),
    st.booleans(),
)
def test_many_at_once_are_those_of_one_at_a_time(
    given_pods: list[Pod],
    workload: WorkloadName | None,
    weights: dict[str, int],
    arithmetic: RemovalArithmetic,
    ties: TieBreaker,
    n: int,
    max_ahead: int,
    is_compiled: bool,
) -> None:
    accounting = ModernAccounting() if arithmetic is REMOVAL_1_36 else None
    cluster, twin = (a_cluster_with(given_pods, accounting) for _ in range(2))
    slow_ties = copy(ties)
    kernels = BATCH.load() if is_compiled else None
    with pytest.MonkeyPatch.context() as patch, BATCH.using(kernels):
        patch.setattr(removal, "MAX_AHEAD", max_ahead)
        found = removed(cluster, n, ties, workload, weights, arithmetic)
    assert found == removed_one_by_one(twin, n, slow_ties, workload, weights, arithmetic)
    assert ties == slow_ties
    assert columns_of(cluster) == columns_of(twin)


@pytest.mark.usefixtures("compiled_loops")
@pytest.mark.parametrize("rule", ["round-robin", "name"])
def test_big_runs_are_alike_compiled_and_in_python(rule: TieRule) -> None:
    outcomes = []
    for kernels in (BATCH.load(), None):
        pods = [
            web_pod(f"web-{i}", node=f"n{(i * i + i // 7) % 150}", cpu=["100m", "1"][i % 2], created=i % 5)
            for i in range(900)
        ]
        cluster = a_cluster(*(a_node(f"n{i}", cpu="16") for i in range(150)), pods=pods)
        with BATCH.using(kernels):
            outcomes.append(removed(cluster, 880, TieBreaker(rule, counter=3)))
    assert len(outcomes[0]) == 880
    assert outcomes[0] == outcomes[1]
