"""What a profile does with nodes and reasons besides asking its filters."""

from dataclasses import replace

from berth.framework.profile import NamedFilter, Profile
from berth.plugins.node_affinity import MatchNodeSelector
from berth.plugins.node_conditions import CheckNodeCondition
from berth.plugins.node_resources_fit import NodeResourcesFit
from berth.scheduling.evaluation import Evaluation
from tests.builders import a_cluster, a_node, a_pod

SHORT = "Insufficient cpu"
UNMATCHED = "node(s) didn't match node selector"
PROFILE = Profile(
    (
        NamedFilter("PodFitsResources", NodeResourcesFit()),
        NamedFilter("MatchNodeSelector", MatchNodeSelector()),
    ),
    (),
)
CLUSTER = a_cluster(
    a_node("n1", cpu="1"), a_node("n2", cpu="1", labels={"pool": "blue"}), a_node("n3", cpu="8")
)


def reasons(profile: Profile) -> tuple[int, dict[str, int]]:
    pod = CLUSTER.incoming(a_pod(cpu="2", node_selector={"pool": "blue"}))
    found = Evaluation(profile, pod, CLUSTER).unschedulable()
    return found.n_nodes, found.reasons


def test_only_the_first_filter_that_fails_gives_reasons() -> None:
    assert reasons(PROFILE) == (3, {SHORT: 2, UNMATCHED: 1})


def test_all_filters_give_reasons_if_the_profile_checks_all() -> None:
    assert reasons(replace(PROFILE, always_check_all=True)) == (3, {SHORT: 2, UNMATCHED: 2})


def test_a_profile_may_report_fewer_reasons() -> None:
    assert reasons(replace(PROFILE, reported=lambda found: ())) == (3, {})


def test_nodes_that_are_dropped_count_nowhere_and_come_back() -> None:
    cluster = a_cluster(a_node("n1"), a_node("n2", unschedulable=True))
    profile = replace(PROFILE, drops=CheckNodeCondition())
    evaluation = Evaluation(profile, cluster.incoming(a_pod(cpu="99")), cluster)
    assert str(evaluation.unschedulable()) == "0/1 nodes are available: 1 Insufficient cpu."
    cluster.put_node(a_node("n2"))
    evaluation.mend()
    assert evaluation.unschedulable().n_nodes == 2
    cluster.put_node(a_node("n1", unschedulable=True))
    cluster.put_node(a_node("n2", unschedulable=True))
    evaluation.mend()
    assert evaluation.error() == "no nodes available to schedule pods"
