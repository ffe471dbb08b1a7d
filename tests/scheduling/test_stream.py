"""Pods of many shapes in any order, with the very decisions of placing them one at a time."""

import copy
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from berth.cluster.cluster import Cluster
from berth.framework.profile import Profile, WeightedScore
from berth.objects.base import LabelSelector
from berth.objects.pods import Pod, PodAffinity, PodAffinityTerm
from berth.plugins.node_resources_score import ResourcesScore, most_allocated
from berth.plugins.resource_allocation import ResourceAllocation, most_requested
from berth.releases.legacy_1_13 import RELEASE_1_13
from berth.releases.modern import RELEASE_1_36
from berth.releases.profiles import provider_profile
from berth.releases.release import Options
from berth.scheduling import stream
from berth.scheduling.decide import decide
from berth.scheduling.evaluation import Evaluation
from berth.scheduling.evaluations import Evaluations
from berth.scheduling.stream import place_stream
from berth.scheduling.stream_kernels import STREAM, StreamKernels
from berth.scheduling.ties import TieBreaker, TieRule
from tests.builders import HOST, a_cluster, a_node, a_pod, a_service
from tests.scheduling.test_batch import RULES
from tests.scheduling.worlds import PROFILE, clusters, pods

pytestmark = pytest.mark.usefixtures("compiled_loops")

TODAY = provider_profile(RELEASE_1_36, Options())
FULLEST = (
    WeightedScore(
        "most allocated", ResourcesScore(most_allocated, 100, (("cpu", 2), ("example.com/gpu", 3))), 3
    ),
    WeightedScore("most requested", ResourceAllocation(most_requested, 10), 7),
)
PROFILES = {
    "fullest": replace(TODAY, scores=(*TODAY.scores, *FULLEST)),
    "module": PROFILE,
    "1.13": provider_profile(RELEASE_1_13, Options()),
    "1.36": TODAY,
}
Decided = list[tuple[int, int, int]]


def one_at_a_time(
    profile: Profile, cluster: Cluster, shapes: Sequence[Pod], order: Sequence[int], ties: TieBreaker
) -> Decided:
    incoming = [cluster.incoming(pod) for pod in shapes]
    kept = [Evaluation(profile, pod, cluster) for pod in incoming]
    decided = []
    for i in order:
        decision = decide(kept[i], ties)
        if decision.row is not None:
            cluster.assume(incoming[i], decision.row)
        row, score = decision.row, decision.score
        decided.append((-1 if row is None else row, -1 if score is None else score, decision.n_feasible))
    return decided


def in_a_stream(
    profile: Profile,
    cluster: Cluster,
    shapes: Sequence[Pod],
    order: Sequence[int],
    ties: TieBreaker,
    kernels: StreamKernels | None,
) -> Decided:
    incoming = [cluster.incoming(pod) for pod in shapes]
    evaluations = Evaluations(profile, cluster).each(incoming)
    with STREAM.using(kernels):
        placed = place_stream(evaluations, np.array(order, dtype=np.int32), ties)
    columns = (placed.row.tolist(), placed.total.tolist(), placed.n_feasible.tolist())
    return list(zip(*columns, strict=True))


def check_alike(
    cluster: Cluster,
    shapes: Sequence[Pod],
    order: Sequence[int],
    profile: Profile = TODAY,
    rule: TieRule = "round-robin",
) -> Decided:
    before = cluster.requested.of(0).tolist()
    ties = [TieBreaker(rule, seed=7, counter=3) for _ in range(3)]
    streamed = [
        in_a_stream(profile, cluster, shapes, order, ties[i], kernels)
        for i, kernels in enumerate((None, STREAM.load()))
    ]
    assert cluster.requested.of(0).tolist() == before
    expected = one_at_a_time(profile, copy.deepcopy(cluster), shapes, order, ties[2])
    assert streamed[0] == expected
    assert streamed[1] == expected
    assert ties[0] == ties[1] == ties[2]
    return expected


orders = st.lists(st.integers(0, 3), min_size=1, max_size=60)


@pytest.mark.parametrize("profile", PROFILES.values(), ids=PROFILES)
@settings(max_examples=30, deadline=None)
@given(
    cluster=clusters(),
    shapes=st.lists(pods, min_size=4, max_size=4),
    order=orders,
    rule=st.sampled_from(RULES),
)
def test_a_stream_decides_as_one_at_a_time(
    profile: Profile, cluster: Cluster, shapes: list[Pod], order: list[int], rule: TieRule
) -> None:
    check_alike(cluster, shapes, order, profile, rule)


plain_pods = st.builds(
    a_pod,
    labels=st.sampled_from([{"app": "web"}, {"app": "db"}, {}]),
    cpu=st.sampled_from([None, "1m", "50m", "500m"]),
    memory=st.sampled_from([None, "1Mi", "100Mi", "900Mi"]),
    tolerations=st.sampled_from([(), ("spot:NoSchedule",)]),
)


@pytest.mark.parametrize("profile", PROFILES.values(), ids=PROFILES)
@settings(max_examples=12, deadline=None)
@given(cluster=clusters(), shapes=st.lists(plain_pods, min_size=4, max_size=4), seed=st.integers(0, 9))
def test_long_streams_of_plain_pods(profile: Profile, cluster: Cluster, shapes: list[Pod], seed: int) -> None:
    check_alike(cluster, shapes, np.random.default_rng(seed).integers(0, 4, 150).tolist(), profile)


@pytest.mark.parametrize("labels", [{}, {"app": "web"}])
@pytest.mark.parametrize("zones", [("a", "b", "b"), (None, "a", "b"), (None, None, None)])
def test_more_nodes_than_one_level_of_the_tree(zones: tuple[str | None, ...], labels: dict[str, str]) -> None:
    sizes = [("2", "4Gi"), ("4", "8Gi"), ("1", "64Gi")]
    nodes = (
        a_node(f"n{i * 7 % 300}", cpu=sizes[i % 3][0], memory=sizes[i % 3][1], zone=zones[i % 7 % 3])
        for i in range(300)
    )
    cluster = a_cluster(*nodes, services=[a_service("web")])
    cluster.remove_node("n12")
    shapes = [a_pod(cpu=f"{100 + 150 * i}m", memory=f"{200 + 90 * i}Mi", labels=labels) for i in range(8)]
    order = np.random.default_rng(1).integers(0, 8, 1200).tolist()
    decided = check_alike(cluster, shapes, order)
    assert {row for row, _, _ in decided} >= {-1}


def test_shapes_that_move_one_another_fall_back() -> None:
    apart = PodAffinity(
        required=(
            PodAffinityTerm(label_selector=LabelSelector(match_labels={"app": "web"}), topology_key=HOST),
        )
    )
    cluster = a_cluster(*(a_node(f"n{i}", cpu="2") for i in range(20)))
    shapes = [
        a_pod(labels={"app": "web"}, cpu="100m"),
        a_pod(labels={"app": "db"}, anti_affinity=apart),
        a_pod(cpu="300m"),
        a_pod(host_ports=(80,), cpu="50m"),
    ]
    check_alike(cluster, shapes, [0, 1, 2, 3] * 12)


def test_more_shapes_than_are_kept_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "MAX_CELLS", 60)
    cluster = a_cluster(*(a_node(f"n{i}", cpu="2") for i in range(20)), services=[a_service("web")])
    shapes = [a_pod(cpu=f"{10 * i}m", labels={"app": "web"} if i % 2 else {}) for i in range(8)]
    check_alike(cluster, shapes, np.random.default_rng(2).integers(0, 8, 90).tolist())


def test_wide_totals() -> None:
    heavy = replace(TODAY, scores=tuple(replace(score, weight=score.weight * 1000) for score in TODAY.scores))
    cluster = a_cluster(*(a_node(f"n{i}", cpu=str(1 + i % 3)) for i in range(20)))
    check_alike(cluster, [a_pod(cpu="100m"), a_pod(memory="1Gi")], [0, 1, 1] * 20, heavy)


def test_an_empty_stream_and_an_empty_cluster() -> None:
    assert check_alike(a_cluster(a_node("n1")), [a_pod()], []) == []
    assert check_alike(a_cluster(), [a_pod()], [0, 0]) == [(-1, -1, 0)] * 2
