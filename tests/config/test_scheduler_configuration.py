from dataclasses import dataclass, replace
from typing import Any

import pytest
import yaml

from berth.cluster.accounting import LegacyAccounting
from berth.config import ConfigError
from berth.config.configured import Configured
from berth.config.document import parse_document
from berth.config.scheduler_configuration import read_scheduler_configuration
from berth.framework.profile import Profile
from berth.objects.pods import NodeSelector, PreferredSchedulingTerm, TopologySpreadConstraint
from berth.releases import RELEASES
from berth.releases.extension_points import POINTS
from berth.releases.modern import RELEASE_1_36
from berth.releases.profiles import provider_profile
from berth.releases.release import Options, Release

HEAD = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}


@dataclass(frozen=True)
class Stub:
    """Stands for any plugin that heeds all arguments."""

    name: str
    options: Options
    ignored: frozenset[str] = frozenset()
    added: Any = None
    resources: Any = None
    ignores_existing_preferences: bool = False
    default_constraints: Any = None


@dataclass(frozen=True)
class Deaf:
    """Stands for a plugin that heeds none."""

    name: str


def a_release(make: Any = Stub) -> Release:
    def factories(names: Any) -> Any:
        return {name: lambda options, name=name: make(name, options) for name in names}

    strategies = ("NodeResourcesFit/MostAllocated", "NodeResourcesFit/RequestedToCapacityRatio")
    return Release(
        name="1.36",
        version="v1.36.3",
        maximum=100,
        accounting=LegacyAccounting(),
        filters=factories(sorted(POINTS["filter"])),
        scores=factories([*sorted(POINTS["score"]), *strategies]),
        default_filters=lambda options: POINTS["filter"],
        default_scores=lambda options: {},
    )


def read(configuration: dict[str, Any], release: Release | None = None, **options: Any) -> Configured:
    text = yaml.safe_dump({**HEAD, **configuration})
    return read_scheduler_configuration(
        parse_document(text, "scheduler.yaml"), release or a_release(), Options(**options)
    )


def profile(**fields: Any) -> Profile:
    (got,) = read({"profiles": [fields]}).profiles.values()
    return got


def with_args(name: str, **args: Any) -> Profile:
    return profile(pluginConfig=[{"name": name, "args": args}])


def a_filter(got: Profile, name: str) -> Any:
    return next(one.plugin for one in got.filters if one.name == name)


def a_score(got: Profile, name: str) -> Any:
    return next(one.plugin for one in got.scores if one.name == name)


def mistakes(configuration: dict[str, Any], release: Release | None = None, **options: Any) -> dict[str, str]:
    with pytest.raises(ConfigError) as caught:
        read(configuration, release, **options)
    return {mistake.path: mistake.expected for mistake in caught.value.mistakes}


def args_mistakes(name: str, **args: Any) -> set[str]:
    found = mistakes({"profiles": [{"pluginConfig": [{"name": name, "args": args}]}]})
    return {path.removeprefix("profiles[0].pluginConfig[0].args.") for path in found}


@pytest.mark.skipif("1.36" not in RELEASES, reason="1.36 has no table yet")
@pytest.mark.parametrize("configuration", [{}, {"profiles": []}, {"profiles": [{"schedulerName": "x"}]}])
def test_a_configuration_of_nothing_is_the_default_profile(configuration: dict[str, Any]) -> None:
    (got,) = read(configuration, RELEASES["1.36"]).profiles.values()
    default = provider_profile(RELEASES["1.36"], Options())
    assert got.filters == default.filters
    assert got.scores == default.scores


# Profiles.


def test_profiles_are_told_apart_by_the_schedulers_name() -> None:
    nothing = {"disabled": [{"name": "*"}]}
    configured = read({
        "profiles": [
            {"schedulerName": "default-scheduler"},
            {"schedulerName": "bare", "plugins": {"score": nothing, "preScore": nothing}},
        ]
    })  # fmt: skip
    bare = configured.of("bare")
    assert bare is not None
    assert bare.scores == ()
    assert len(bare.filters) == 14
    assert configured.of("") is configured.of("default-scheduler")
    assert configured.of("other") is None


def test_a_single_profile_needs_no_name_and_several_need_different_ones() -> None:
    assert list(read({"profiles": [{}]}).profiles) == ["default-scheduler"]
    assert set(mistakes({"profiles": [{}, {"schedulerName": "a"}, {"schedulerName": "a"}]})) == {
        "profiles[0].schedulerName",
        "profiles[2].schedulerName",
    }


def test_weights_and_order_follow_the_configuration() -> None:
    got = profile(plugins={
        "multiPoint": {"enabled": [{"name": "NodeResourcesFit", "weight": 6}]},
        "score": {"enabled": [{"name": "ImageLocality", "weight": 5}], "disabled": [{"name": "TaintToleration"}]},
        "preScore": {"disabled": [{"name": "TaintToleration"}]},
    })  # fmt: skip
    assert [(s.name, s.weight) for s in got.scores][:3] == [
        ("ImageLocality", 5),
        ("NodeAffinity", 2),
        ("NodeResourcesFit", 6),
    ]
    assert "TaintToleration" not in [s.name for s in got.scores]


def test_what_has_no_effect_is_accepted_with_a_note() -> None:
    configured = read({
        "parallelism": 4,
        "percentageOfNodesToScore": 50,
        "leaderElection": {"leaderElect": True, "resourceLock": "leases"},
        "clientConnection": {"kubeconfig": "/etc/kubeconfig", "qps": 50, "burst": 100},
        "podInitialBackoffSeconds": 2,
        "podMaxBackoffSeconds": 20,
        "profiles": [{"percentageOfNodesToScore": 70}],
    })  # fmt: skip
    notes = "\n".join(configured.notes)
    assert "percentageOfNodesToScore is ignored: every node is scored" in notes
    assert "profiles[0].percentageOfNodesToScore is ignored" in notes
    assert "parallelism, leaderElection, clientConnection" in notes


# Arguments.


def test_arguments_of_node_resources_fit() -> None:
    got = with_args(
        "NodeResourcesFit",
        ignoredResources=["example.com/foo"],
        ignoredResourceGroups=["example.org"],
        scoringStrategy={
            "type": "MostAllocated",
            "resources": [{"name": "cpu", "weight": 3}, {"name": "nvidia.com/gpu"}],
        },
    )
    assert a_filter(got, "NodeResourcesFit").ignored == {"example.com/foo", "example.org"}
    score = a_score(got, "NodeResourcesFit")
    assert score.name == "NodeResourcesFit/MostAllocated"
    assert score.resources == (("cpu", 3), ("nvidia.com/gpu", 1))


def test_a_shape_of_requested_to_capacity_ratio() -> None:
    shape = [{"utilization": 0, "score": 0}, {"utilization": 100, "score": 10}]
    strategy = {"type": "RequestedToCapacityRatio", "requestedToCapacityRatio": {"shape": shape}}
    score = a_score(with_args("NodeResourcesFit", scoringStrategy=strategy), "NodeResourcesFit")
    assert score.name == "NodeResourcesFit/RequestedToCapacityRatio"
    assert [(p.utilization, p.score) for p in score.options.ratio.points] == [(0, 0), (100, 10)]
    assert score.options.ratio.resources == (("cpu", 1), ("memory", 1))


def test_arguments_of_balanced_allocation() -> None:
    resources = [{"name": "cpu", "weight": 1}, {"name": "nvidia.com/gpu"}]
    got = with_args("NodeResourcesBalancedAllocation", resources=resources)
    plugin = a_score(got, "NodeResourcesBalancedAllocation")
    assert plugin.resources == (("cpu", 1), ("nvidia.com/gpu", 1))


def test_arguments_of_inter_pod_affinity() -> None:
    got = with_args(
        "InterPodAffinity",
        kind="InterPodAffinityArgs",
        apiVersion=HEAD["apiVersion"],
        hardPodAffinityWeight=0,
        ignorePreferredTermsOfExistingPods=True,
    )
    plugin = a_score(got, "InterPodAffinity")
    assert plugin.options.hard_pod_affinity_weight == 0
    assert plugin.ignores_existing_preferences


def test_arguments_of_pod_topology_spread() -> None:
    constraint = {"maxSkew": 2, "topologyKey": "rack", "whenUnsatisfiable": "ScheduleAnyway"}
    got = with_args("PodTopologySpread", defaultConstraints=[constraint], defaultingType="List")
    expected = TopologySpreadConstraint(max_skew=2, topology_key="rack", when_unsatisfiable="ScheduleAnyway")
    assert a_filter(got, "PodTopologySpread").default_constraints == (expected,)
    assert a_score(got, "PodTopologySpread").default_constraints == (expected,)
    empty = with_args("PodTopologySpread", defaultingType="List")
    assert a_score(empty, "PodTopologySpread").default_constraints == ()
    assert a_score(with_args("PodTopologySpread"), "PodTopologySpread").default_constraints is None


def test_arguments_of_node_affinity() -> None:
    term = {"matchExpressions": [{"key": "pool", "operator": "In", "values": ["blue"]}]}
    got = with_args(
        "NodeAffinity",
        addedAffinity={
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]},
            "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 5, "preference": term}],
        },
    )
    assert isinstance(a_filter(got, "NodeAffinity").added, NodeSelector)
    (preferred,) = a_score(got, "NodeAffinity").added
    assert isinstance(preferred, PreferredSchedulingTerm)
    assert preferred.weight == 5


def test_arguments_without_effect_are_noted() -> None:
    configured = read({
        "profiles": [{
            "pluginConfig": [
                {"name": "DefaultPreemption", "args": {"minCandidateNodesPercentage": 5}},
                {"name": "DynamicResources", "args": {"filterTimeout": "5s"}},
            ]
        }]
    })  # fmt: skip
    assert len(configured.notes) == 2


def test_how_long_volumes_are_waited_for_reaches_the_plugin() -> None:
    profile = {"pluginConfig": [{"name": "VolumeBinding", "args": {"bindTimeoutSeconds": 300}}]}
    (got,) = read({"profiles": [profile]}, RELEASE_1_36).profiles.values()
    assert a_filter(got, "VolumeBinding").bind_timeout_s == 300


def test_what_a_plugin_does_not_heed_is_refused() -> None:
    deaf = a_release(lambda name, options: Deaf(name))
    found = mistakes(
        {
            "profiles": [
                {"pluginConfig": [{"name": "NodeResourcesFit", "args": {"ignoredResources": ["a/b"]}}]}
            ]
        },
        deaf,
    )
    assert "not available yet" in found["profiles[0].pluginConfig[0].args"]
    read({}, deaf)


# Mistakes.


@pytest.mark.parametrize(
    ("name", "args", "paths"),
    [
        ("NodeResourcesFit", {"ignoredResources": ["a b"]}, {"ignoredResources[0]"}),
        ("NodeResourcesFit", {"ignoredResourceGroups": ["a/b"]}, {"ignoredResourceGroups[0]"}),
        ("NodeResourcesFit", {"scoringStrategy": {"type": "Best"}}, {"scoringStrategy.type"}),
        ("NodeResourcesFit", {"scoringStrategy": {"resources": []}}, {"scoringStrategy.type"}),
        (
            "NodeResourcesFit",
            {"scoringStrategy": {"type": "LeastAllocated", "resources": [{"name": "cpu", "weight": 101}]}},
            {"scoringStrategy.resources[0].weight"},
        ),
        (
            "NodeResourcesFit",
            {"scoringStrategy": {"type": "RequestedToCapacityRatio"}},
            {"scoringStrategy.requestedToCapacityRatio"},
        ),
        (
            "NodeResourcesFit",
            {"scoringStrategy": {"type": "MostAllocated", "requestedToCapacityRatio": {"shape": []}}},
            {"scoringStrategy.requestedToCapacityRatio"},
        ),
        (
            "NodeResourcesBalancedAllocation",
            {"resources": [{"name": "cpu", "weight": 2}, {"name": "cpu"}]},
            {"resources[0].weight", "resources[1].name"},
        ),
        ("InterPodAffinity", {"hardPodAffinityWeight": 101}, {"hardPodAffinityWeight"}),
        ("InterPodAffinity", {"hardPodAffinityWieght": 1}, {"hardPodAffinityWieght"}),
        ("InterPodAffinity", {"kind": "NodeAffinityArgs"}, {"kind"}),
        (
            "PodTopologySpread",
            {
                "defaultConstraints": [
                    {"maxSkew": 1, "topologyKey": "a", "whenUnsatisfiable": "DoNotSchedule"}
                ]
            },
            {"defaultingType"},
        ),
        (
            "PodTopologySpread",
            {
                "defaultingType": "List",
                "defaultConstraints": [
                    {"maxSkew": 0, "topologyKey": "", "whenUnsatisfiable": "Never", "labelSelector": {}},
                ],
            },
            {
                "defaultConstraints[0].maxSkew",
                "defaultConstraints[0].topologyKey",
                "defaultConstraints[0].whenUnsatisfiable",
                "defaultConstraints[0].labelSelector",
            },
        ),
        (
            "NodeAffinity",
            {"addedAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {}}},
            {"addedAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"},
        ),
        ("VolumeBinding", {"bindTimeoutSeconds": -1}, {"bindTimeoutSeconds"}),
        ("VolumeBinding", {"shape": []}, {"shape"}),
        (
            "DefaultPreemption",
            {"minCandidateNodesPercentage": 0, "minCandidateNodesAbsolute": 0},
            {"minCandidateNodesPercentage", "minCandidateNodesAbsolute"},
        ),
        ("DynamicResources", {"bindingTimeout": "500ms"}, {"bindingTimeout"}),
    ],
)
def test_wrong_arguments(name: str, args: dict[str, Any], paths: set[str]) -> None:
    assert args_mistakes(name, **args) == paths


def test_all_mistakes_are_told_at_once() -> None:
    found = mistakes({
        "apiVersion": "kubescheduler.config.k8s.io/v1beta3",
        "parallelism": 0,
        "paralelism": 1,
        "percentageOfNodesToScore": 101,
        "podInitialBackoffSeconds": 10,
        "podMaxBackoffSeconds": 5,
        "leaderElection": {"resourceLock": "endpoints"},
        "extenders": [{"urlPrefix": "http://a", "prioritizeVerb": "p"}],
        "profiles": [{
            "plugins": {
                "score": {"enabled": [{"name": "NodeName"}, {"name": "ImageLocalty"}]},
                "filter": {"enabled": [{"name": "EBSLimits"}, {"name": "NodePorts"}, {"name": "NodePorts"}]},
                "scoring": {},
            },
            "pluginConfig": [{"name": "InterPodAffinity"}, {"name": "InterPodAffinity"}, {"name": "Nothing"}],
        }],
    })  # fmt: skip
    assert set(found) == {
        "apiVersion",
        "parallelism",
        "paralelism",
        "percentageOfNodesToScore",
        "podMaxBackoffSeconds",
        "leaderElection.resourceLock",
        "extenders[0].weight",
        "profiles[0].plugins.scoring",
        "profiles[0].plugins.score.enabled[0].name",
        "profiles[0].plugins.score.enabled[1].name",
        "profiles[0].plugins.filter.enabled[0].name",
        "profiles[0].plugins.filter.enabled[2].name",
        "profiles[0].pluginConfig[1].name",
        "profiles[0].pluginConfig[2].name",
    }
    assert "did you mean ImageLocality?" in found["profiles[0].plugins.score.enabled[1].name"]
    assert "did you mean parallelism?" in found["paralelism"]


def test_a_profile_needs_one_queue_sort_and_a_binder() -> None:
    nothing = {"multiPoint": {"disabled": [{"name": "*"}]}}
    with pytest.raises(ConfigError) as caught:
        read({"profiles": [{"plugins": nothing}]})
    assert [mistake.expected for mistake in caught.value.mistakes] == [
        "exactly one plugin at queueSort",
        "at least one plugin at bind",
    ]


def test_a_filter_without_its_pre_filter_is_refused() -> None:
    plugins = {"preFilter": {"disabled": [{"name": "NodePorts"}]}}
    assert "NodePorts" in mistakes({"profiles": [{"plugins": plugins}]})["profiles[0].plugins"]


def test_what_keeps_unsupported_pods_out_is_in_every_profile() -> None:
    release = a_release()
    guarded = replace(
        release,
        filters={**release.filters, "Guard": lambda options: Stub("Guard", options)},  # type: ignore[dict-item,return-value]
        default_filters=lambda options: POINTS["filter"] | {"Guard"},
    )
    plugins = {"filter": {"disabled": [{"name": "*"}]}, "preFilter": {"disabled": [{"name": "*"}]}}
    (got,) = read({"profiles": [{"plugins": plugins}]}, guarded).profiles.values()
    assert [one.name for one in got.filters] == ["Guard"]
