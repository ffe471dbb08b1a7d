"""Verdicts before any node is looked at, put together as 1.36 does."""

from dataclasses import dataclass

import numpy as np

from berth.cluster.arrays import ALL_ROWS, IntColumn, Rows
from berth.cluster.cluster import Cluster, Incoming
from berth.framework.plugin import FilterPlugin, Finality, Rejection
from berth.framework.prefilter import EVERY_NODE, PreFiltered, prefilter
from berth.framework.profile import NamedFilter, Profile
from berth.scheduling.evaluation import Evaluation
from tests.builders import a_cluster, a_node, a_pod


@dataclass(frozen=True)
class Says(FilterPlugin[None]):
    rejection: Rejection | None = None
    names: frozenset[str] | None = None

    def reject(self, state: None) -> Rejection | None:
        return self.rejection

    def restrict(self, state: None) -> frozenset[str] | None:
        return self.names


def asked(*plugins: Says) -> PreFiltered:
    return prefilter((f"P{i}", plugin, None) for i, plugin in enumerate(plugins))


def only(*names: str) -> Says:
    return Says(names=frozenset(names))


def no(reason: str, finality: Finality = Finality.FINAL) -> Says:
    return Says(Rejection((reason,), finality))


def test_plugins_that_say_nothing_leave_all_nodes() -> None:
    assert asked(Says(), Says()) is EVERY_NODE
    cluster = a_cluster(a_node("a"), a_node("b"))
    cluster.remove_node("a")
    assert EVERY_NODE.asked(cluster.nodes).tolist() == [False, True]


def test_a_rejection_ends_it_at_once() -> None:
    assert asked(only("a"), no("first"), no("second"), only("b")).rejection == ("first",)


def test_an_open_rejection_gives_way_to_a_later_one() -> None:
    assert asked(no("1", Finality.OPEN), Says()).rejection == ("1",)
    assert asked(no("1", Finality.OPEN), no("2", Finality.OPEN)).rejection == ("2",)
    assert asked(no("1", Finality.OPEN), no("2"), no("3")).rejection == ("2",)
    failed = asked(no("1", Finality.OPEN), no("bad", Finality.ERROR))
    assert (failed.error, failed.rejection) == ("bad", ())


def test_names_are_what_all_plugins_name() -> None:
    found = asked(only("a", "b", "gone"), Says(), only("b", "gone", "c"))
    assert found.names == frozenset({"b", "gone"})
    assert found.restricted_by == ("P0", "P2")
    assert found.left_out == "node(s) didn't satisfy plugin(s) [P0 P2]"
    nodes = a_cluster(a_node("a"), a_node("b"), a_node("c")).nodes
    assert np.flatnonzero(found.asked(nodes)).tolist() == [1]


def test_plugins_that_leave_no_name_turn_the_pod_away() -> None:
    assert asked(only()).rejection == ("node(s) didn't satisfy plugin P0",)
    assert asked(only("a"), only("b"), no("never asked")).rejection == (
        "node(s) didn't satisfy plugin(s) [P0 P1] simultaneously",
    )
    assert not asked(only()).asked(a_cluster(a_node("a")).nodes).any()


@dataclass(frozen=True)
class OnlyNodesOf(FilterPlugin[Cluster]):
    """Names the nodes that are in a list, which may change while a state is kept."""

    name = "OnlyNodesOf"
    listed: list[str]

    def prepare(self, pod: Incoming, cluster: Cluster) -> Cluster:
        return cluster

    def restrict(self, state: Cluster) -> frozenset[str] | None:
        return frozenset(self.listed)

    def filter(self, state: Cluster, rows: Rows = ALL_ROWS, placed: IntColumn | int = 0) -> IntColumn:
        return np.zeros(state.nodes.n_rows, dtype=np.int64)[rows]


def test_what_holds_for_all_nodes_is_asked_anew_whenever_an_evaluation_is_mended() -> None:
    cluster = a_cluster(a_node("a"), a_node("b"), a_node("c"))
    plugin = OnlyNodesOf(["a"])
    evaluation = Evaluation(Profile((NamedFilter("P", plugin),), ()), cluster.incoming(a_pod()), cluster)
    assert evaluation.fits.tolist() == [True, False, False]
    plugin.listed[:] = ["b", "c"]
    cluster.assume(cluster.incoming(a_pod()), 0)
    evaluation.mend()
    assert evaluation.fits.tolist() == [False, True, True]
    plugin.listed[:] = []
    cluster.assume(cluster.incoming(a_pod()), 0)
    evaluation.mend()
    assert not evaluation.fits.any()
    assert str(evaluation.unschedulable()) == ("0/3 nodes are available: node(s) didn't satisfy plugin P.")


def test_who_turned_the_pod_away() -> None:
    assert asked(only("a"), no("1", Finality.OPEN), no("2"), no("3")).rejected_by == ("P2",)
    assert asked(no("1", Finality.OPEN), no("2", Finality.OPEN), Says()).rejected_by == ("P1",)
    assert asked(Says(), only("a"), only("b")).rejected_by == ("P1", "P2")
    assert asked(only("a"), Says()).rejected_by == ()
