from typing import Any

from berth.cluster.cluster import Cluster
from berth.framework.profile import Profile
from berth.releases import RELEASES
from berth.releases.profiles import provider_profile
from berth.releases.release import Options
from berth.scheduling.difference import (
    BEST_NODES,
    FITS_ANYWHERE,
    FITS_OWN_NODE,
    Difference,
    Judge,
    differences,
)
from tests.builders import a_cluster, a_node, a_pod

DEFAULT = provider_profile(RELEASES["1.13"], Options())
FULLEST = provider_profile(RELEASES["1.13"], Options(), "ClusterAutoscalerProvider")


def a_world() -> Cluster:
    return a_cluster(
        a_node("n1"),
        a_node("n2"),
        a_node("n3", unschedulable=True),
        pods=[
            a_pod("big", node="n1", cpu="2", memory="8Gi"),
            a_pod("small", node="n2", cpu="100m", memory="400Mi"),
            a_pod("stuck", node="n3", cpu="100m", memory="400Mi"),
            a_pod("waits", cpu="100m", memory="400Mi", phase="Pending"),
            a_pod("huge", cpu="64", phase="Pending"),
            a_pod("done", node="n1", cpu="1", phase="Succeeded"),
        ],
    )


def compare(before: Profile | None, after: Profile | None, **which: Any) -> dict[str, Difference]:
    first, second = Judge(a_world(), lambda name: before), Judge(a_world(), lambda name: after)
    pods = first.pods(**({"pending": False, "namespace": None} | which))
    return {one.name: one for one in differences(first, second, pods) if one}


def test_a_profile_against_itself_changes_nothing() -> None:
    assert compare(DEFAULT, DEFAULT) == {}


def test_other_priorities_change_the_best_nodes() -> None:
    found = compare(DEFAULT, FULLEST)
    assert set(found) == {"small", "stuck", "waits"}
    assert {one.what for one in found.values()} == {(BEST_NODES,)}
    # Without itself n2 is empty, and n1 is not.
    assert found["small"].before.best == ("n2",)
    assert found["small"].after.best == ("n1",)
    assert found["waits"].node is None


def test_without_predicates_everything_fits() -> None:
    found = compare(DEFAULT, Profile((), DEFAULT.scores))
    stuck, huge = found["stuck"], found["huge"]
    assert FITS_OWN_NODE in stuck.what
    assert stuck.before.own_reasons == ("node(s) were unschedulable",)
    assert stuck.after.fits_own_node is True
    assert huge.what == (FITS_ANYWHERE,)
    assert huge.before.reason is not None
    assert "Insufficient cpu" in huge.before.reason
    assert huge.after.reason is None


def test_only_pending_pods_or_those_of_a_namespace() -> None:
    judge = Judge(a_world(), lambda name: DEFAULT)
    assert {name for _, name in judge.pods(pending=True, namespace=None)} == {"waits", "huge"}
    assert judge.pods(pending=False, namespace="other") == {}
    assert len(judge.pods(pending=False, namespace="default")) == 5


def test_judging_leaves_the_cluster_as_it_was() -> None:
    cluster = a_world()
    judge = Judge(cluster, lambda name: DEFAULT)
    held = cluster.requested.of(0).tolist()
    for pod in judge.pods(pending=False, namespace=None).values():
        judge.judge(pod)
    assert cluster.requested.of(0).tolist() == held


def test_a_pod_of_a_scheduler_without_a_profile_fits_nowhere() -> None:
    found = compare(DEFAULT, None)
    assert found["small"].after.reason == "no profile for its scheduler"
