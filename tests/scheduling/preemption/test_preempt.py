"""Each rule of preemption by a case of its own."""

import pytest
from msgspec.structs import replace

from berth.cluster.cluster import Cluster
from berth.cluster.modern_accounting import ModernAccounting
from berth.objects.base import LabelSelector, ObjectMeta
from berth.objects.nodes import Node
from berth.objects.pods import Pod, PodAffinity, PodAffinityTerm, TopologySpreadConstraint
from berth.objects.workloads import (
    PodDisruptionBudget,
    PodDisruptionBudgetSpec,
    PodDisruptionBudgetStatus,
)
from berth.scheduling.evaluation import Evaluation
from berth.scheduling.preemption import Nomination, NotPreempted, Preemption, preempt
from tests.builders import HOST, a_node, a_pod
from tests.scheduling.modern_worlds import MODERN

URGENT = a_pod("urgent", cpu="4", priority=100)
WEB = LabelSelector(match_labels={"app": "web"})


def a_world(*things: Node | Pod | PodDisruptionBudget) -> Cluster:
    cluster = Cluster(ModernAccounting())
    for thing in things:
        if isinstance(thing, Node):
            cluster.put_node(thing)
        elif isinstance(thing, Pod):
            cluster.put_pod(thing)
        else:
            cluster.put(thing)
    return cluster


def a_budget(allowed: int, selector: LabelSelector | None = WEB, *disrupted: str) -> PodDisruptionBudget:
    return PodDisruptionBudget(
        metadata=ObjectMeta(name="budget", namespace="default"),
        spec=PodDisruptionBudgetSpec(selector=selector),
        status=PodDisruptionBudgetStatus(
            disruptions_allowed=allowed, disrupted_pods=dict.fromkeys(disrupted)
        ),
    )


def decide(
    cluster: Cluster, pod: Pod = URGENT, *waiting: tuple[Pod, str], nominated_node: str = ""
) -> Preemption | NotPreempted:
    incoming = cluster.incoming(pod)
    nominations = [Nomination(cluster.incoming(other), node) for other, node in waiting]
    return preempt(incoming, Evaluation(MODERN, incoming, cluster), nominations, nominated_node)


def victims(cluster: Cluster, pod: Pod = URGENT, *waiting: tuple[Pod, str]) -> tuple[str, list[str]]:
    decision = decide(cluster, pod, *waiting)
    assert isinstance(decision, Preemption), decision
    return cluster.nodes.names[decision.row], [cluster.pods.names[p] for p in decision.victims]


def message(cluster: Cluster, pod: Pod = URGENT, *waiting: tuple[Pod, str]) -> str:
    return str(decide(cluster, pod, *waiting))


# -- who goes from a node ----------------------------------------------------------------------------------------------


def test_the_less_important_and_the_later_go_first() -> None:
    cluster = a_world(
        a_node("n1"),
        a_pod("late", node="n1", cpu="1", started=50),
        a_pod("early", node="n1", cpu="1", started=10),
        a_pod("lowest", node="n1", cpu="1", priority=-1, started=1),
        a_pod("not-started", node="n1", cpu="1"),
    )
    pod = a_pod("urgent", cpu="2", priority=100)
    assert victims(cluster, pod) == ("n1", ["not-started", "lowest"])
    assert victims(cluster, a_pod("urgent", cpu="3", priority=100)) == (
        "n1",
        ["late", "not-started", "lowest"],
    )


def test_the_equally_important_stay() -> None:
    cluster = a_world(a_node("n1"), a_pod("p", node="n1", cpu="1", priority=100))
    assert message(cluster) == (
        "preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod."
    )


def test_pods_that_have_ended_make_no_room() -> None:
    cluster = a_world(
        a_node("n1"), a_pod("p", node="n1", cpu="1", priority=100), a_pod("done", node="n1", phase="Failed")
    )
    assert "No preemption victims" in message(cluster)


def test_a_pod_is_kept_that_fits_in_what_a_more_important_one_left() -> None:
    cluster = a_world(
        a_node("n1"),
        a_pod("big", node="n1", cpu="3", priority=5),
        a_pod("small", node="n1", cpu="1", priority=1),
    )
    assert victims(cluster, a_pod("urgent", cpu="2", priority=100)) == ("n1", ["big"])


def test_violating_pods_are_the_first_to_be_kept() -> None:
    things = (
        a_node("n1"),
        a_pod("guarded", node="n1", cpu="2", priority=1, labels={"app": "web"}),
        a_pod("other", node="n1", cpu="2", priority=5),
    )
    pod = a_pod("urgent", cpu="2", priority=100)
    assert victims(a_world(*things), pod) == ("n1", ["guarded"])
    assert victims(a_world(*things, a_budget(0)), pod) == ("n1", ["other"])
    assert victims(a_world(*things, a_budget(1)), pod) == ("n1", ["guarded"])


def test_victims_of_both_kinds_are_told_in_their_order_of_importance() -> None:
    cluster = a_world(
        a_node("n1"),
        a_pod("guarded", node="n1", cpu="2", priority=1, labels={"app": "web"}),
        a_pod("other", node="n1", cpu="2", priority=5),
        a_budget(0),
    )
    assert victims(cluster) == ("n1", ["other", "guarded"])


@pytest.mark.parametrize(
    ("budget", "n_violations"),
    [
        (a_budget(0), 2),
        (a_budget(1), 1),
        (a_budget(2), 0),
        (a_budget(-1), 2),
        (a_budget(0, WEB, "a"), 1),
        (a_budget(0, LabelSelector()), 0),
        (a_budget(0, None), 0),
        (a_budget(0, LabelSelector(match_labels={"app": "db"})), 0),
        (replace(a_budget(0), metadata=ObjectMeta(name="budget", namespace="other")), 0),
    ],
)
def test_violations(budget: PodDisruptionBudget, n_violations: int) -> None:
    pods = [a_pod(name, node="n1", cpu="2", labels={"app": "web"}) for name in "ab"]
    decision = decide(a_world(a_node("n1"), *pods, budget))
    assert isinstance(decision, Preemption)
    assert decision.n_violations == n_violations


# -- which node --------------------------------------------------------------------------------------------------------


def two_nodes(left: list[Pod], right: list[Pod], *more: PodDisruptionBudget) -> str:
    """The better of two nodes full of pods; the names of nodes speak for the left one."""
    nodes = [a_node("left"), a_node("right")]
    placed = [
        replace(
            pod, metadata=replace(pod.metadata, name=f"{node}-{i}"), spec=replace(pod.spec, node_name=node)
        )
        for node, pods in (("left", left), ("right", right))
        for i, pod in enumerate(pods)
    ]
    return victims(a_world(*nodes, *placed, *more))[0]


def test_fewest_violations_go_first() -> None:
    guarded = a_pod(cpu="4", priority=1, labels={"app": "web"})
    assert two_nodes([guarded], [a_pod(cpu="4", priority=90)], a_budget(0)) == "right"


def test_then_the_lowest_of_the_highest_priorities() -> None:
    assert two_nodes([a_pod(cpu="4", priority=9)], [a_pod(cpu="1", priority=8)] * 4) == "right"


def test_then_the_smallest_sum_of_priorities() -> None:
    left = [a_pod(cpu="2", priority=9), a_pod(cpu="2", priority=8)]
    assert two_nodes(left, [a_pod(cpu="2", priority=9), a_pod(cpu="2", priority=7)]) == "right"


def test_few_pods_of_a_negative_priority_are_a_smaller_loss_than_many() -> None:
    assert two_nodes([a_pod(cpu="1", priority=-9)] * 4, [a_pod(cpu="4", priority=-9)]) == "right"


def test_then_the_fewest_pods() -> None:
    lowest = -(2**31)
    left = [a_pod(cpu="2", priority=9), a_pod(cpu="1", priority=lowest), a_pod(cpu="1", priority=lowest)]
    right = [a_pod(cpu="2", priority=9), a_pod(cpu="2", priority=lowest)]
    assert two_nodes(left, right) == "right"


def test_then_the_latest_start_of_the_most_important() -> None:
    def pods(first: int, second: int, low: int) -> list[Pod]:
        return [
            a_pod(cpu="1", priority=9, started=first),
            a_pod(cpu="1", priority=9, started=second),
            a_pod(cpu="2", priority=1, started=low),
        ]

    assert two_nodes(pods(10, 90, 99), pods(20, 30, 1)) == "right"
    assert two_nodes(pods(20, 0, 1), pods(0, 0, 1)) == "right"


def test_then_the_first_by_name() -> None:
    assert two_nodes([a_pod(cpu="4", started=7)], [a_pod(cpu="4", started=7)]) == "left"


# -- which nodes are tried ---------------------------------------------------------------------------------------------


def test_nodes_that_no_removal_helps_are_not_tried() -> None:
    cluster = a_world(
        a_node("small", cpu="3"),
        a_node("tainted", taints=["spot:NoSchedule"]),
        a_node("cordoned", unschedulable=True),
        *(a_pod(f"on-{node}", node=node, cpu="1") for node in ("small", "tainted", "cordoned")),
    )
    assert message(cluster) == (
        "preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling."
    )


def test_the_reasons_of_nodes_that_were_tried_in_vain_are_told() -> None:
    cluster = a_world(
        a_node("n1"),
        a_node("n2", pods=1),
        a_node("n3"),
        a_pod("low", node="n1", cpu="1"),
        a_pod("high", node="n1", cpu="1", priority=500),
        a_pod("other", node="n2", priority=500),
        a_node("n4", taints=["spot:NoSchedule"]),
        a_pod("third", node="n3", cpu="1", priority=500),
        a_pod("fourth", node="n3"),
    )
    decision = decide(cluster)
    assert str(decision) == (
        "preemption: 0/4 nodes are available: 1 No preemption victims found for incoming pod, "
        "1 Preemption is not helpful for scheduling, 2 Insufficient cpu."
    )
    assert isinstance(decision, NotPreempted)
    assert decision.clears_nomination


def test_a_filter_that_comes_before_resources_gives_its_reason_first() -> None:
    cluster = a_world(
        a_node("n1"),
        a_pod("port", node="n1", cpu="1", host_ports=(80,), priority=500),
        a_pod("low", node="n1", cpu="1"),
    )
    pod = a_pod("urgent", cpu="4", priority=100, host_ports=(80,))
    assert "1 node(s) didn't have free ports" in message(cluster, pod)


def test_a_pod_that_is_turned_away_by_every_node_preempts_nobody() -> None:
    cluster = a_world(a_node("n1"), a_pod("low", node="n1", cpu="4"))
    assert message(cluster, a_pod("urgent", cpu="1", priority=9, claims=("missing",))) == (
        "preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling."
    )


def test_where_a_node_takes_the_pod_nothing_has_to_be_decided() -> None:
    with pytest.raises(ValueError, match="default/urgent: there is a node that takes the pod"):
        decide(a_world(a_node("n1")))


# -- filters that look at pods -----------------------------------------------------------------------------------------


def test_whoever_has_the_host_port_goes() -> None:
    cluster = a_world(
        a_node("n1"),
        a_pod("port", node="n1", host_ports=(80,), priority=5),
        a_pod("other", node="n1", priority=1),
    )
    assert victims(cluster, a_pod("urgent", host_ports=(80,), priority=100)) == ("n1", ["port"])


def test_pods_that_keep_the_pod_away_go() -> None:
    apart = PodAffinity(required=(PodAffinityTerm(label_selector=WEB, topology_key=HOST),))
    cluster = a_world(
        a_node("n1"),
        a_pod("shy", node="n1", anti_affinity=apart, priority=5),
        a_pod("web", node="n1", labels={"app": "web"}, priority=5),
        a_pod("other", node="n1", priority=1),
    )
    web = a_pod("urgent", labels={"app": "web"}, priority=100)
    assert victims(cluster, web) == ("n1", ["shy"])
    assert victims(cluster, a_pod("urgent", anti_affinity=apart, priority=100)) == ("n1", ["web"])


def spread(pod: Pod) -> Pod:
    constraint = TopologySpreadConstraint(
        topology_key=HOST, when_unsatisfiable="DoNotSchedule", label_selector=WEB
    )
    return replace(pod, spec=replace(pod.spec, topology_spread_constraints=(constraint,)))


def test_pods_go_that_make_a_domain_too_full() -> None:
    cluster = a_world(
        a_node("n1"),
        a_node("n2", unschedulable=True),
        *(a_pod(f"web-{i}", node="n1", labels={"app": "web"}, started=i + 1) for i in range(2)),
    )
    pod = spread(a_pod("urgent", labels={"app": "web"}, priority=100))
    assert victims(cluster, pod) == ("n1", ["web-0", "web-1"])


def test_a_terminating_pod_that_goes_is_taken_off_a_count_that_it_never_was_in() -> None:
    cluster = a_world(
        a_node("n1"),
        a_node("n2", unschedulable=True),
        a_pod("web-0", node="n1", labels={"app": "web"}, priority=500),
        a_pod("going", node="n1", labels={"app": "web"}, terminating=True),
    )
    pod = spread(a_pod("urgent", labels={"app": "web"}, priority=100))
    # Without "going" there are 0 pods for upstream, and not the 1 that there is.
    assert victims(cluster, pod) == ("n1", ["going"])


# -- nominated pods ----------------------------------------------------------------------------------------------------


def test_pods_that_wait_for_room_are_counted_if_they_are_as_important() -> None:
    cluster = a_world(
        a_node("n1"), a_node("n2", cpu="5"), *(a_pod(f"p-{n}", node=n, cpu="2") for n in ("n1", "n2"))
    )
    waiting = a_pod("waiting", cpu="1", priority=100)
    assert victims(cluster, URGENT, (waiting, "n1")) == ("n2", ["p-n2"])
    assert victims(cluster, URGENT, (a_pod("waiting", cpu="1", priority=99), "n1"))[0] == "n1"
    assert victims(cluster, URGENT, (URGENT, "n1"))[0] == "n1"
    assert victims(cluster, URGENT, (waiting, "gone"))[0] == "n1"


def test_the_less_important_lose_their_nominations_on_the_node() -> None:
    cluster = a_world(a_node("n1"), a_pod("p", node="n1", cpu="2"))
    low, high = a_pod("low", priority=1), a_pod("high", priority=200)
    decision = decide(cluster, URGENT, (low, "n1"), (high, "n1"), (low, "elsewhere"))
    assert isinstance(decision, Preemption)
    assert [(n.pod.name, n.node_name) for n in decision.cleared] == [("low", "n1")]


def test_nobody_loses_a_nomination_to_victims_that_are_on_their_way() -> None:
    cluster = a_world(a_node("n1"), a_pod("p", node="n1", cpu="2", terminating=True))
    decision = decide(cluster, URGENT, (a_pod("low", priority=1), "n1"))
    assert isinstance(decision, Preemption)
    assert decision.cleared == ()


# -- who may preempt ---------------------------------------------------------------------------------------------------


def test_a_pod_that_does_not_want_to_does_not() -> None:
    cluster = a_world(a_node("n1"), a_pod("p", node="n1", cpu="2"))
    decision = decide(cluster, a_pod("urgent", cpu="4", priority=100, preemption_policy="Never"))
    assert decision == NotPreempted("not eligible due to preemptionPolicy=Never.")
    assert str(decision) == "preemption: not eligible due to preemptionPolicy=Never."


@pytest.mark.parametrize(
    ("terminating", "preempted", "priority", "node", "waits"),
    [
        (True, True, 1, "n1", True),
        (True, False, 1, "n1", False),
        (False, True, 1, "n1", False),
        (True, True, 100, "n1", False),
        (True, True, 1, "n2", False),
        (True, True, 1, "gone", False),
    ],
)
def test_a_pod_waits_for_the_victims_that_it_has(
    terminating: bool, preempted: bool, priority: int, node: str, waits: bool
) -> None:
    victim = a_pod("v", node="n1", cpu="1", terminating=terminating, preempted=preempted, priority=priority)
    cluster = a_world(a_node("n1"), a_node("n2"), victim, a_pod("p", node="n2", cpu="1"))
    decision = decide(cluster, nominated_node=node)
    text = "preemption: not eligible due to a terminating pod on the nominated node."
    assert (str(decision) == text) is waits


def test_a_pod_does_not_wait_for_a_node_that_no_removal_helps() -> None:
    victim = a_pod("v", node="n1", cpu="1", terminating=True, preempted=True)
    cluster = a_world(a_node("n1", unschedulable=True), a_node("n2"), victim, a_pod("p", node="n2", cpu="1"))
    decision = decide(cluster, nominated_node="n1")
    assert isinstance(decision, Preemption)
    assert cluster.nodes.names[decision.row] == "n2"
