"""1.36: its default profile, its words, and evaluations that stay right whatever happens."""

import json
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from berth.cluster.cluster import Cluster
from berth.cluster.modern_accounting import ModernAccounting
from berth.objects.nodes import Node
from berth.objects.pods import (
    Affinity,
    Container,
    ContainerRestartRule,
    ImageVolume,
    NodeAffinity,
    NodeSelector,
    Pod,
    PodResourceClaim,
    ResourceRequirements,
    Volume,
)
from berth.releases import RELEASES
from berth.releases.profiles import provider_profile
from berth.releases.release import Options
from berth.scheduling.batch import place
from berth.scheduling.decide import decide
from berth.scheduling.evaluation import Evaluation
from berth.scheduling.ties import TieBreaker
from berth.sources.cases import answer_case
from tests.builders import a_node, a_pod
from tests.scheduling.worlds import NODE_NAMES, contents, node_lists, nodes, pods, renamed, some_zones

RELEASE = RELEASES["1.36"]
PROFILE = provider_profile(RELEASE, Options())
RESTART_ALL = "RestartAllContainersOnContainerExits"


def ask(pod: Pod, *its_nodes: Node, **options: Any) -> dict[str, Any]:
    case = {"id": "x", "pod": pod, "nodes": its_nodes, "options": options}
    return answer_case(msgspec.json.encode(case), RELEASE)


def naming(*terms: list[str]) -> Pod:
    """A pod with one node selector term for each list; it asks for all names of its list, one field each."""
    selector = [
        {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [name]} for name in term]}
        for term in terms
    ]
    required = msgspec.json.decode(json.dumps({"nodeSelectorTerms": selector}), type=NodeSelector)
    pod = a_pod()
    affinity = Affinity(node_affinity=NodeAffinity(required=required))
    return msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, affinity=affinity))


def with_spec(pod: Pod, **spec: Any) -> Pod:
    return msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, **spec))


def test_nodes_that_are_not_named_are_not_asked() -> None:
    its_nodes = [a_node("a", cpu="0"), a_node("b"), a_node("c", cpu="0")]
    answer = ask(with_spec(naming(["a"], ["b"]), tolerations=()), *its_nodes)
    left_out = ["node(s) didn't satisfy plugin(s) [NodeAffinity]"]
    assert answer["feasible"] == ["a", "b"]
    assert answer["failed"] == {"c": left_out}
    assert answer["predicates"]["NodeAffinity"] == {"c": left_out}
    hungry = with_spec(naming(["a"]), containers=a_pod(cpu="1").spec.containers)
    assert ask(hungry, *its_nodes)["message"] == (
        "0/3 nodes are available: 1 Insufficient cpu, 2 node(s) didn't satisfy plugin(s) [NodeAffinity]."
    )


def test_names_that_contradict_each_other_turn_the_pod_away() -> None:
    answer = ask(naming(["a", "b"]), a_node("a"), a_node("b"))
    assert answer["message"] == "0/2 nodes are available: pod affinity terms conflict."
    assert answer["failed"] == {name: ["pod affinity terms conflict"] for name in "ab"}


def test_an_evaluation_says_the_same() -> None:
    cluster = Cluster(ModernAccounting())
    for name in "abc":
        cluster.put_node(a_node(name, cpu="0" if name == "a" else "4"))
    conflict = Evaluation(PROFILE, cluster.incoming(naming(["a", "b"])), cluster)
    assert (
        decide(conflict, TieBreaker("name")).reason == "0/3 nodes are available: pod affinity terms conflict."
    )
    hungry = with_spec(naming(["a"]), containers=a_pod(cpu="1").spec.containers)
    assert str(Evaluation(PROFILE, cluster.incoming(hungry), cluster).unschedulable()) == (
        "0/3 nodes are available: 1 Insufficient cpu, 2 node(s) didn't satisfy plugin(s) [NodeAffinity]."
    )
    named = Evaluation(PROFILE, cluster.incoming(naming(["b"])), cluster)
    assert cluster.nodes.names[decide(named, TieBreaker("name")).row or 0] == "b"
    rows: list[int] = []
    placed = place(named, 3, TieBreaker("name"), rows.append)
    assert {d.row for d in placed} == {cluster.nodes.row("b")}


def test_what_is_not_supported_is_not_passed_over() -> None:
    pod = with_spec(a_pod(), resource_claims=(PodResourceClaim(name="gpu"),))
    assert ask(pod, a_node("a"))["message"] == (
        "0/1 nodes are available: not supported: the pod claims dynamic resources (spec.resourceClaims)."
    )
    pod = with_spec(a_pod(), scheduling_group={"podGroupName": "gang"})
    assert ask(pod, a_node("a"))["message"] == (
        "0/1 nodes are available: not supported: the pod is placed with its group (spec.schedulingGroup)."
    )


def test_without_nodes_there_is_only_a_message() -> None:
    answer = ask(a_pod())
    assert answer["message"] == "no nodes available to schedule pods"
    assert "error" not in answer


def test_the_words_of_the_release() -> None:
    tainted = a_node("a", taints=["spot:NoSchedule"], unschedulable=True)
    predicates = ask(a_pod(cpu="9", node="b"), tainted, a_node("b", pods=0))["predicates"]
    assert predicates["NodeUnschedulable"] == {"a": ["node(s) were unschedulable"]}
    assert predicates["TaintToleration"] == {"a": ["node(s) had untolerated taint(s)"]}
    assert predicates["NodeName"] == {"a": ["node(s) didn't match the requested node name"]}
    assert predicates["NodeResourcesFit"] == {
        "a": ["Insufficient cpu"],
        "b": ["Too many pods", "Insufficient cpu"],
    }


def test_overcommitted_resources_do_no_harm_to_who_asks_for_none() -> None:
    cluster = Cluster(ModernAccounting())
    cluster.put_node(a_node("a", memory="1Mi"))
    cluster.put_pod(a_pod("p", node="a", memory="2Mi"))
    evaluation = Evaluation(PROFILE, cluster.incoming(a_pod(cpu="1")), cluster)
    assert evaluation.fits.tolist() == [True]


def test_declared_features() -> None:
    restarts = Container(
        name="c", restart_policy_rules=(ContainerRestartRule(action="RestartAllContainers"),)
    )
    pod = with_spec(a_pod(), containers=(restarts,))
    both = (RESTART_ALL, "UserNamespacesHostNetworkSupport")
    its_nodes = [
        msgspec.structs.replace(
            a_node(name), status=msgspec.structs.replace(a_node(name).status, declared_features=f)
        )
        for name, f in [("all", both), ("none", ()), ("out of order", both[::-1])]
    ]
    reason = ["node(s) didn't match Pod's required features"]
    # Upstream takes the list to be sorted, as the API server keeps it.
    assert ask(pod, *its_nodes)["failed"] == {"none": reason, "out of order": reason}
    gates = {"NodeDeclaredFeatures": False}
    assert not ask(pod, *its_nodes, featureGates=gates)["predicates"]["NodeDeclaredFeatures"]
    rootless = with_spec(a_pod(), host_network=True, host_users=False)
    assert ask(rootless, *its_nodes)["feasible"] == ["all", "out of order"]


@pytest.mark.parametrize(
    ("operator", "value", "tolerated"),
    [("Lt", "10", True), ("Lt", "5", False), ("Gt", "4", True), ("Gt", "x", False), ("Gt", "04", False)],
)
def test_tolerations_compare_numbers_where_the_gate_is_open(
    operator: str, value: str, tolerated: bool
) -> None:
    pod = a_pod(tolerations=["sla:NoSchedule"])
    (toleration,) = pod.spec.tolerations
    pod = with_spec(pod, tolerations=(msgspec.structs.replace(toleration, operator=operator, value=value),))
    node = a_node("a", taints=["sla=5:NoSchedule"])
    gates = {"TaintTolerationComparisonOperators": True}
    assert bool(ask(pod, node, featureGates=gates)["feasible"]) is tolerated
    assert not ask(pod, node)["feasible"]


def test_image_volumes_and_init_containers_count() -> None:
    image = {"names": ["r.local/a:1"], "sizeBytes": 500 << 20}
    node = msgspec.to_builtins(a_node("a"))
    node["status"]["images"] = [image]
    pod = with_spec(a_pod(), volumes=(Volume(name="v", image=ImageVolume(reference="r.local/a:1")),))
    case = {"pod": pod, "nodes": [node, a_node("b")]}
    scores = answer_case(msgspec.json.encode(case), RELEASE)["priorities"]["ImageLocality"]
    # Half of the nodes have it: 250 of 1000 MB, less the 23 that do not count.
    assert scores == {"a": 100 * (250 - 23) // (1000 - 23), "b": 0}
    case["pod"] = with_spec(pod, init_containers=(Container(name="i", image="r.local/a:1"),))
    scores = answer_case(msgspec.json.encode(case), RELEASE)["priorities"]["ImageLocality"]
    assert scores["a"] == 100 * (500 - 23) // (2000 - 23)


# -- kept evaluations -------------------------------------------------------------------------------------------------

own_resources = st.sampled_from([None, None, {"cpu": "1"}, {"memory": "300Mi", "cpu": "0"}])


@st.composite
def modern_pods(draw: st.DrawFn) -> Pod:
    pod = draw(pods)
    requests = draw(own_resources)
    return with_spec(
        pod,
        overhead=draw(st.sampled_from([{}, {}, {"cpu": "100m"}])),
        resources=None if requests is None else ResourceRequirements(requests={**requests}),
        host_network=draw(st.booleans()),
        host_users=draw(st.sampled_from([None, False])),
        volumes=draw(st.sampled_from([(), (Volume(name="v", image=ImageVolume(reference="r.local/a")),)])),
    )


@st.composite
def modern_clusters(draw: st.DrawFn) -> Cluster:
    cluster = Cluster(ModernAccounting())
    for node in draw(node_lists()):
        cluster.put_node(node)
    for i, pod in enumerate(draw(st.lists(modern_pods(), max_size=8))):
        cluster.put_pod(renamed(pod, f"p{i}"))
    return cluster


@st.composite
def modern_nodes(draw: st.DrawFn) -> Node:
    node = msgspec.to_builtins(draw(nodes(draw(st.sampled_from(NODE_NAMES)), some_zones)))
    node["status"]["declaredFeatures"] = draw(
        st.sampled_from([[], [RESTART_ALL], ["UserNamespacesHostNetworkSupport"]])
    )
    node["status"]["images"] = draw(
        st.sampled_from([[], [{"names": ["r.local/a:latest"], "sizeBytes": 700 << 20}]])
    )
    return msgspec.convert(node, Node)


steps = st.one_of(
    st.tuples(st.just("assume"), st.none(), st.integers(0, 9)),
    st.tuples(st.just("put pod"), modern_pods(), st.integers(0, 9)),
    st.tuples(st.just("remove pod"), st.none(), st.integers(0, 99)),
    st.tuples(st.just("put node"), modern_nodes(), st.just(0)),
    st.tuples(st.just("remove node"), st.none(), st.integers(0, 9)),
    st.tuples(st.just("mend"), st.none(), st.just(0)),
)


def happen(cluster: Cluster, its_like: Pod, what: str, thing: Any, number: int) -> None:
    alive = np.flatnonzero(cluster.nodes.alive).tolist()
    pods_there = np.flatnonzero(cluster.pods.alive).tolist()
    if what == "assume" and alive:
        cluster.assume(cluster.incoming(its_like), alive[number % len(alive)])
    elif what == "put pod":
        cluster.put_pod(renamed(thing, f"q{number}"))
    elif what == "remove pod" and pods_there:
        cluster.remove_pod(pods_there[number % len(pods_there)])
    elif what == "put node":
        cluster.put_node(thing)
    elif what == "remove node" and alive:
        cluster.remove_node(cluster.nodes.names[alive[number % len(alive)]])


@settings(max_examples=80)
@given(cluster=modern_clusters(), pod=modern_pods(), history=st.lists(steps, max_size=15))
def test_mended_equals_fresh(cluster: Cluster, pod: Pod, history: list[tuple[str, Any, int]]) -> None:
    incoming = cluster.incoming(pod)
    kept = Evaluation(PROFILE, incoming, cluster)
    for what, thing, number in [*history, ("mend", None, 0)]:
        happen(cluster, pod, what, thing, number)
        if what == "mend":
            kept.mend()
            assert contents(kept) == contents(Evaluation(PROFILE, incoming, cluster))


@settings(max_examples=80)
@given(cluster=modern_clusters(), pod=modern_pods(), n=st.integers(2, 8))
def test_a_batch_decides_as_one_at_a_time(cluster: Cluster, pod: Pod, n: int) -> None:
    incoming = cluster.incoming(pod)
    assumed: list[int] = []
    together = place(
        Evaluation(PROFILE, incoming, cluster),
        n,
        TieBreaker("name"),
        lambda row: assumed.append(cluster.assume(incoming, row)),
    )
    for planned in assumed:
        cluster.forget(planned)
    evaluation, ties = Evaluation(PROFILE, incoming, cluster), TieBreaker("name")
    for decision in together:
        alone = decide(evaluation, ties)
        assert decision == alone
        if alone.row is None:
            break
        cluster.assume(incoming, alone.row)
