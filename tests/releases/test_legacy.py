"""1.10, 1.13 and 1.17: what differs between them, worked by hand."""

from typing import Any

import msgspec
import pytest

from berth.cluster.cluster import Cluster
from berth.errors import InputError
from berth.objects.nodes import Node
from berth.objects.pods import Pod
from berth.releases import RELEASES
from berth.releases.profiles import provider_profile
from berth.releases.release import Options
from berth.scheduling.evaluation import Evaluation
from tests.releases.worlds import Json, a_node, a_pod, ask

THREE = ("1.10", "1.13", "1.17")
CORDON = [{"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}]
CORDONED = {"n1": ["node(s) were unschedulable"]}


@pytest.mark.parametrize("release", THREE)
def test_default_priorities_are_known_and_default_predicates_in_order(release: str) -> None:
    known = RELEASES[release]
    assert known.mandatory_filters(Options()) <= known.default_filters(Options())
    assert {name for name in known.default_scores(Options()) if name != "EvenPodsSpreadPriority"} <= set(
        known.scores
    )
    fill_up = known.providers["ClusterAutoscalerProvider"].scores(Options())
    assert "LeastRequestedPriority" not in fill_up
    assert fill_up["MostRequestedPriority"] == 1


@pytest.mark.parametrize(("release", "failing"), [("1.10", CORDONED), ("1.13", {}), ("1.17", {})])
def test_a_toleration_opens_cordoned_nodes_since_1_11(release: str, failing: Json) -> None:
    node = a_node("n1", unschedulable=True)
    assert ask(release, a_pod(tolerations=CORDON), [node])["predicates"]["CheckNodeUnschedulable"] == failing
    assert ask(release, a_pod(), [node])["predicates"]["CheckNodeUnschedulable"] == CORDONED


@pytest.mark.parametrize(
    ("release", "gates", "error"),
    [
        ("1.13", {}, ["node(s) were unschedulable"]),
        ("1.13", {"TaintNodesByCondition": True}, ["node(s) were unschedulable"]),
        ("1.10", {"TaintNodesByCondition": True}, None),
    ],
)
def test_taints_may_tell_of_conditions(release: str, gates: dict[str, bool], error: list[str] | None) -> None:
    answer = ask(release, a_pod(), [a_node("n1", unschedulable=True)], options={"featureGates": gates})
    assert answer["failed"].get("n1") == error


def test_conditions_are_told_in_the_order_of_the_node() -> None:
    kinds = [
        ("NetworkUnavailable", "True"),
        ("Ready", "False"),
        ("Ready", "Unknown"),
        ("MemoryPressure", "True"),
    ]
    node = a_node("n1", unschedulable=True, conditions=[{"type": t, "status": s} for t, s in kinds])
    assert ask("1.13", a_pod(), [node])["predicates"]["CheckNodeCondition"]["n1"] == [
        "node(s) had unavailable network",
        "node(s) were not ready",
        "node(s) were not ready",
        "node(s) were unschedulable",
    ]


def test_a_pod_that_names_its_node_fits_there_alone() -> None:
    answer = ask("1.17", a_pod(nodeName="n2"), [a_node("n1"), a_node("n2")])
    assert answer["failed"] == {"n1": ["node(s) didn't match the requested hostname"]}
    lost = ask("1.17", a_pod(nodeName="gone"), [a_node("n1"), a_node("n2")])
    assert lost["message"] == "0/2 nodes are available: 2 node(s) didn't match the requested hostname."


@pytest.mark.parametrize(
    ("release", "reasons"),
    [
        ("1.13", ["Insufficient cpu", "Insufficient memory", "node(s) didn't match node selector"]),
        ("1.17", ["Insufficient cpu"]),
    ],
)
def test_one_reason_is_told_in_1_17(release: str, reasons: list[str]) -> None:
    pod = a_pod(requests={"cpu": "8", "memory": "9Gi"}, nodeSelector={"disk": "ssd"})
    answer = ask(release, pod, [a_node("n1")])
    assert answer["failed"]["n1"] == reasons
    assert len(answer["predicates"]["GeneralPredicates"]["n1"]) == 3


def affinity(side: str) -> Json:
    term = {"labelSelector": {"matchLabels": {"app": "db"}}, "topologyKey": "kubernetes.io/hostname"}
    return {side: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


@pytest.mark.parametrize(
    ("side", "reason"),
    [
        ("podAffinity", "node(s) didn't match pod affinity rules"),
        ("podAntiAffinity", "node(s) didn't match pod affinity/anti-affinity"),
    ],
)
def test_the_reason_that_preemption_can_not_mend_comes_first_in_1_17(side: str, reason: str) -> None:
    there = [a_pod("there", "n1" if side == "podAntiAffinity" else "n2", app="db")]
    answer = ask(
        "1.17", a_pod(affinity=affinity(side)), [a_node("n1"), a_node("n2", unschedulable=True)], there
    )
    assert answer["failed"]["n1"] == [reason]


@pytest.mark.parametrize(("release", "fits"), [("1.13", True), ("1.17", False)])
def test_init_containers_of_pods_that_run_hold_on_in_1_17(release: str, fits: bool) -> None:
    init = [{"name": "i", "resources": {"requests": {"cpu": "3"}}}]
    there = a_pod("there", "n1", requests={"cpu": "1"}, initContainers=init)
    answer = ask(release, a_pod(requests={"cpu": "2"}), [a_node("n1")], [there])
    assert bool(answer["feasible"]) is fits


@pytest.mark.parametrize(("release", "counts"), [("1.13", [10, 0, 0]), ("1.17", [100, 100, 0])])
def test_all_selectors_must_match_in_1_17(release: str, counts: list[int]) -> None:
    def labelled(name: str, node: str, **labels: str) -> Json:
        pod = a_pod(name, node)
        pod["metadata"]["labels"] = labels
        return pod

    services = [
        {"metadata": {"name": k}, "spec": {"selector": {k: v}}}
        for k, v in (("app", "web"), ("tier", "front"))
    ]
    pods = [labelled("a", "n2", app="web"), labelled("b", "n3", app="web", tier="front")]
    pod = labelled("p", "", app="web", tier="front")
    answer = ask(release, pod, [a_node("n1"), a_node("n2"), a_node("n3")], pods, services=services)
    assert list(answer["priorities"]["SelectorSpreadPriority"].values()) == counts


def test_graphics_cards_stand_between_memory_and_storage_in_1_10() -> None:
    card = "alpha.kubernetes.io/nvidia-gpu"
    asked: dict[str, Any] = {
        "memory": "9Gi",
        "ephemeral-storage": "21Gi",
        card: "1",
        "kubernetes.io/thing": "1",
    }
    short = ["Insufficient memory", f"Insufficient {card}", "Insufficient ephemeral-storage"]
    answer = ask("1.10", a_pod(requests=asked), [a_node("n1")])
    assert answer["failed"]["n1"] == short
    later = ask("1.13", a_pod(requests=asked), [a_node("n1")])
    assert later["failed"]["n1"] == [
        short[0],
        short[2],
        f"Insufficient {card}",
        "Insufficient kubernetes.io/thing",
    ]


@pytest.mark.parametrize(
    ("limits", "init", "score"),
    [
        ({}, {}, 0),
        ({"cpu": "4"}, {}, 1),
        ({"cpu": "5"}, {}, 0),
        ({"cpu": "5", "memory": "8Gi"}, {}, 1),
        ({"cpu": "1"}, {"cpu": "5"}, 0),
        ({"cpu": "0"}, {}, 0),
    ],
)
def test_limits_that_the_node_can_hold_score_1(limits: Json, init: Json, score: int) -> None:
    pod = a_pod(limits=limits, initContainers=[{"name": "i", "resources": {"limits": init}}])
    assert ask("1.17", pod, [a_node("n1")])["priorities"]["ResourceLimitsPriority"] == {"n1": score}


@pytest.mark.parametrize("release", THREE)
@pytest.mark.parametrize("presence", [True, False])
def test_labels_may_be_asked_for_or_against(release: str, presence: bool) -> None:
    nodes = [a_node("n1", labels={"disk": "ssd", "gpu": ""}), a_node("n2", labels={"disk": ""}), a_node("n3")]
    options = {
        "labelsPresence": {"labels": ["disk", "gpu"], "presence": presence},
        "labelPreference": {"label": "disk", "presence": presence},
    }
    answer = ask(release, a_pod(), nodes, options=options)
    failing = ["n2", "n3"] if presence else ["n1", "n2"]
    reason = ["node(s) didn't have the requested labels"]
    assert answer["predicates"]["CheckNodeLabelPresence"] == dict.fromkeys(failing, reason)
    top = RELEASES[release].maximum
    having = {"n1": top, "n2": top, "n3": 0}
    expected = having if presence else {name: top - score for name, score in having.items()}
    assert answer["priorities"]["NodeLabel"] == expected
    assert "NodeLabel" not in ask(release, a_pod(), nodes)["priorities"]


@pytest.mark.parametrize(
    ("release", "options"),
    [
        ("1.10", {"hardPodAffinityWeight": 0}),
        ("1.17", {"hardPodAffinityWeight": 101}),
        ("1.13", {"requestedToCapacityRatio": {"shape": []}}),
    ],
)
def test_bad_options_are_refused(release: str, options: Json) -> None:
    assert "error" in ask(release, a_pod(), [a_node("n1")], options=options)


@pytest.mark.parametrize(("release", "refused"), [("1.7", False), ("1.10", True), ("1.17", True)])
def test_claims_that_go_stop_everything_since_1_9(release: str, refused: bool) -> None:
    meta = {"name": "c", "namespace": "default", "deletionTimestamp": "2026-01-01T00:00:00Z"}
    claim = {
        "metadata": meta | {"annotations": {"pv.kubernetes.io/bind-completed": "y"}},
        "spec": {"volumeName": "v"},
    }
    pod = a_pod(volumes=[{"name": "d", "persistentVolumeClaim": {"claimName": "c"}}])
    volumes = [{"metadata": {"name": "v"}, "spec": {}}]
    answer = ask(release, pod, [a_node("n1")], persistentVolumeClaims=[claim], persistentVolumes=volumes)
    assert ("error" in answer) is refused


@pytest.mark.parametrize("release", ["1.7", *THREE])
def test_a_profile_says_what_the_answer_says(release: str) -> None:
    known = RELEASES[release]
    nodes = [
        a_node("n1", unschedulable=True),
        a_node("n2", taints=[{"key": "a", "effect": "NoSchedule"}]),
        a_node("n3"),
    ]
    raw = a_pod(requests={"cpu": "8"}, nodeSelector={"disk": "ssd"})
    cluster = Cluster(known.accounting)
    for node in nodes:
        cluster.put_node(msgspec.convert(node, Node))
    pod = cluster.incoming(msgspec.convert(raw, Pod))
    evaluation = Evaluation(provider_profile(known, Options()), pod, cluster)
    assert str(evaluation.unschedulable()) == ask(release, raw, nodes)["message"]
    assert not evaluation.fits.any()


def test_providers_are_told_by_name() -> None:
    known = RELEASES["1.13"]
    scores = provider_profile(known, Options(), "ClusterAutoscalerProvider").scores
    assert "MostRequestedPriority" in {score.name for score in scores}
    with pytest.raises(InputError, match="DefaultProvider, ClusterAutoscalerProvider"):
        provider_profile(known, Options(), "Other")
