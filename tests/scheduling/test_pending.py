"""Pods of any shapes in the order in which they wait: decided, counted and scored as one at a time."""

import copy
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from berth.cluster.cluster import Cluster
from berth.framework.profile import Profile
from berth.objects.pods import Pod
from berth.scheduling import pending
from berth.scheduling.decide import Decision, decide
from berth.scheduling.evaluation import Evaluation
from berth.scheduling.evaluations import Evaluations
from berth.scheduling.pending import PlacedPods, place_all
from berth.scheduling.stream_kernels import STREAM
from berth.scheduling.ties import TieBreaker, TieRule
from tests.builders import a_cluster, a_node, a_pod, a_service
from tests.scheduling.test_batch import RULES
from tests.scheduling.test_stream import PROFILES, TODAY
from tests.scheduling.worlds import clusters, pods


def one_at_a_time(
    profile: Profile, cluster: Cluster, shapes: Sequence[Pod], order: Sequence[int], ties: TieBreaker
) -> list[Decision]:
    incoming = [cluster.incoming(pod) for pod in shapes]
    kept = [Evaluation(profile, pod, cluster) for pod in incoming]
    decided = []
    for i in order:
        decided.append(decide(kept[i], ties))
        row = decided[-1].row
        if row is not None:
            cluster.assume(incoming[i], row)
    return decided


def placed_in(
    cluster: Cluster, shapes: Sequence[Pod], order: Sequence[int], profile: Profile, ties: TieBreaker
) -> PlacedPods:
    evaluations = Evaluations(profile, cluster)
    incoming = [cluster.incoming(pod) for pod in shapes]
    return place_all(evaluations, incoming, np.array(order, dtype=np.int32), ties)


def on_nodes(cluster: Cluster) -> list[tuple[int, int, int]]:
    columns = (cluster.pods.column(name) for name in ("spec_id", "labels_id"))
    alive = cluster.pods.alive
    return sorted(
        zip(cluster.pods.node_row[alive].tolist(), *(c[alive].tolist() for c in columns), strict=True)
    )


def check_alike(
    cluster: Cluster, shapes: Sequence[Pod], order: Sequence[int], profile: Profile, rule: TieRule
) -> None:
    ties, expected_ties = (TieBreaker(rule, seed=7, counter=3) for _ in range(2))
    other = copy.deepcopy(cluster)
    expected = one_at_a_time(profile, other, shapes, order, expected_ties)
    with STREAM.using(None):
        placed = placed_in(cluster, shapes, order, profile, ties)
    assert placed.row.tolist() == [-1 if d.row is None else d.row for d in expected]
    assert placed.total.tolist() == [-1 if d.row is None else d.score for d in expected]
    assert placed.n_feasible.tolist() == [d.n_feasible for d in expected]
    assert ties == expected_ties
    assert on_nodes(cluster) == on_nodes(other)
    assert cluster.requested.of(0).tolist() == other.requested.of(0).tolist()
    found = placed.row >= 0
    assert cluster.pods.node_row[placed.pod[found]].tolist() == placed.row[found].tolist()
    assert (placed.pod[~found] == -1).all()
    scores = placed.scores()
    names = [score.name for score in profile.scores]
    for i, decision in enumerate(expected):
        of_pod = {name: int(column[i]) for name, column in scores.items()}
        assert of_pod == (dict.fromkeys(names, 0) if decision.row is None else decision.scores)
    assert on_nodes(cluster) == on_nodes(other)
    assert cluster.pods.node_row[placed.pod[found]].tolist() == placed.row[found].tolist()


orders = st.lists(st.tuples(st.integers(0, 2), st.integers(1, 6)), min_size=1, max_size=10).map(
    lambda runs: [shape for shape, n in runs for _ in range(n)]
)


WAYS = {"in runs": pending._in_runs, "in a stream": pending._in_a_stream, "one by one": pending._one_by_one}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
@pytest.mark.parametrize("profile", PROFILES.values(), ids=PROFILES)
@settings(max_examples=20, deadline=None)
@given(
    cluster=clusters(),
    shapes=st.lists(pods, min_size=3, max_size=3),
    order=orders,
    rule=st.sampled_from(RULES),
)
def test_all_are_decided_as_one_at_a_time(
    way: pending.Way, profile: Profile, cluster: Cluster, shapes: list[Pod], order: list[int], rule: TieRule
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pending, "_way", lambda *_: way)
        check_alike(cluster, shapes, order, profile, rule)


def test_the_way_is_chosen_by_the_mean_length_of_runs_and_how_often_shapes_come(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    chosen = []
    for name in ("_in_runs", "_in_a_stream", "_one_by_one"):
        monkeypatch.setattr(pending, name, lambda *_, name=name: chosen.append(name))
    monkeypatch.setattr(pending, "LONG_RUN", 3)
    for name, value in (("FEW", 1), ("N_ALIKE", 2)):
        monkeypatch.setattr(pending, name, value)
    orders = (
        [0, 0, 0, 1, 1, 1] * 2,
        [0, 0, 0, 1, 1, 0, 1],
        [0] * 9 + [1, 0, 1],
        [0, 1] * 9,
        [0, 1, 0, 1],
        [0],
    )
    with STREAM.using(None):
        for order in orders:
            placed_in(a_cluster(a_node("n1")), [a_pod(), a_pod(cpu="1")], order, TODAY, TieBreaker())
    assert chosen == ["_in_runs", "_in_a_stream", "_in_runs", "_in_a_stream", "_one_by_one", "_one_by_one"]


def test_no_pods_at_all() -> None:
    placed = placed_in(a_cluster(a_node("n1")), [a_pod()], [], TODAY, TieBreaker())
    assert len(placed.row) == 0
    assert {name: len(column) for name, column in placed.scores().items()} == {
        score.name: 0 for score in TODAY.scores
    }


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_whoever_takes_the_placements_may_count_them(
    monkeypatch: pytest.MonkeyPatch, way: pending.Way
) -> None:
    monkeypatch.setattr(pending, "_way", lambda *_: way)
    cluster = a_cluster(*(a_node(f"n{i}", cpu="2") for i in range(9)), services=[a_service("web")])
    incoming = [
        cluster.incoming(a_pod(cpu="500m")),
        cluster.incoming(a_pod(cpu="900m", labels={"app": "web"})),
    ]

    def assume(shape: int, at: np.ndarray, rows: np.ndarray) -> np.ndarray:
        names = (f"pod-{i}" for i in at.tolist())
        return np.array(
            [
                cluster.assume(incoming[shape], row, name=name)
                for row, name in zip(rows.tolist(), names, strict=True)
            ],
            dtype=np.intp,
        )

    order = np.array([0, 0, 1, 1, 0, 1] * 6, dtype=np.int32)
    placed = place_all(Evaluations(TODAY, cluster), incoming, order, TieBreaker(), assume)
    found = np.flatnonzero(placed.row >= 0).tolist()
    assert 0 < len(found) < len(order)
    assert [cluster.pods.names[placed.pod[i]] for i in found] == [f"pod-{i}" for i in found]
    placed.scores()
    assert [cluster.pods.names[placed.pod[i]] for i in found] == [f"pod-{i}" for i in found]


def test_scores_of_another_cluster_are_told_apart() -> None:
    cluster = a_cluster(*(a_node(f"n{i}", cpu="2") for i in range(3)))
    placed = placed_in(cluster, [a_pod(cpu="500m"), a_pod(cpu="200m")], [0, 1] * 3, TODAY, TieBreaker())
    cluster.put_node(a_node("n9"))
    with pytest.raises(RuntimeError, match="the cluster has changed"):
        placed.scores()
    assert len(on_nodes(cluster)) == 6
