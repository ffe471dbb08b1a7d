"""How plugins of an extension point and of ``multiPoint`` come together."""

from typing import Any

import pytest

from berth.config.plugin_sets import Entry, PluginSet, expand, merge, weights
from berth.releases.extension_points import default_multi_point

DEFAULT = PluginSet(tuple(Entry(*entry) for entry in default_multi_point({})))


def a_set(*enabled: str | tuple[str, int], disabled: tuple[str, ...] = ()) -> PluginSet:
    entries = (Entry(one) if isinstance(one, str) else Entry(*one) for one in enabled)
    return PluginSet(tuple(entries), frozenset(disabled))


def names(plugins: PluginSet) -> list[str]:
    return [entry.name for entry in plugins.enabled]


def sets(multi_point: PluginSet | None = None, **points: PluginSet) -> dict[str, Any]:
    return {"multiPoint": merge(DEFAULT, multi_point or PluginSet()), **points}


@pytest.mark.parametrize(
    ("default", "custom", "expected"),
    [
        (a_set("A", "B"), a_set(), ["A", "B"]),
        (a_set("A", "B"), a_set("C"), ["A", "B", "C"]),
        (a_set("A", "B"), a_set(disabled=("A",)), ["B"]),
        (a_set("A", "B"), a_set("C", disabled=("*",)), ["C"]),
        (a_set("A", "B", "C"), a_set(("B", 7), "D"), ["A", "B", "C", "D"]),
        # Disabled and enabled: it loses its place.
        (a_set("A", "B"), a_set("A", disabled=("A",)), ["B", "A"]),
        (a_set("A", "B"), a_set("B", "A", disabled=("*",)), ["B", "A"]),
    ],
)
def test_what_is_configured_anew_keeps_its_place(
    default: PluginSet, custom: PluginSet, expected: list[str]
) -> None:
    assert names(merge(default, custom)) == expected


def test_a_new_weight_takes_the_place_of_the_old_one() -> None:
    assert merge(a_set(("A", 1), ("B", 2)), a_set(("A", 5))).enabled == (Entry("A", 5), Entry("B", 2))


def test_the_default_profile_filters_and_scores_in_upstreams_order() -> None:
    assert expand(sets(), "filter") == [
        "NodeUnschedulable", "NodeName", "TaintToleration", "NodeAffinity", "NodePorts", "NodeResourcesFit",
        "VolumeRestrictions", "NodeVolumeLimits", "VolumeBinding", "VolumeZone", "PodTopologySpread",
        "InterPodAffinity", "DynamicResources", "NodeDeclaredFeatures",
    ]  # fmt: skip
    weight_of = weights(sets())
    assert [(name, weight_of[name]) for name in expand(sets(), "score")] == [
        ("TaintToleration", 3), ("NodeAffinity", 2), ("NodeResourcesFit", 1), ("VolumeBinding", 1),
        ("PodTopologySpread", 2), ("InterPodAffinity", 2), ("DynamicResources", 2),
        ("NodeResourcesBalancedAllocation", 1), ("ImageLocality", 1),
    ]  # fmt: skip


def test_gates_take_plugins_out_and_put_them_in() -> None:
    gates = {"DynamicResourceAllocation": False, "NodeDeclaredFeatures": False, "GangScheduling": True}
    found = [name for name, _ in default_multi_point(gates)]
    assert "DynamicResources" not in found
    assert "NodeDeclaredFeatures" not in found
    assert found[-1] == "GangScheduling"


def test_a_plugin_disabled_at_a_point_stays_at_the_others() -> None:
    got = sets(score=a_set(disabled=("TaintToleration",)))
    assert "TaintToleration" not in expand(got, "score")
    assert "TaintToleration" in expand(got, "filter")


def test_a_star_at_a_point_leaves_only_what_the_point_enables() -> None:
    got = sets(score=a_set(("ImageLocality", 9), disabled=("*",)))
    assert expand(got, "score") == ["ImageLocality"]
    assert weights(got)["ImageLocality"] == 9
    assert len(expand(got, "filter")) == 14


def test_a_star_at_multi_point_takes_out_the_defaults() -> None:
    got = sets(a_set("NodeName", ("TaintToleration", 4), disabled=("*",)))
    assert expand(got, "filter") == ["NodeName", "TaintToleration"]
    assert expand(got, "score") == ["TaintToleration"]
    assert expand(got, "queueSort") == []


def test_what_a_point_enables_too_comes_first_and_with_its_weight() -> None:
    got = sets(score=a_set(("ImageLocality", 5), ("NodeAffinity", 3)))
    assert expand(got, "score")[:3] == ["ImageLocality", "NodeAffinity", "TaintToleration"]
    weight_of = weights(got)
    assert (weight_of["ImageLocality"], weight_of["NodeAffinity"], weight_of["TaintToleration"]) == (5, 3, 3)


def test_what_only_a_point_enables_comes_last() -> None:
    got = sets(a_set(disabled=("NodeName",)), filter=a_set("NodeName", "NodePorts"))
    order = expand(got, "filter")
    assert order[0] == "NodePorts"
    assert order[-1] == "NodeName"


def test_a_weight_of_multi_point_holds_for_score() -> None:
    got = sets(a_set(("NodeResourcesFit", 6)))
    assert weights(got)["NodeResourcesFit"] == 6
    # The weight that the default gives is gone with the new entry.
    assert weights(sets(a_set("TaintToleration")))["TaintToleration"] == 1
