from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.cluster.cluster import Cluster
from berth.cluster.objects import NamedObject
from berth.framework.plugin import BatchKind
from berth.objects.base import LabelSelector, LabelSelectorRequirement
from berth.objects.pods import Pod
from berth.plugins.selector_spread import REGION_LABEL, SelectorSpread, selectors_of, zones
from tests.builders import (
    a_cluster,
    a_deployment,
    a_node,
    a_pod,
    a_replica_set,
    a_replication_controller,
    a_service,
    a_stateful_set,
)
from tests.plugins.asking import batch, raw_scores, scores

PLUGIN = SelectorSpread(10)
WEB = {"app": "web"}


def on(*nodes: str, **more: Any) -> list[Pod]:
    """Pods of web, one on each of the nodes."""
    return [a_pod(f"p{i}", **({"labels": WEB, "node": node} | more)) for i, node in enumerate(nodes)]


def test_the_fewer_on_the_node_the_better() -> None:
    cluster = a_cluster(
        a_node("n1"), a_node("n2"), a_node("n3"), pods=on("n1", "n1", "n1", "n2"), services=[a_service("web")]
    )
    assert raw_scores(PLUGIN, cluster, a_pod(labels=WEB)) == [3, 1, 0]
    assert scores(PLUGIN, cluster, a_pod(labels=WEB)) == [0, 6, 10]
    assert scores(PLUGIN, cluster, a_pod(labels=WEB), "n2", "n3") == [0, 10]
    assert scores(PLUGIN, cluster, a_pod(labels={"app": "db"})) == [10, 10, 10]


def test_the_zone_weighs_two_thirds() -> None:
    cluster = a_cluster(
        a_node("n1", zone="a"),
        a_node("n2", zone="a"),
        a_node("n3", zone="b"),
        a_node("n4"),
        pods=on("n1", "n1", "n3"),
        services=[a_service("web")],
    )
    # Zone a has 2 and b 1; n1 has 2, n3 1. n4 is in no zone: its own count alone.
    assert scores(PLUGIN, cluster, a_pod(labels=WEB)) == [0, 3, 5, 10]
    # Zone counts are over feasible nodes: without n1, zone a has none.
    assert scores(PLUGIN, cluster, a_pod(labels=WEB), "n2", "n3") == [10, 0]


def test_which_pods_count() -> None:
    pods = [
        *on("n1"),
        a_pod("going", labels=WEB, node="n1", terminating=True),
        a_pod("done", labels=WEB, node="n1", phase="Succeeded"),
        a_pod("elsewhere", labels=WEB, node="n1", namespace="shop"),
        a_pod("lost", labels=WEB, node="gone"),
        a_pod("other", labels={"app": "db"}, node="n1"),
        a_pod("waiting", labels=WEB),
    ]
    cluster = a_cluster(a_node("n1"), pods=pods, services=[a_service("web")])
    assert raw_scores(PLUGIN, cluster, a_pod(labels=WEB)) == [1]


def n_selectors(cluster: Cluster, labels: dict[str, str] = WEB) -> int:
    return len(selectors_of(cluster.incoming(a_pod(labels=labels)), cluster))


def test_whose_selectors_count() -> None:
    made: list[NamedObject] = [
        a_service("web"),
        a_replica_set("web"),
        a_stateful_set("web"),
        a_replication_controller("web"),
    ]
    for item in made:
        assert n_selectors(a_cluster(objects=[item])) == 1
        assert n_selectors(a_cluster(objects=[item]), {"app": "db"}) == 0
    assert n_selectors(a_cluster(objects=made)) == 4
    assert n_selectors(a_cluster(objects=[a_deployment("web")])) == 0
    assert n_selectors(a_cluster(objects=[a_service("web", namespace="shop")])) == 0


def test_an_empty_selector_selects_all_for_a_service_and_nothing_for_a_controller() -> None:
    def with_selector(item: Any, selector: object) -> Any:
        return msgspec.structs.replace(item, spec=msgspec.structs.replace(item.spec, selector=selector))

    assert n_selectors(a_cluster(objects=[with_selector(a_service("x"), {})]), {}) == 1
    assert n_selectors(a_cluster(objects=[with_selector(a_service("x"), None)])) == 0
    assert n_selectors(a_cluster(objects=[with_selector(a_replica_set("x"), LabelSelector())])) == 0
    assert n_selectors(a_cluster(objects=[with_selector(a_replication_controller("x"), {})])) == 0


def test_one_refused_selector_spoils_those_of_its_kind() -> None:
    bad = LabelSelector(match_expressions=(LabelSelectorRequirement(key="app", operator="In"),))
    broken = a_replica_set("broken")
    broken = msgspec.structs.replace(broken, spec=msgspec.structs.replace(broken.spec, selector=bad))
    assert n_selectors(a_cluster(objects=[a_replica_set("web"), broken, a_stateful_set("web")])) == 1


def test_zones_are_told_apart_with_their_region() -> None:
    nodes = [
        a_node("n0", zone="a", labels={REGION_LABEL: "x"}),
        a_node("n1", zone="a", labels={REGION_LABEL: "y"}),
        a_node("n2", zone="a", labels={REGION_LABEL: "x"}),
        a_node("n3", zone="a"),
        a_node("n4", labels={REGION_LABEL: "x"}),
        a_node("n5"),
        a_node("n6", labels={REGION_LABEL: ""}),
    ]
    numbers = zones(a_cluster(*nodes)).tolist()
    assert numbers[0] == numbers[2]
    assert len({numbers[i] for i in (0, 1, 3, 4)}) == 4
    assert 0 not in numbers[:5]
    assert numbers[5:] == [0, 0]
    assert 0 not in zones(a_cluster(*nodes[:5])).tolist()
    assert zones(a_cluster()).tolist() == []


def test_how_it_takes_part_in_a_batch() -> None:
    cluster = a_cluster(a_node("n1"), services=[a_service("web")])
    assert batch(PLUGIN, cluster, a_pod(labels={"app": "db"})) is BatchKind.CONSTANT
    assert batch(PLUGIN, cluster, a_pod(labels=WEB)) is BatchKind.CLASSED


nodes_with_counts = st.lists(
    st.tuples(st.sampled_from(["a", "b", None]), st.integers(0, 4), st.booleans()), min_size=1, max_size=6
)


@given(nodes_with_counts.filter(lambda nodes: any(feasible for _, _, feasible in nodes)))
def test_scores_equal_the_scalar_rule(nodes: list[tuple[str | None, int, bool]]) -> None:
    """1.13's reduce, node by node: floats in its order."""
    cluster = a_cluster(*(a_node(f"n{i}", zone=zone) for i, (zone, _, _) in enumerate(nodes)))
    cluster.put(a_service("web"))
    pod = cluster.incoming(a_pod(labels=WEB))
    for row, (_, count, _) in enumerate(nodes):
        for _ in range(count):
            cluster.assume(pod, row)
    open_nodes = [node for node in nodes if node[2]]
    highest = max(count for _, count, _ in open_nodes)
    by_zone: dict[str, int] = {}
    for zone, count, _ in open_nodes:
        if zone:
            by_zone[zone] = by_zone.get(zone, 0) + count

    def scalar(zone: str | None, count: int) -> int:
        score = 10.0 * ((highest - count) / highest) if highest else 10.0
        if zone:
            most = max(by_zone.values())
            zone_score = 10.0 * ((most - by_zone[zone]) / most) if most else 10.0
            score = score * (1.0 - 2.0 / 3.0) + 2.0 / 3.0 * zone_score
        return int(score)

    names = [f"n{i}" for i, (_, _, feasible) in enumerate(nodes) if feasible]
    assert scores(PLUGIN, cluster, a_pod(labels=WEB), *names) == [scalar(z, c) for z, c, _ in open_nodes]


@given(
    nodes_with_counts,
    st.lists(st.tuples(st.sampled_from(["place", "close"]), st.integers(0, 5)), max_size=40),
)
def test_classes_score_as_the_plugin_does(
    nodes: list[tuple[str | None, int, bool]], moves: list[tuple[str, int]]
) -> None:
    cluster = a_cluster(*(a_node(f"n{i}", zone=zone) for i, (zone, _, _) in enumerate(nodes)))
    cluster.put(a_service("web"))
    pod = cluster.incoming(a_pod(labels=WEB))
    for row, (_, count, _) in enumerate(nodes):
        for _ in range(count):
            cluster.assume(pod, row)
    feasible = np.array([is_open for _, _, is_open in nodes])
    classes = PLUGIN.classes(PLUGIN.prepare(pod, cluster), feasible)
    for what, number in [("", 0), *moves]:
        rows = np.flatnonzero(feasible)
        if not len(rows):
            return
        row = int(rows[number % len(rows)])
        if what == "place":
            cluster.assume(pod, row)
            classes.place(row)
        elif what == "close":
            feasible[row] = False
            classes.close(row)
            rows = np.flatnonzero(feasible)
            if not len(rows):
                return
        state = PLUGIN.prepare(pod, cluster)
        wanted = PLUGIN.normalize(state, PLUGIN.score(state, rows), rows)
        live, kinds, sizes = np.unique(classes.class_of(rows), return_inverse=True, return_counts=True)
        assert classes.table(live, sizes.astype(np.int32))[0, kinds].tolist() == wanted.tolist()


@pytest.mark.parametrize("n", [7, 8, 9, 40])
def test_classes_grow_with_the_counts(n: int) -> None:
    cluster = a_cluster(a_node("n1", zone="a"), a_node("n2", zone="b"), services=[a_service("web")])
    pod = cluster.incoming(a_pod(labels=WEB))
    classes = PLUGIN.classes(PLUGIN.prepare(pod, cluster), np.ones(2, dtype=np.bool_))
    for _ in range(n):
        classes.place(0)
    sizes = np.ones(2, dtype=np.int32)
    assert classes.table(classes.class_of(np.arange(2)), sizes).tolist() == [[0, 10]]
