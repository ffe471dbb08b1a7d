"""Many pods of one shape at once, with the very decisions of placing them one at a time."""

import copy
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace as replace_struct

from berth.cluster.cluster import Cluster, Incoming
from berth.cluster.modern_accounting import ModernAccounting
from berth.framework.plugin import BatchKind
from berth.framework.profile import Profile
from berth.objects.base import LabelSelector, LabelSelectorRequirement
from berth.objects.pods import (
    NodeAffinity,
    NodeSelectorTerm,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    PreferredSchedulingTerm,
    TopologySpreadConstraint,
    WeightedPodAffinityTerm,
)
from berth.scheduling import ahead, running
from berth.scheduling.batch import Batch, place
from berth.scheduling.batch_kernels import BATCH
from berth.scheduling.decide import Decision, decide
from berth.scheduling.evaluation import Evaluation
from berth.scheduling.ties import TieBreaker, TieRule
from tests.builders import HOST, a_cluster, a_node, a_pod, a_service
from tests.scheduling.modern_worlds import MODERN, WEB, modern_clusters, modern_pods, social_pods
from tests.scheduling.modern_worlds import ZONE as MODERN_ZONE
from tests.scheduling.worlds import PROFILE, clusters, contents, pods

RULES: tuple[TieRule, ...] = ("round-robin", "random", "name")


@pytest.fixture(autouse=True, params=["compiled", "in Python"], scope="module")
def engine(request: pytest.FixtureRequest, compiled_loops: None) -> Iterator[None]:
    """Every test runs with both."""
    kernels = BATCH.load() if request.param == "compiled" else None
    if request.param == "compiled" and kernels is None:
        pytest.skip("Numba is not installed")
    with BATCH.using(kernels):
        yield


def in_a_batch(
    cluster: Cluster, pod: Pod, n: int, ties: TieBreaker, profile: Profile = PROFILE
) -> list[Decision]:
    incoming = cluster.incoming(pod)
    evaluation = Evaluation(profile, incoming, cluster)

    def assume(row: int) -> None:
        cluster.assume(incoming, row)

    return place(evaluation, n, ties, assume)


def one_at_a_time(
    cluster: Cluster, pod: Pod, n: int, ties: TieBreaker, profile: Profile = PROFILE
) -> list[Decision]:
    incoming = cluster.incoming(pod)
    decisions = []
    for _ in range(n):
        decision = decide(Evaluation(profile, incoming, cluster), ties)
        if decision.row is not None:
            cluster.assume(incoming, decision.row)
        decisions.append(decision)
    return decisions


def check_alike(
    cluster: Cluster,
    pod: Pod,
    n: int,
    rule: TieRule = "round-robin",
    counter: int = 0,
    profile: Profile = PROFILE,
) -> list[Decision]:
    ties = [TieBreaker(rule, seed=7, counter=counter) for _ in range(2)]
    twin = copy.deepcopy(cluster)
    batched = in_a_batch(cluster, pod, n, ties[0], profile)
    assert batched == one_at_a_time(twin, pod, n, ties[1], profile)
    assert ties[0] == ties[1]
    incoming = cluster.incoming(pod)
    ours, its = (contents(Evaluation(profile, incoming, c)) for c in (cluster, twin))
    assert ours == its
    return batched


def can_batch(cluster: Cluster, pod: Pod, profile: Profile = PROFILE) -> bool:
    return isinstance(Batch.of(Evaluation(profile, cluster.incoming(pod), cluster)), Batch)


@settings(max_examples=80)
@given(
    cluster=clusters(), pod=pods, n=st.integers(2, 40), rule=st.sampled_from(RULES), counter=st.integers(0, 5)
)
def test_a_batch_decides_as_one_at_a_time(
    cluster: Cluster, pod: Pod, n: int, rule: TieRule, counter: int
) -> None:
    check_alike(cluster, pod, n, rule, counter)


@settings(max_examples=100)
@given(
    cluster=modern_clusters(),
    pod=modern_pods,
    n=st.integers(2, 60),
    rule=st.sampled_from(RULES),
    counter=st.integers(0, 5),
)
def test_a_batch_of_1_36_decides_as_one_at_a_time(
    cluster: Cluster, pod: Pod, n: int, rule: TieRule, counter: int
) -> None:
    check_alike(cluster, pod, n, rule, counter, MODERN)


@settings(max_examples=150)
@given(
    cluster=modern_clusters(st.one_of(modern_pods, social_pods)),
    pod=social_pods,
    n=st.integers(2, 60),
    rule=st.sampled_from(RULES),
    counter=st.integers(0, 5),
)
def test_a_batch_of_social_pods_decides_as_one_at_a_time(
    cluster: Cluster, pod: Pod, n: int, rule: TieRule, counter: int
) -> None:
    check_alike(cluster, pod, n, rule, counter, MODERN)


@settings(max_examples=12)
@given(
    cluster=clusters(), labels=st.sampled_from([{"app": "web"}, {}]), cpu=st.sampled_from(["1m", "30m", None])
)
def test_many_small_pods_on_few_nodes(cluster: Cluster, labels: dict[str, str], cpu: str | None) -> None:
    # Far more than what is computed ahead for whole columns, and than one run on a row.
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ahead, "RUN_LENGTH", 16)
        check_alike(cluster, a_pod(labels=labels, cpu=cpu, memory="5Mi"), 130)


def test_runs_on_a_row_go_on_beyond_their_length(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ahead, "RUN_LENGTH", 40)
    cluster = a_cluster(a_node("n1", cpu="1", pods="500"), a_node("n2", cpu="64", memory="640Gi", pods="90"))
    decisions = check_alike(cluster, a_pod(cpu="10m", memory="1Mi"), 200)
    rows = [decision.row for decision in decisions]
    assert rows.count(1) == 90
    assert rows.count(0) == 100
    assert rows[190:] == [None] * 10
    reason = "0/2 nodes are available: 1 Insufficient cpu, 1 Insufficient pods."
    assert decisions[-1].reason == reason


def test_a_host_port_goes_to_each_node_once() -> None:
    cluster = a_cluster(
        a_node("n1"), a_node("n2"), a_node("n3"), pods=[a_pod("x", node="n2", host_ports=(80,))]
    )
    pod = a_pod(host_ports=(80,))
    assert can_batch(cluster, pod)
    decisions = check_alike(cluster, pod, 5)
    assert sorted(d.row for d in decisions if d.row is not None) == [0, 2]
    assert [d.n_feasible for d in decisions] == [2, 1, 0, 0, 0]
    assert decisions[-1].reason == (
        "0/3 nodes are available: 3 node(s) didn't have free ports for the requested pod ports."
    )


def test_scores_are_normalised_again_when_the_highest_closes() -> None:
    ssd = NodeAffinity(
        preferred=(
            PreferredSchedulingTerm(weight=10, preference=node_term("ssd")),
            PreferredSchedulingTerm(weight=4, preference=node_term("hdd")),
        )
    )
    cluster = a_cluster(
        a_node("n1", labels={"disk": "ssd"}, pods="1"),
        a_node("n2", labels={"disk": "hdd"}, pods="2"),
        a_node("n3", pods="3"),
    )
    decisions = check_alike(cluster, a_pod(node_affinity=ssd, cpu="100m"), 6)
    assert [d.row for d in decisions][:1] == [0]
    scores = [d.scores["NodeAffinityPriority"] for d in decisions if d.row == 1]
    assert scores == [10, 10]  # once the ssd is full, the hdd is the best there is


def node_term(disk: str) -> NodeSelectorTerm:
    expression = LabelSelectorRequirement(key="disk", operator="In", values=(disk,))
    return NodeSelectorTerm(match_expressions=(expression,))


@pytest.mark.parametrize("zones", [("a", "a", "b"), (None, None, None), ("a", None, "b")])
def test_spreading(zones: tuple[str | None, ...]) -> None:
    cluster = a_cluster(
        *(a_node(f"n{i}", cpu="64", memory="640Gi", zone=zone) for i, zone in enumerate(zones)),
        services=[a_service("web")],
    )
    pod = a_pod(labels={"app": "web"}, cpu="100m", memory="100Mi")
    assert can_batch(cluster, pod)
    rows = [decision.row for decision in check_alike(cluster, pod, 30)]
    if zones[0] is None:
        assert [rows.count(i) for i in range(3)] == [10, 10, 10]
    if zones == ("a", "a", "b"):
        assert abs(rows.count(2) - 15) <= 2


def test_pods_that_move_one_another_go_one_at_a_time() -> None:
    apart = PodAffinity(
        required=(
            PodAffinityTerm(label_selector=LabelSelector(match_labels={"app": "web"}), topology_key=HOST),
        )
    )
    cluster = a_cluster(a_node("n1"), a_node("n2"))
    pod = a_pod(labels={"app": "web"}, anti_affinity=apart)
    assert can_batch(cluster, pod)
    decisions = check_alike(cluster, pod, 4)
    assert sorted(d.row for d in decisions if d.row is not None) == [0, 1]


def test_weights_too_heavy_for_narrow_totals_are_added_up_in_64_bits() -> None:
    heavy = tuple(replace(score, weight=2**31 - 1) for score in PROFILE.scores)
    evaluation = Evaluation(replace(PROFILE, scores=heavy), *_one_pod_and_two_nodes())
    assert Batch.of(evaluation) is BatchKind.SERIAL
    placed = place(evaluation, 2, TieBreaker(), lambda row: None)
    assert all(decision.score is not None and decision.score > 2**31 for decision in placed)


def _one_pod_and_two_nodes() -> tuple[Incoming, Cluster]:
    cluster = a_cluster(a_node("n1", cpu="4"), a_node("n2", cpu="8"))
    return cluster.incoming(a_pod(cpu="1")), cluster


def test_no_node_at_all() -> None:
    (decision,) = check_alike(a_cluster(), a_pod(), 1)
    assert decision.reason == "0/0 nodes are available: ."


def test_nothing_is_assumed_where_nothing_fits() -> None:
    cluster = a_cluster(a_node("n1", cpu="1"))
    ties = TieBreaker()
    decisions = in_a_batch(cluster, a_pod(cpu="2"), 3, ties)
    assert [d.reason for d in decisions] == ["0/1 nodes are available: 1 Insufficient cpu."] * 3
    assert ties.counter == 0
    assert np.count_nonzero(cluster.pods.alive) == 0


def a_modern_cluster(n_nodes: int, n_zones: int, seed: int = 1, *, with_service: bool = True) -> Cluster:
    """Nodes of some sizes, in random order, with a service."""
    chance = np.random.default_rng(seed)
    cluster = Cluster(ModernAccounting())
    for i in chance.permutation(n_nodes).tolist():
        labels = {MODERN_ZONE: f"z{i % n_zones}"} if i % 7 else {}
        cpu, pods = str(chance.choice([2, 4, 16])), str(chance.choice([3, 10, 110]))
        taints = ["spot:PreferNoSchedule"] if i % 5 == 0 else []
        cluster.put_node(a_node(f"n{i:04}", cpu=cpu, memory="32Gi", pods=pods, labels=labels, taints=taints))
    if with_service:
        cluster.put(a_service("web"))
    return cluster


@pytest.mark.parametrize("kind", ["alone", "avoid"])
@pytest.mark.parametrize("max_tree_bytes", [0, 2_000, 64 << 20])
def test_classes_may_be_more_than_there_is_room_for(
    monkeypatch: pytest.MonkeyPatch, max_tree_bytes: int, kind: str
) -> None:
    # With 2,000 bytes the trees of the first classes have room, and those of the later ones have not.
    monkeypatch.setattr(running, "MAX_TREE_BYTES", max_tree_bytes)
    cluster = a_modern_cluster(40, n_zones=16)
    check_alike(cluster, social_pod(kind, MODERN_ZONE, cpu="100m"), 120, profile=MODERN)


@pytest.mark.parametrize("labels", [{"app": "web"}, {}])
@pytest.mark.parametrize("n", [300, 4_000])
def test_big_batches_are_alike_compiled_and_in_python(labels: dict[str, str], n: int) -> None:
    cluster = a_modern_cluster(700, n_zones=3)
    pod = cluster.incoming(a_pod(labels=labels, cpu="150m", memory="200Mi"))
    check_engines(Evaluation(MODERN, pod, cluster), n)


def check_engines(evaluation: Evaluation, n: int) -> None:
    outcomes = []
    for kernels in (BATCH.load(), None):
        prepared = Batch.of(evaluation)
        assert isinstance(prepared, Batch)
        with BATCH.using(kernels):
            placements = prepared.run(n, TieBreaker(counter=5))
        scores = {name: column.tolist() for name, column in placements.scores().items()}
        outcomes.append(
            (placements.row.tolist(), placements.total.tolist(), placements.n_feasible.tolist(), scores)
        )
    assert len(outcomes[0][0]) == n
    assert outcomes[0] == outcomes[1]


def social_pod(kind: str, key: str, **values: Any) -> Pod:
    """A web pod that wants, shuns, or must be spread among, its own kind within the domains of a key."""
    term = PodAffinityTerm(label_selector=WEB, topology_key=key)
    wish = PodAffinity(preferred=(WeightedPodAffinityTerm(weight=3, pod_affinity_term=term),))
    need = PodAffinity(required=(term,))
    hard = TopologySpreadConstraint(
        max_skew=1, topology_key=key, when_unsatisfiable="DoNotSchedule", label_selector=WEB
    )
    affinity = {"seek": need, "prefer": wish}.get(kind)
    anti_affinity = {"shun": need, "avoid": wish}.get(kind)
    pod = a_pod(labels={"app": "web"}, affinity=affinity, anti_affinity=anti_affinity, **values)
    constraints = (hard,) if kind == "spread" else ()
    return replace_struct(pod, spec=replace_struct(pod.spec, topology_spread_constraints=constraints))


KINDS = ("seek", "shun", "spread", "prefer", "avoid")


@pytest.mark.parametrize("with_service", [False, True])
@pytest.mark.parametrize("key", [HOST, MODERN_ZONE])
@pytest.mark.parametrize("kind", KINDS)
def test_social_pods_are_placed_as_a_batch(kind: str, key: str, with_service: bool) -> None:
    # Nodes of three kinds, taints that are shunned, some without a zone: constant scores change their extremes.
    cluster = a_modern_cluster(60, n_zones=4, with_service=with_service)
    pod = social_pod(kind, key, cpu="300m", memory="100Mi", node_affinity=prefers_zone("z1"))
    if kind == "seek":
        assert Batch.of(Evaluation(MODERN, cluster.incoming(pod), cluster)) is BatchKind.FIRST
        cluster.put_pod(replace_struct(pod, spec=replace_struct(pod.spec, node_name="n0003")))
    assert can_batch(cluster, pod, MODERN)
    placed = [d.row for d in check_alike(cluster, pod, 90, profile=MODERN) if d.row is not None]
    assert len(placed) >= 2


def test_the_first_of_its_kind_is_placed_alone_and_the_others_follow_as_a_batch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster = a_modern_cluster(20, n_zones=4)
    prepared: list[object] = []
    prepare = Batch.of

    def of(evaluation: Evaluation) -> Batch | BatchKind:
        prepared.append(prepare(evaluation))
        return prepare(evaluation)

    monkeypatch.setattr(Batch, "of", of)
    decisions = check_alike(cluster, social_pod("seek", MODERN_ZONE, cpu="100m"), 30, profile=MODERN)
    assert prepared[0] is BatchKind.FIRST
    assert [type(one) for one in prepared[1:]] == [Batch]
    zones = cluster.nodes.labels.column(MODERN_ZONE)
    assert len({int(zones[d.row]) for d in decisions if d.row is not None}) == 1


def test_scores_are_normalised_again_when_classes_open_and_shut() -> None:
    # Each zone is alone in being open every other time, and then all nodes are liked as much.
    cluster = Cluster(ModernAccounting())
    for i, zone in enumerate("aabb"):
        cluster.put_node(a_node(f"n{i}", cpu="64", memory="640Gi", labels={MODERN_ZONE: zone}))
    pod = social_pod("spread", MODERN_ZONE, cpu="100m", node_affinity=prefers_zone("a"))
    decisions = check_alike(cluster, pod, 8, profile=MODERN)
    assert [d.n_feasible for d in decisions] == [4, 2] * 4
    assert [d.scores["NodeAffinity"] for d in decisions] == [100, 0] * 4


def prefers_zone(zone: str) -> NodeAffinity:
    expression = LabelSelectorRequirement(key=MODERN_ZONE, operator="In", values=(zone,))
    term = PreferredSchedulingTerm(weight=5, preference=NodeSelectorTerm(match_expressions=(expression,)))
    return NodeAffinity(preferred=(term,))


@pytest.mark.parametrize("kind", ["spread", "prefer", "avoid"])
def test_big_batches_of_social_pods_are_alike_compiled_and_in_python(kind: str) -> None:
    cluster = a_modern_cluster(700, n_zones=3)
    pod = cluster.incoming(social_pod(kind, MODERN_ZONE, cpu="150m", node_affinity=prefers_zone("z1")))
    check_engines(Evaluation(MODERN, pod, cluster), 1_000)
