import json
from typing import Any

import pytest

from berth.config import ConfigError
from berth.config.configured import Configured
from berth.config.document import parse_document
from berth.config.policy import read_policy
from berth.framework.profile import Profile
from berth.plugins.node_label import PreferNodeLabels
from berth.releases import RELEASES
from berth.releases.profiles import provider_profile
from berth.releases.release import Options

OLD = ("1.7", "1.10", "1.13", "1.17")


def read(policy: Any, release: str = "1.13", **options: Any) -> Configured:
    text = policy if isinstance(policy, str) else json.dumps({"kind": "Policy", "apiVersion": "v1", **policy})
    return read_policy(parse_document(text, "policy.json"), RELEASES[release], Options(**options))


def profile(policy: Any, release: str = "1.13", **options: Any) -> Profile:
    return read(policy, release, **options).profiles["default-scheduler"]


def filters(policy: Any, release: str = "1.13", **options: Any) -> list[str]:
    return [one.name for one in profile(policy, release, **options).filters]


def weights(policy: Any, release: str = "1.13", **options: Any) -> dict[str, int]:
    return {one.name: one.weight for one in profile(policy, release, **options).scores}


def mistakes(policy: Any, release: str = "1.13", **options: Any) -> dict[str, str]:
    with pytest.raises(ConfigError) as caught:
        read(policy, release, **options)
    return {mistake.path: mistake.expected for mistake in caught.value.mistakes}


def predicates(*names: str) -> dict[str, Any]:
    return {"predicates": [{"name": name} for name in names]}


def custom(name: str, **argument: Any) -> dict[str, Any]:
    return {"name": name, "argument": argument}


def weighed(name: str, weight: int = 1, **argument: Any) -> dict[str, Any]:
    return {"name": name, "weight": weight} | ({"argument": argument} if argument else {})


RATIO = {"shape": [{"utilization": 0, "score": 0}, {"utilization": 100, "score": 10}]}


# What stands nowhere.


@pytest.mark.parametrize("release", OLD)
def test_a_policy_of_nothing_is_the_default_provider(release: str) -> None:
    default = provider_profile(RELEASES[release], Options())
    got = profile({}, release)
    assert [f.name for f in got.filters] == [f.name for f in default.filters]
    assert [(s.name, s.weight) for s in got.scores] == [(s.name, s.weight) for s in default.scores]
    assert got.always_check_all == default.always_check_all


@pytest.mark.parametrize(
    ("release", "mandatory"),
    [
        ("1.7", []),
        ("1.10", ["CheckNodeCondition"]),
        ("1.13", ["CheckNodeCondition"]),
        ("1.17", ["CheckNodeUnschedulable", "PodToleratesNodeTaints"]),
    ],
)
def test_empty_lists_leave_only_the_mandatory_predicates(release: str, mandatory: list[str]) -> None:
    empty: dict[str, Any] = {"predicates": [], "priorities": []}
    assert filters(empty, release) == mandatory
    assert weights(empty, release) == {}


def test_null_is_as_good_as_absent() -> None:
    assert filters({"predicates": None}) == filters({})


def test_with_taint_nodes_by_condition_taints_are_mandatory() -> None:
    gates = {"TaintNodesByCondition": True}
    assert filters({"predicates": []}, feature_gates=gates) == [
        "CheckNodeUnschedulable",
        "PodToleratesNodeTaints",
    ]
    assert "did you mean" not in mistakes(predicates("CheckNodePIDPressure"), feature_gates=gates)


# What stands there.


def test_predicates_are_asked_in_the_releases_order() -> None:
    got = filters(predicates("MatchInterPodAffinity", "PodFitsResources", "HostName"))
    assert got == ["CheckNodeCondition", "HostName", "PodFitsResources", "MatchInterPodAffinity"]


def test_weights_are_the_policys() -> None:
    policy = {"priorities": [weighed("LeastRequestedPriority", 2), weighed("NodeAffinityPriority", 7)]}
    assert weights(policy) == {"LeastRequestedPriority": 2, "NodeAffinityPriority": 7}


def test_files_may_be_yaml_or_json_with_tabs() -> None:
    as_yaml = "kind: Policy\napiVersion: v1\npredicates:\n- name: HostName\n"
    as_json = (
        '{\n\t"kind": "Policy",\n\t"apiVersion": "v1",\n\t"predicates": [\n\t\t{"name": "HostName"}\n\t]\n}'
    )
    assert filters(as_yaml) == filters(as_json) == ["CheckNodeCondition", "HostName"]


def test_pod_fits_ports_is_asked_by_1_7_alone() -> None:
    assert filters(predicates("PodFitsPorts"), "1.7") == ["PodFitsPorts"]
    later = read(predicates("PodFitsPorts"), "1.13")
    assert "PodFitsPorts is never asked" in later.notes[0]
    assert [f.name for f in later.profiles["default-scheduler"].filters] == ["CheckNodeCondition"]


def test_a_custom_predicate_is_asked_only_under_a_name_of_the_list() -> None:
    rule = {"labels": ["retiring"], "presence": False}
    asked = {"predicates": [custom("CheckNodeLabelPresence", labelsPresence=rule)]}
    assert filters(asked) == ["CheckNodeCondition", "CheckNodeLabelPresence"]
    named_freely = {"predicates": [custom("NotRetiring", labelsPresence=rule)]}
    configured = read(named_freely)
    assert [f.name for f in configured.profiles["default-scheduler"].filters] == ["CheckNodeCondition"]
    assert "NotRetiring is never asked" in configured.notes[0]
    assert filters(named_freely, "1.7") == ["NotRetiring"]


def test_1_17_calls_custom_predicates_its_own_way() -> None:
    policy = {
        "predicates": [
            custom("A1", labelsPresence={"labels": ["disk"], "presence": True}),
            custom("A2", labelsPresence={"labels": ["retiring"], "presence": False}),
        ]
    }
    assert filters(policy, "1.17").count("CheckNodeLabelPresence") == 2


def test_a_label_cannot_be_both_present_and_absent() -> None:
    policy = {
        "predicates": [
            custom("A1", labelsPresence={"labels": ["disk"], "presence": True}),
            custom("A2", labelsPresence={"labels": ["disk"], "presence": False}),
        ]
    }
    path = "predicates[1].argument.labelsPresence"
    assert "both present and absent" in mistakes(policy, "1.17")[path]
    read(policy, "1.13")


def test_custom_priorities_keep_their_names_up_to_1_13() -> None:
    policy = {
        "priorities": [
            weighed("Bar", 4, labelPreference={"label": "bar", "presence": True}),
            weighed("Foo", 3, labelPreference={"label": "foo", "presence": False}),
            weighed("Fill", 2, requestedToCapacityRatioArguments=RATIO),
        ]
    }
    assert weights(policy) == {"Bar": 4, "Foo": 3, "Fill": 2}


def test_1_17_makes_one_priority_of_all_label_preferences() -> None:
    policy = {
        "priorities": [
            weighed("Bar", 4, labelPreference={"label": "bar", "presence": True}),
            weighed("Foo", 4, labelPreference={"label": "foo", "presence": False}),
            weighed("Fill", 2, requestedToCapacityRatioArguments=RATIO),
        ]
    }
    got = profile(policy, "1.17")
    assert {s.name: s.weight for s in got.scores} == {"NodeLabel": 8, "RequestedToCapacityRatio": 2}
    assert PreferNodeLabels(100, ("bar",), ("foo",)) in [s.plugin for s in got.scores]


def test_in_1_17_priorities_of_a_kind_have_one_weight() -> None:
    policy = {
        "priorities": [
            weighed("Bar", 4, labelPreference={"label": "bar", "presence": True}),
            weighed("Foo", 3, labelPreference={"label": "foo", "presence": True}),
            weighed("Fill", 2, requestedToCapacityRatioArguments=RATIO),
            weighed("Pack", 2, requestedToCapacityRatioArguments=RATIO),
        ]
    }
    assert set(mistakes(policy, "1.17")) == {
        "priorities[1].weight",
        "priorities[3].argument.requestedToCapacityRatioArguments",
    }


def test_1_17_passes_over_equal_priority() -> None:
    assert weights({"priorities": [weighed("EqualPriority", 5)]}, "1.17") == {}
    assert weights({"priorities": [weighed("EqualPriority", 5)]}, "1.13") == {"EqualPriority": 5}


def test_a_name_twice_counts_once_and_the_last_weight_holds() -> None:
    configured = read({
        **predicates("HostName", "HostName"),
        "priorities": [weighed("EqualPriority", 1), weighed("EqualPriority", 3)],
    })  # fmt: skip
    got = configured.profiles["default-scheduler"]
    assert [(s.name, s.weight) for s in got.scores] == [("EqualPriority", 3)]
    assert [f.name for f in got.filters].count("HostName") == 1
    assert len(configured.notes) == 2


def test_all_predicates_are_checked_where_the_release_can() -> None:
    policy = {"alwaysCheckAllPredicates": True}
    assert profile(policy, "1.13").always_check_all
    assert not profile({}, "1.13").always_check_all
    assert profile({}, "1.7").always_check_all
    no_effect = read(policy, "1.17")
    assert not no_effect.profiles["default-scheduler"].always_check_all
    assert "no effect in 1.17" in no_effect.notes[0]


def test_the_weight_of_required_affinity_reaches_the_priority() -> None:
    policy = {"hardPodAffinitySymmetricWeight": 42, "priorities": [weighed("InterPodAffinityPriority")]}
    (score,) = profile(policy).scores
    assert score.plugin.hard_pod_affinity_weight == 42  # type: ignore[attr-defined]


def test_extenders_are_read_and_said_to_be_not_asked() -> None:
    extender = {
        "urlPrefix": "http://127.0.0.1/prefix",
        "FilterVerb": "filter",
        "prioritizeVerb": "prioritize",
        "weight": 5,
        "BindVerb": "bind",
        "enableHttps": True,
        "tlsConfig": {"Insecure": True},
        "httpTimeout": 1,
        "nodeCacheCapable": True,
        "managedResources": [{"name": "example.com/gpu", "ignoredByScheduler": True}],
    }
    configured = read({"extenders": [extender]})
    (got,) = configured.extenders
    assert (got.filter_verb, got.bind_verb, got.weight) == ("filter", "bind", 5)
    assert got.managed_resources == ("example.com/gpu",)
    assert any("not available yet" in note for note in configured.notes)


# What is wrong.


def test_all_mistakes_are_told_at_once_with_path_line_and_value() -> None:
    text = """\
kind: Policy
apiVersion: v2
predicate: []
predicates:
- name: PodFitsResource
- {name: x}
- {name: NoDiskConflict, argument: {}}
- {name: Two, argument: {serviceAffinity: {labels: [a]}, labelsPresence: {labels: [b]}}}
priorities:
- {name: LeastRequestedPriority, weight: 0}
- {name: BalancedResourceAllocation}
- {name: NodeAffinityPriority, weight: 922337203685477580}
- {name: Shape, weight: 1, argument: {requestedToCapacityRatioArguments: {shape: []}}}
- {name: EqualPriority, weight: "1"}
extenders:
- {urlPrefix: a, prioritizeVerb: p, bindVerb: b}
- {urlPrefix: b, bindVerb: b, managedResources: [{name: gpu}]}
hardPodAffinitySymmetricWeight: 101
alwaysCheckAllPredicates: "no"
"""
    with pytest.raises(ConfigError) as caught:
        read(text)
    told = {mistake.path: mistake for mistake in caught.value.mistakes}
    assert set(told) == {
        "apiVersion",
        "predicate",
        "predicates[0].name",
        "predicates[1].name",
        "predicates[2].argument",
        "predicates[3].argument",
        "priorities[0].weight",
        "priorities[1].weight",
        "priorities[2].weight",
        "priorities[3].argument.requestedToCapacityRatioArguments.shape",
        "priorities[4].weight",
        "extenders",
        "extenders[0].weight",
        "extenders[1].managedResources[0].name",
        "hardPodAffinitySymmetricWeight",
        "alwaysCheckAllPredicates",
    }
    assert str(told["predicates[0].name"]) == (
        "predicates[0].name (policy.json, line 5): 'PodFitsResource', expected a known predicate of 1.13; "
        "did you mean PodFitsResources?"
    )
    assert "did you mean predicates?" in told["predicate"].expected


@pytest.mark.parametrize("release", ["1.7", "1.10"])
def test_the_ratio_came_with_a_later_release(release: str) -> None:
    policy = {"priorities": [weighed("Fill", 1, requestedToCapacityRatioArguments=RATIO)]}
    assert list(mistakes(policy, release)) == ["priorities[0].argument.requestedToCapacityRatioArguments"]


@pytest.mark.parametrize(
    ("release", "name"),
    [
        ("1.10", "CheckNodePIDPressure"),
        ("1.10", "CheckNodeUnschedulable"),
        ("1.13", "CheckNodeUnschedulable"),
        ("1.13", "PodToleratesNodeNoExecuteTaints"),
        ("1.17", "CheckNodeCondition"),
        ("1.17", "CheckNodeMemoryPressure"),
        ("1.7", "CheckVolumeBinding"),
    ],
)
def test_names_that_a_release_does_not_register_are_unknown(release: str, name: str) -> None:
    assert list(mistakes(predicates(name), release)) == ["predicates[0].name"]


def test_1_17_does_not_start_with_a_plugin_enabled_twice() -> None:
    policy = predicates("PodFitsResources", "GeneralPredicates")
    assert "not both" in mistakes(policy, "1.17")["predicates[1].name"]
    assert "not both" in mistakes(predicates("GeneralPredicates", "HostName"), "1.17")["predicates[1].name"]
    read(policy, "1.13")


def test_weights_may_not_overflow_together() -> None:
    policy = {
        "priorities": [
            weighed("LeastRequestedPriority", 922337203685477579),
            weighed("EqualPriority", 922337203685477579),
        ]
    }
    assert "sum" in mistakes(policy)["priorities"]


@pytest.mark.parametrize(
    "text", ["", "[]", "kind: [", "a: &a [*a]", "kind: Policy\nkind: Policy\napiVersion: v1\n", "x: 0x"]
)
def test_what_is_no_policy_is_refused(text: str) -> None:
    with pytest.raises(ConfigError):
        read(text)
