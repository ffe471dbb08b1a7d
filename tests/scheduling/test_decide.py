from berth.cluster.cluster import Cluster
from berth.objects.base import LabelSelectorRequirement
from berth.objects.pods import NodeAffinity, NodeSelectorTerm, Pod, PreferredSchedulingTerm
from berth.scheduling.decide import Decision, decide
from berth.scheduling.evaluation import Evaluation, Unschedulable
from berth.scheduling.evaluations import Evaluations
from berth.scheduling.ties import TieBreaker
from tests.builders import a_cluster, a_node, a_pod
from tests.scheduling.modern_worlds import MODERN
from tests.scheduling.worlds import PROFILE, WEIGHTS


def decided(cluster: Cluster, pod: Pod) -> Decision:
    return decide(Evaluation(PROFILE, cluster.incoming(pod), cluster), TieBreaker("name"))


def test_reasons_are_sorted_as_texts() -> None:
    reasons = {"Insufficient cpu": 3, "node(s) were not ready": 10, "Insufficient memory": 2}
    assert str(Unschedulable(12, reasons)) == (
        "0/12 nodes are available: 10 node(s) were not ready, 2 Insufficient memory, 3 Insufficient cpu."
    )


def test_each_node_gives_all_reasons_of_the_first_filter_that_it_fails() -> None:
    cluster = a_cluster(
        a_node("n1", cpu="1", memory="1Gi"),  # both
        a_node("n2", cpu="1", taints=["spot:NoSchedule"]),  # resources come before taints
        a_node("n3", taints=["spot:NoSchedule"]),
        a_node("n4", unschedulable=True, conditions={"Ready": "False", "NetworkUnavailable": "True"}),
    )
    assert decided(cluster, a_pod(cpu="2", memory="2Gi")).reason == (
        "0/4 nodes are available: 1 Insufficient memory, 1 node(s) had taints that the pod didn't tolerate, "
        "1 node(s) had unavailable network, 1 node(s) were not ready, 1 node(s) were unschedulable, "
        "2 Insufficient cpu."
    )


def test_the_best_node_with_its_scores() -> None:
    cluster = a_cluster(
        a_node("n1"), a_node("n2"), a_node("n3", cpu="1"), pods=[a_pod("x", node="n1", cpu="2", memory="8Gi")]
    )
    decision = decided(cluster, a_pod(cpu="1", memory="4Gi"))
    assert decision.row == cluster.nodes.row("n2")
    assert decision.n_feasible == 3
    assert decision.scores == {
        "LeastRequestedPriority": 7,
        "BalancedResourceAllocation": 10,
        "SelectorSpreadPriority": 10,
        "NodeAffinityPriority": 0,
        "TaintTolerationPriority": 10,
        "InterPodAffinityPriority": 0,
        "NodeLoadForecastPriority": 5,
        "MostRequestedPriority": 2,
    }
    assert decision.score == sum(WEIGHTS[name] * score for name, score in decision.scores.items())


def test_removed_nodes_are_neither_chosen_nor_counted() -> None:
    cluster = a_cluster(a_node("n1"), a_node("n2", cpu="1"))
    cluster.remove_node("n1")
    assert decided(cluster, a_pod(cpu="2")).reason == "0/1 nodes are available: 1 Insufficient cpu."


def test_an_error_of_a_filter_fails_the_decision_with_its_text() -> None:
    cluster = a_cluster(a_node("n1"), a_node("n2", cpu="1"))
    decision = decided(cluster, a_pod(claims=["gone"]))
    assert decision.row is None
    assert decision.n_feasible == 0
    assert decision.reason is not None
    assert 'could not find v1.PersistentVolumeClaim "default/gone"' in decision.reason
    # Where no node comes as far as that, the error does not come up.
    assert decided(cluster, a_pod(claims=["gone"], cpu="9")).reason == (
        "0/2 nodes are available: 2 Insufficient cpu."
    )


def test_an_error_of_a_priority_fails_the_decision_with_its_text() -> None:
    broken = NodeSelectorTerm(match_expressions=(LabelSelectorRequirement(key="a b", operator="Exists"),))
    wish = NodeAffinity(preferred=(PreferredSchedulingTerm(weight=1, preference=broken),))
    decision = decided(a_cluster(a_node("n1")), a_pod(node_affinity=wish))
    assert decision.row is None
    assert decision.reason is not None
    assert "'a b' is not a label key" in decision.reason


def test_evaluations_are_kept_by_shape_and_the_oldest_go() -> None:
    cluster = a_cluster(a_node("n1"), a_node("n2"))
    n_bytes = 2 * (len(PROFILE.filters) + len(PROFILE.scores) + 1) * 8
    kept = Evaluations(PROFILE, cluster, max_bytes=2 * n_bytes)
    shapes = [cluster.incoming(a_pod(cpu=cpu)) for cpu in ("1", "2", "3")]
    first, second = kept.of(shapes[0]), kept.of(shapes[1])
    assert kept.of(cluster.incoming(a_pod("of another name", cpu="1"))) is first  # used last now
    kept.of(shapes[2])
    assert kept.of(shapes[0]) is first
    assert kept.of(shapes[1]) is not second


def test_one_evaluation_is_always_kept() -> None:
    cluster = a_cluster(a_node("n1"))
    kept = Evaluations(PROFILE, cluster, max_bytes=0)
    pod = cluster.incoming(a_pod())
    assert kept.of(pod) is kept.of(pod)


def test_who_keeps_the_pod_off_all_nodes() -> None:
    cluster = a_cluster(
        a_node("n1", cpu="1", taints=["spot:NoSchedule"]),
        a_node("n2", taints=["spot:NoSchedule"]),
        a_node("n3"),
    )
    cordoned = a_cluster(a_node("n1", unschedulable=True), a_node("n2", cpu="1"))

    def rejected_by(pod: Pod, within: Cluster) -> frozenset[str]:
        return Evaluation(MODERN, within.incoming(pod), within).unschedulable().rejected_by

    # Of a node the first filter that it fails.
    assert rejected_by(a_pod(cpu="9"), cluster) == {"TaintToleration", "NodeResourcesFit"}
    assert rejected_by(a_pod(cpu="9"), cordoned) == {"NodeUnschedulable", "NodeResourcesFit"}
    assert rejected_by(a_pod(claims=["none"]), cluster) == {"VolumeRestrictions"}
    assert rejected_by(a_pod(), Cluster()) == frozenset()
