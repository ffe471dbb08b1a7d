import msgspec
import pytest
from conformance.golden import read_golden

from berth.config.priorities import ADD_PRIORITIES, OPTIONAL_ADD_PRIORITIES
from berth.errors import InputError
from berth.objects.decode import decode
from berth.releases.module import MODULE_1_13, MODULE_1_36, MODULE_RELEASES, addition_profile
from berth.releases.release import Options
from berth.scheduling.decide import decide
from berth.scheduling.evaluation import Evaluation
from berth.scheduling.ties import TieBreaker
from berth.sources.cases import Case, cluster_of

PLUGINS = {
    "TaintTolerationPriority": "TaintToleration",
    "NodeAffinityPriority": "NodeAffinity",
    "LeastRequestedPriority": "NodeResourcesFit",
    "SelectorSpreadPriority": "PodTopologySpread",
    "InterPodAffinityPriority": "InterPodAffinity",
    "BalancedResourceAllocation": "NodeResourcesBalancedAllocation",
    "ImageLocalityPriority": "ImageLocality",
}
GONE = {
    "NodePreferAvoidPodsPriority",
    "ResourceLimitsPriority",
    "ServiceSpreadingPriority",
    "EqualPriority",
}


def test_every_priority_that_the_settings_know_is_there() -> None:
    names = (*ADD_PRIORITIES, *OPTIONAL_ADD_PRIORITIES)
    assert [score.name for score in addition_profile(dict.fromkeys(names, 2)).scores] == list(names)


def test_those_that_1_36_has_still_are_there_under_their_old_names() -> None:
    names = [name for name in (*ADD_PRIORITIES, *OPTIONAL_ADD_PRIORITIES) if name not in GONE]
    profile = addition_profile(dict.fromkeys(names, 2), module=MODULE_1_36)
    assert [(score.name, score.weight) for score in profile.scores] == [(name, 2) for name in names]


@pytest.mark.parametrize("name", sorted(GONE))
def test_those_that_1_36_has_no_more_are_refused(name: str) -> None:
    with pytest.raises(
        InputError, match=rf"'{name}' is not one of 1\.36's: NodeLoadForecastPriority, Selector"
    ):
        addition_profile({name: 1}, module=MODULE_1_36)


def test_an_unknown_priority_is_told_with_those_there_are() -> None:
    with pytest.raises(InputError, match=r"one of 1\.13's: NodeLoadForecastPriority, SelectorSpreadPriority"):
        addition_profile({"NoSuchPriority": 1})


def test_each_release_has_its_own_scale() -> None:
    assert dict(MODULE_RELEASES) == {"1.13": MODULE_1_13, "1.36": MODULE_1_36}
    for module, maximum in ((MODULE_1_13, 10), (MODULE_1_36, 100)):
        assert module.removal.maximum == module.release.maximum == maximum


def test_the_module_decides_as_the_default_profile_of_the_real_1_36() -> None:
    """With the weights that the default profile has: the same nodes, scores and words for every committed answer."""
    n_placed = n_refused = 0
    weights = {
        name: MODULE_1_36.release.default_scores(Options())[plugin] for name, plugin in PLUGINS.items()
    }
    for line, wanted in read_golden("1.36"):
        case = decode(line, Case)
        if case.options.feature_gates:
            continue
        profile = addition_profile(weights, case.options.hard_pod_affinity_weight, MODULE_1_36)
        cluster = cluster_of(case, MODULE_1_36.accounting)
        meta = msgspec.structs.replace(case.pod.metadata, namespace=case.pod.metadata.namespace or "default")
        pod = cluster.incoming(msgspec.structs.replace(case.pod, metadata=meta))
        made = decide(Evaluation(profile, pod, cluster), TieBreaker("name"))
        if made.row is None:
            n_refused += 1
            assert made.reason == wanted.get("error", wanted.get("message")), case.id
            continue
        node = cluster.nodes.names[made.row]
        n_placed += 1
        assert node == wanted["best"][0], case.id
        assert made.score == wanted["weighted"][node]
        assert made.n_feasible == len(wanted["feasible"])
        assert made.scores == {
            name: wanted["priorities"][plugin][node] for name, plugin in PLUGINS.items()
        }, case.id
    assert n_placed > 500
    assert n_refused > 200
