import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.plugins.inter_pod_affinity.scoring import InterPodAffinityPriority, Unreadable, spread_out
from tests.plugins.inter_pod_affinity.worlds import (
    Json,
    a_node,
    a_pod,
    preferred,
    priority_answer,
    priority_of,
    required,
    term,
    world_of,
)

NODES = [a_node("a1", zone="a"), a_node("a2", zone="a"), a_node("b1", zone="b"), a_node("bare")]
ALL = ["a1", "a2", "b1", "bare"]


def scores(plugin: InterPodAffinityPriority, pod: Json, *pods: Json, feasible: list[str] = ALL) -> list[int]:
    answer = priority_answer(plugin, world_of({"nodes": NODES, "pods": pods, "pod": pod}), feasible)
    return list(answer.values())


def test_wishes_add_up_per_domain() -> None:
    pod = a_pod(
        "x", "web", podAffinity=preferred((10, term("db")), (5, term("db", "kubernetes.io/hostname")))
    )
    # a1: 15, a2: 10, the others 0.
    assert scores(priority_of("1.13"), pod, a_pod("d", "db", "a1")) == [10, 6, 0, 0]
    assert scores(priority_of("1.17"), pod, a_pod("d", "db", "a1")) == [100, 66, 0, 0]


def test_wishes_of_existing_pods_count_and_so_do_their_needs() -> None:
    fan = a_pod("d", "db", "b1", podAffinity=preferred((3, term("web"))) | required(term("web", "zone")))
    foe = a_pod("e", "db", "a1", podAntiAffinity=preferred((4, term("web", "kubernetes.io/hostname"))))
    # a1: -4, b1: 3 + 1; with weight 0 for the needs b1: 3.
    assert scores(priority_of("1.13"), a_pod("x", "web"), fan, foe) == [0, 5, 10, 5]
    assert scores(priority_of("1.13", 0), a_pod("x", "web"), fan, foe) == [0, 5, 10, 5]
    assert scores(priority_of("1.13", 100), a_pod("x", "web"), fan, foe) == [0, 0, 10, 0]


def test_only_feasible_nodes_span_the_scale() -> None:
    pod = a_pod(
        "x", "web", podAffinity=preferred((10, term("db")), (30, term("db", "kubernetes.io/hostname")))
    )
    db = a_pod("d", "db", "a1")
    assert scores(priority_of("1.13"), pod, db) == [10, 2, 0, 0]
    assert scores(priority_of("1.13"), pod, db, feasible=["a2", "b1"]) == [10, 0]


def test_scale_starts_at_zero_until_1_36() -> None:
    pod = a_pod(
        "x", "web", podAffinity=preferred((10, term("db")), (30, term("db", "kubernetes.io/hostname")))
    )
    db = a_pod("d", "db", "a1")
    assert scores(priority_of("1.17"), pod, db, feasible=["a1", "a2"]) == [100, 25]
    assert scores(priority_of("1.36"), pod, db, feasible=["a1", "a2"]) == [100, 0]


def test_existing_preferences_can_be_ignored() -> None:
    fan = a_pod("d", "db", "b1", podAffinity=preferred((3, term("web"))))
    heedless = InterPodAffinityPriority(ignores_existing_preferences=True)
    assert scores(heedless, a_pod("x", "web"), fan) == [0, 0, 0, 0]
    wishing = a_pod("x", "web", podAffinity=preferred((1, term("nobody"))))
    assert scores(heedless, wishing, fan) == [0, 0, 10, 0]


@pytest.mark.parametrize(("unreadable", "fails"), [(Unreadable.FAILS, True), (Unreadable.ZERO, False)])
def test_unreadable_terms(unreadable: Unreadable, fails: bool) -> None:
    bad = term("db") | {"labelSelector": {"matchExpressions": [{"key": "app", "operator": "In"}]}}
    plugin = InterPodAffinityPriority(unreadable=unreadable)
    pod = a_pod("x", "web", podAffinity=preferred((1, bad)))
    db = a_pod("d", "db", "a1", podAffinity=preferred((3, term("web"))))
    world = world_of({"nodes": NODES, "pods": [db], "pod": pod})
    answer = priority_answer(plugin, world, ALL)
    assert ("error" in answer) is fails
    assert fails or set(answer.values()) == {0}
    # Without a pod to compare with nobody reads the terms.
    assert "error" not in priority_answer(plugin, world_of({"nodes": NODES, "pods": [], "pod": pod}), ALL)


def scalar_spread(sums: list[int], maximum: int, from_zero: bool) -> list[int]:
    lowest, highest = min(sums), max(sums)
    if from_zero:
        lowest, highest = min(lowest, 0), max(highest, 0)
    return [
        int(float(maximum) * ((s - lowest) / (highest - lowest))) if highest > lowest else 0 for s in sums
    ]


@given(st.lists(st.integers(-100_000, 100_000), min_size=1), st.sampled_from([10, 100]), st.booleans())
def test_spread_out_equals_the_scalar_rule(sums: list[int], maximum: int, from_zero: bool) -> None:
    got = spread_out(np.array(sums, dtype=np.int64), maximum, from_zero=from_zero)
    assert got.tolist() == scalar_spread(sums, maximum, from_zero)


def test_no_feasible_node_is_no_error() -> None:
    assert spread_out(np.array([], dtype=np.int64), 10, from_zero=True).tolist() == []
