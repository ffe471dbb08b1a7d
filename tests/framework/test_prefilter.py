"""Verdicts before any node is looked at, put together as 1.36 does."""

from dataclasses import dataclass

import numpy as np

from berth.framework.plugin import FilterPlugin, Finality, Rejection
from berth.framework.prefilter import EVERY_NODE, PreFiltered, prefilter
from tests.builders import a_cluster, a_node


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
    assert found.names == {"b", "gone"}  # type: ignore[comparison-overlap]
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
