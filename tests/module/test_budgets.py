"""Planned removals heed PodDisruptionBudgets where they are told to."""

from typing import Any

import pytest

from berth.cluster.cluster import Cluster
from berth.module.budgets import Budgets
from berth.module.changes import Change
from berth.module.planner import Planner
from berth.module.rounds import Rules
from berth.objects.base import LabelSelector, ObjectMeta
from berth.objects.workloads import (
    PodDisruptionBudget,
    PodDisruptionBudgetSpec,
    PodDisruptionBudgetStatus,
)
from berth.releases.module import MODULE_RELEASES, addition_profile
from tests.builders import a_cluster, a_node, a_pod, a_service

WEB = {"app": "web"}


def a_budget(name: str, allowed: int, labels: dict[str, str]) -> PodDisruptionBudget:
    return PodDisruptionBudget(
        metadata=ObjectMeta(name=name, namespace="default"),
        spec=PodDisruptionBudgetSpec(selector=LabelSelector(match_labels=labels)),
        status=PodDisruptionBudgetStatus(disruptions_allowed=allowed),
    )


def a_world(*budgets: PodDisruptionBudget) -> Cluster:
    """Five pods of web on a node; a and b are gold, c does not run yet."""
    pods = [a_pod(name, labels=WEB | {"metal": "gold"}, node="n1") for name in "ab"]
    pods += [a_pod("c", labels=WEB, phase="Pending"), *(a_pod(name, labels=WEB, node="n1") for name in "de")]
    return a_cluster(a_node("n1"), pods=pods, services=[a_service("web")], objects=list(budgets))


def removed(cluster: Cluster, number: int, *, heeds: bool = True) -> list[tuple[str | None, str | None]]:
    release = MODULE_RELEASES["1.36"]
    weights = {"MostRequestedPriority": 1}
    rules = Rules(addition_profile({}, 1, release), weights, release.removal, heeds_budgets=heeds)
    plan = Planner(cluster, rules).dry_run(1, [Change("r-01", "remove", "default", "web", number)])
    return [(decision.pod, decision.reason) for decision in plan.decisions]


def kept(names: str) -> str:
    return f"service default/web has no pod left to remove: PodDisruptionBudget {names} allows no more"


@pytest.mark.parametrize(
    ("budgets", "names", "last"),
    [
        ((), "cabde", ""),
        ((a_budget("all", 0, WEB),), "c", "default/all"),
        ((a_budget("all", 2, WEB),), "cab", "default/all"),
        ((a_budget("gold", 1, {"metal": "gold"}),), "cade", "default/gold"),
        (
            (a_budget("gold", 1, {"metal": "gold"}), a_budget("all", 2, WEB)),
            "cad",
            "default/all, default/gold",
        ),
        ((a_budget("other", 0, {"app": "other"}),), "cabde", ""),
    ],
)
def test_pods_leave_as_long_as_every_budget_allows_it(budgets: Any, names: str, last: str) -> None:
    made = removed(a_world(*budgets), 6)
    assert [pod for pod, reason in made if reason is None] == list(names)
    reason = kept(last) if last else "service default/web has no pod left to remove"
    assert {reason for _, reason in made if reason} == {reason}


def test_nobody_heeds_them_unasked() -> None:
    made = removed(a_world(a_budget("all", 0, WEB)), 5, heeds=False)
    assert [reason for _, reason in made] == [None] * 5


def test_what_is_drawn_is_drawn_from_all_budgets_of_a_pod() -> None:
    gold, everything = a_budget("gold", 1, {"metal": "gold"}), a_budget("all", 3, WEB)
    cluster = a_world(gold, everything)
    budgets = Budgets(cluster)
    budgets.draw(cluster.pods.alive.nonzero()[0][:2])  # a and b
    assert (budgets.left(gold), budgets.left(everything)) == (-1, 1)
