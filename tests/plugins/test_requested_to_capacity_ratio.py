import math
from itertools import pairwise

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.cluster.cluster import Cluster
from berth.errors import InputError
from berth.objects.nodes import Node
from berth.objects.pods import Pod
from berth.plugins.requested_to_capacity_ratio import Average, RequestedToCapacityRatio, table_of
from tests.releases.worlds import a_node, a_pod

Points = list[tuple[int, int]]

shapes = st.lists(st.integers(0, 100), min_size=1, max_size=4, unique=True).flatmap(
    lambda at: st.tuples(*[st.tuples(st.just(u), st.integers(0, 10)) for u in sorted(at)]).map(list)
)
weights = st.dictionaries(
    st.sampled_from(["cpu", "memory", "pods", "ephemeral-storage"]), st.integers(1, 5), min_size=1
)


def on_line(points: Points, utilization: int) -> int:
    """The scalar rule: straight lines between the points, cut off towards 0."""
    if utilization <= points[0][0]:
        return points[0][1]
    for (u0, s0), (u1, s1) in pairwise(points):
        if utilization <= u1:
            return s0 + math.trunc((s1 - s0) * (utilization - u0) / (u1 - u0))
    return points[-1][1]


def utilization(requested: int, capacity: int) -> int:
    return 100 if capacity == 0 or requested > capacity else 100 - (capacity - requested) * 100 // capacity


@given(shapes)
def test_table_equals_the_scalar_rule(points: Points) -> None:
    assert list(table_of(points, 10)) == [on_line(points, u) for u in range(101)]


@pytest.mark.parametrize(
    ("points", "path"),
    [
        ([], "shape"),
        ([(0, 0), (0, 1)], "shape[1].utilization"),
        ([(101, 0)], "shape[0].utilization"),
        ([(-1, 0)], "shape[0].utilization"),
        ([(5, 11)], "shape[0].score"),
    ],
)
def test_bad_points_are_refused(points: Points, path: str) -> None:
    with pytest.raises(InputError) as caught:
        table_of(points, 10)
    assert caught.value.path == f"requestedToCapacityRatioArguments.{path}"


@given(shapes, weights, st.lists(st.integers(0, 5000), min_size=1, max_size=4))
def test_scores_equal_the_scalar_rule(points: Points, weights: dict[str, int], cpus: list[int]) -> None:
    cluster = Cluster()
    for i, cpu in enumerate(cpus):
        cluster.put_node(msgspec.convert(a_node(f"n{i}", cpu=f"{cpu}m"), Node))
    requests = {"cpu": "700m", "memory": "3Gi", "ephemeral-storage": "5Gi"}
    pod = cluster.incoming(msgspec.convert(a_pod(requests=requests), Pod))
    plugin = RequestedToCapacityRatio(table_of(points, 10), tuple(weights.items()), Average.OF_POSITIVE)
    got = plugin.score(plugin.prepare(pod, cluster)).tolist()
    plain = RequestedToCapacityRatio(table_of(points, 10))
    got_plain = plain.score(plain.prepare(pod, cluster)).tolist()
    gib = 1 << 30
    for cpu, score, plain_score in zip(cpus, got, got_plain, strict=True):
        used = {
            "cpu": utilization(700, cpu),
            "memory": utilization(3 * gib, 8 * gib),
            "ephemeral-storage": utilization(5 * gib, 20 * gib),
            "pods": 100,  # nobody schedules by it here
        }
        scores = {name: on_line(points, used[name]) for name in used}
        positive = [name for name in weights if scores[name] > 0]
        total = sum(weights[name] * scores[name] for name in positive)
        of = sum(weights[name] for name in positive)
        assert score == (math.floor(total / of + 0.5) if of else 0)
        assert plain_score == (scores["cpu"] + scores["memory"]) // 2


def test_pods_that_are_placed_count() -> None:
    cluster = Cluster()
    cluster.put_node(msgspec.convert(a_node("n1", cpu="1"), Node))
    pod = cluster.incoming(msgspec.convert(a_pod(requests={"cpu": "250m", "memory": "0"}), Pod))
    plugin = RequestedToCapacityRatio(table_of([(0, 0), (100, 10)], 10), (("cpu", 1),))
    state = plugin.prepare(pod, cluster)
    assert [int(plugin.score(state, placed=n)[0]) for n in range(5)] == [2, 5, 7, 10, 10]
    assert plugin.score(state, np.array([0])).tolist() == [2]
