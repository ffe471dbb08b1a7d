"""What a round on a live cluster leaves, and the settings that hold there: without a cluster."""

import pytest

from berth.config.settings import ModuleSettings, Settings
from berth.errors import InputError
from berth.live.module.orders import Outcome
from berth.module.plan import Plan, PlannedDecision
from berth.service.live import live_settings
from berth.service.results import live_result
from berth.store.interface import Entry, OpenRound, Request, RoundResult

WEB = Entry("remove", "shop", "web", 3, "deployment/web", force=True)
DB = Entry("add", "shop", "db", 1)


def a_round(retry_of: str | None = None) -> OpenRound:
    request = Request("r-000001", 0.0, "waiting", (WEB, DB), retry_of=retry_of)
    return OpenRound(7, 0.0, (request, Request("r-000002", 0.0, "waiting", (DB,))))


def a_plan() -> Plan:
    removals = [
        PlannedDecision(
            request="r-000001", operation="remove", namespace="shop", service="web", pod=f"w{i}", node="n1"
        )
        for i in range(3)
    ]
    added = PlannedDecision(request="r-000001", operation="add", namespace="shop", service="db", node="n2")
    none = PlannedDecision(
        request="r-000002", operation="add", namespace="shop", service="db", reason="no room"
    )
    return Plan(round=7, decisions=[*removals, added, none], nodes_without_forecast=2)


def a_result(retry_of: str | None = None) -> RoundResult:
    outcomes = {
        0: Outcome("w0", "n1"),
        1: Outcome("w1", reason="pod w1 is gone already", again=True),
        2: Outcome("w2", reason="someone else", again=True),
        3: Outcome("db-1", "n3"),
    }
    return live_result(a_round(retry_of), a_plan(), outcomes, 5)


def test_each_decision_is_told_as_it_came_out() -> None:
    result = a_result()
    assert (result.added, result.removed, result.failed, result.tie_counter) == (1, 1, 3, 5)
    first, second = result.outcomes
    assert (first.state, second.state) == ("applied", "failed")
    assert [(d.pod, d.node, d.reason) for d in first.decisions] == [
        ("w0", "n1", None),
        ("w1", "n1", "pod w1 is gone already"),
        ("w2", "n1", "someone else"),
        ("db-1", "n3", None),
    ]
    assert [d.reason for d in second.decisions] == ["no room"]
    assert b'"nodesWithoutForecast":2' in result.plan
    assert b'"node":"n2"' in result.plan  # as it was planned


def test_what_could_not_be_applied_is_queued_again_once() -> None:
    first, second = a_result().outcomes
    assert first.requeue == (Entry("remove", "shop", "web", 2, "deployment/web", force=True),)
    assert second.requeue == ()
    first, _ = a_result(retry_of="r-000000").outcomes
    assert first.requeue == ()


def test_1_36_holds_unless_the_settings_name_another_release() -> None:
    assert live_settings(Settings()).module.release == "1.36"
    assert live_settings(Settings(module=ModuleSettings(ties="name"))).module.ties == "name"
    named = Settings(module=ModuleSettings(release="1.36"))
    assert live_settings(named) == named
    with pytest.raises(InputError, match=r"module\.release: '1\.13' is not '1\.36'"):
        live_settings(Settings(module=ModuleSettings(release="1.13")))
