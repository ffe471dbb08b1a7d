"""A planner made of settings: whose arithmetic holds."""

from pathlib import Path

import pytest

from berth.config import Settings
from berth.config.settings import ModuleSettings
from berth.errors import BerthError, InputError
from berth.module.changes import Change
from berth.module.services import members, resolve_workload
from berth.module.templates import incoming_of, pattern_of
from berth.releases import RELEASES
from berth.releases.release import Options
from berth.scheduling.answer import answer
from berth.service.assembly import empty_cluster, make_planner
from berth.sources.snapshot import load_snapshot
from tests.service.worlds import a_shop

DEFAULT_PROFILE = {
    "LeastRequestedPriority": 1,
    "BalancedResourceAllocation": 1,
    "SelectorSpreadPriority": 2,
    "NodeAffinityPriority": 2,
    "TaintTolerationPriority": 3,
    "InterPodAffinityPriority": 2,
    "ImageLocalityPriority": 1,
}


def settings_of(release: str, **more: object) -> Settings:
    return Settings(module=ModuleSettings.model_validate({"release": release, **more}))


@pytest.mark.parametrize(("release", "maximum"), [("1.13", 10), ("1.36", 100)])
def test_the_release_of_the_settings_decides(release: str, maximum: int) -> None:
    planner = make_planner(a_shop(), settings_of(release), {})
    changes = [Change("r-01", "add", "shop", "web", 1), Change("r-02", "remove", "shop", "db", 1)]
    removal, addition = planner.dry_run(1, changes).decisions
    assert removal.scores["ServicePodsOnNodePriority"] == maximum
    assert addition.scores["NodeLoadForecastPriority"] == removal.scores["NodeLoadForecastPriority"]
    assert addition.scores["NodeLoadForecastPriority"] == maximum // 2
    assert max(addition.scores.values()) == maximum


def test_what_the_release_has_no_more_is_refused() -> None:
    settings = settings_of("1.36", addWeights={"EqualPriority": 1})
    with pytest.raises(InputError, match="'EqualPriority' is not one of 1"):
        make_planner(a_shop(), settings, {})


@pytest.mark.parametrize(("name", "n_services"), [("openshift-aws", 40), ("kurl-support-bundle", 5)])
def test_on_a_real_cluster_pods_go_where_the_default_profile_of_1_36_has_them(
    name: str, n_services: int, real_snapshots: Path
) -> None:
    settings = settings_of("1.36", addWeights=DEFAULT_PROFILE, ties="name")
    cluster = load_snapshot([real_snapshots / name], empty_cluster(settings)).cluster
    planner = make_planner(cluster, settings, {})
    n_asked = 0
    for service in cluster.objects.services.all():
        its_members = members(cluster, service)
        try:
            workload = resolve_workload(cluster, service, None, its_members)
            pod = incoming_of(cluster, pattern_of(cluster, service, workload, its_members))
        except BerthError:
            continue
        change = Change("r-01", "add", service.metadata.namespace, service.metadata.name, 1)
        (made,) = planner.dry_run(1, [change]).decisions
        wanted = answer(RELEASES["1.36"], cluster, pod, Options())
        n_asked += 1
        if made.node is None:
            assert made.reason == wanted["message"]
            continue
        assert made.node == wanted["best"][0]
        assert made.feasible == len(wanted["feasible"])
        score = wanted["weighted"][made.node]
        assert made.score == score
    assert n_asked >= n_services
