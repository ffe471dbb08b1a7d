"""The scores of resources in 1.36 against scalar twins."""

import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.cluster.cluster import Cluster
from berth.cluster.modern_accounting import ModernAccounting
from berth.plugins.node_resources_score import (
    BalancedAllocation,
    CapacityRatio,
    ResourcesScore,
    evenness,
    least_allocated,
    most_allocated,
)
from tests.builders import a_node, a_pod

amount = st.integers(0, 12)
resources = st.lists(st.tuples(amount, amount), min_size=1, max_size=5)


def scalar_evenness(rows: Sequence[tuple[int, int]]) -> int:
    shares = [min(1.0, used / offered) for used, offered in rows if offered]
    deviation = 0.0
    if len(shares) == 2:
        deviation = abs((shares[0] - shares[1]) / 2)
    elif len(shares) > 2:
        mean = sum(shares) / len(shares)
        deviation = math.sqrt(sum((share - mean) * (share - mean) for share in shares) / len(shares))
    return int((1 - deviation) * 100.0)


@given(st.integers(1, 5).flatmap(lambda n: st.lists(st.lists(st.tuples(amount, amount), min_size=n, max_size=n),
                                                    min_size=1, max_size=6)))  # fmt: skip
def test_evenness_equals_the_scalar_rule(nodes: list[list[tuple[int, int]]]) -> None:
    columns = np.array(nodes, dtype=np.int64).transpose(2, 1, 0)
    got = evenness(list(columns[0]), list(columns[1]), 100)
    assert got.tolist() == [scalar_evenness(rows) for rows in nodes]


@given(resources)
def test_shares_equal_the_scalar_rules(rows: list[tuple[int, int]]) -> None:
    used, offered = np.array(rows, dtype=np.int64).T
    has = offered > 0
    least = [0 if u > o else (o - u) * 100 // o for u, o in rows if o]
    assert least_allocated(used, offered, 100)[has].tolist() == least
    assert most_allocated(used, offered, 100)[has].tolist() == [min(u, o) * 100 // o for u, o in rows if o]
    ratio = CapacityRatio(tuple(range(101)))
    assert ratio(used, offered, 100)[has].tolist() == [100 if u > o else u * 100 // o for u, o in rows if o]


def a_world() -> Cluster:
    cluster = Cluster(ModernAccounting())
    cluster.put_node(a_node("n1", cpu="4", memory="1000Mi", example_com__gpu="4"))
    cluster.put_node(a_node("n2", cpu="4", memory="1000Mi"))
    cluster.put_pod(a_pod("p", node="n1", cpu="1", memory="250Mi", requests={"example.com/gpu": "1"}))
    return cluster


def test_least_and_most_with_weights_and_extended_resources() -> None:
    cluster = a_world()
    pod = cluster.incoming(a_pod(cpu="1", memory="250Mi", requests={"example.com/gpu": "2"}))
    weights = (("cpu", 1), ("memory", 2), ("example.com/gpu", 5))
    least = ResourcesScore(least_allocated, 100, weights)
    # n1: half of cpu and memory, 1 of 4 cards free; n2 has no cards.
    assert least.score(least.prepare(pod, cluster)).tolist() == [(50 + 2 * 50 + 5 * 25) // 8, 75]
    most = ResourcesScore(most_allocated, 100, weights)
    assert most.score(most.prepare(pod, cluster)).tolist() == [(50 + 2 * 50 + 5 * 75) // 8, 25]
    # Who asks for no card is not scored by them.
    plain = cluster.incoming(a_pod(cpu="1", memory="250Mi"))
    assert least.score(least.prepare(plain, cluster)).tolist() == [50, 75]


def test_a_ratio_leaves_resources_that_score_0_out() -> None:
    cluster = a_world()
    pod = cluster.incoming(a_pod(cpu="1", memory="250Mi"))
    table = (*[0] * 50, *[60] * 51)
    ratio = ResourcesScore(CapacityRatio(table), 100, (("cpu", 1), ("ephemeral-storage", 9)), ratio=True)
    assert ratio.score(ratio.prepare(pod, cluster)).tolist() == [60, 0]


def test_pods_are_no_resource_to_score_by() -> None:
    cluster = a_world()
    pod = cluster.incoming(a_pod(cpu="1"))
    scores = [
        least.score(least.prepare(pod, cluster)).tolist()
        for least in (
            ResourcesScore(least_allocated, 100, (("cpu", 1), ("pods", 9))),
            ResourcesScore(least_allocated, 100, (("cpu", 1),)),
        )
    ]
    assert scores[0] == scores[1] == [50, 75]


def test_balance_is_how_much_more_even_it_gets() -> None:
    cluster = a_world()
    balanced = BalancedAllocation(100)
    pod = cluster.incoming(a_pod(cpu="2"))
    # n1: from even (1.0) to 3/4 and 1/4 (0.75); n2: from empty to 1/2 and 0.
    assert balanced.score(balanced.prepare(pod, cluster)).tolist() == [62, 62]
    silent = cluster.incoming(a_pod())
    assert balanced.score(balanced.prepare(silent, cluster)).tolist() == [0, 0]


@pytest.mark.parametrize("plugin", [ResourcesScore(least_allocated, 100), BalancedAllocation(100)])
@given(st.sampled_from([None, "0", "300m", "1"]), st.sampled_from([None, "0", "100Mi"]), st.integers(0, 4))
def test_placed_pods_count_as_if_they_were_there(
    plugin: ResourcesScore | BalancedAllocation, cpu: str | None, memory: str | None, placed: int
) -> None:
    cluster = a_world()
    pod = cluster.incoming(a_pod(cpu=cpu, memory=memory))
    state = plugin.prepare(pod, cluster)
    ahead = plugin.score(state, placed=placed)
    for row in (0, 1):
        for _ in range(placed):
            cluster.assume(pod, row)
    assert plugin.score(plugin.prepare(pod, cluster)).tolist() == ahead.tolist()
