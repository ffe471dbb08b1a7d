"""The demo's loads and forecasts are never stale, and always have something to say."""

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.sim.demo import demo_forecast, demo_load, demo_profiles, demo_snapshot, load_demo

Row = dict[str, Any]
HORIZON = timedelta(minutes=15)
NOW = datetime(2026, 3, 1, 9, 17, 42, tzinfo=UTC)
moments = st.datetimes(datetime(2024, 1, 1), datetime(2040, 1, 1), timezones=st.just(UTC))


def rows(text: bytes) -> list[Row]:
    listed: list[Row] = json.loads(text)
    return [
        row | {name: datetime.fromisoformat(row[name]) for name in ("time", "issued") if name in row}
        for row in listed
    ]


def allocatable() -> dict[str, tuple[float, float]]:
    """By node: cores and bytes."""
    items = json.loads(demo_snapshot())["items"]
    amounts = {i["metadata"]["name"]: i["status"]["allocatable"] for i in items if i["kind"] == "Node"}
    return {
        name: (int(a["cpu"].removesuffix("m")) / 1000, int(a["memory"].removesuffix("Ki")) * 1024)
        for name, a in amounts.items()
    }


def deltas(now: datetime) -> dict[str, float]:
    """How much each node's load is about to rise, as a share of what it offers."""
    offered = allocatable()
    forecast = [row for row in rows(demo_forecast(now)) if now < row["time"] <= now + HORIZON]
    found = {}
    for load in rows(demo_load(now)):
        ahead = [row for row in forecast if row["node"] == load["node"]]
        assert len(ahead) == 3
        cpu = sum(row["cpu"] for row in ahead) / 3 - load["cpu"]
        memory = sum(row["memory"] for row in ahead) / 3 - load["memory"]
        cores, size = offered[load["node"]]
        found[load["node"]] = (cpu / cores + memory / size) / 2
    return found


@given(moments)
def test_loads_and_forecasts_are_fresh(now: datetime) -> None:
    assert all(timedelta(0) <= now - row["time"] < timedelta(seconds=1) for row in rows(demo_load(now)))
    forecast = rows(demo_forecast(now))
    assert all(timedelta(0) <= now - row["issued"] <= timedelta(minutes=5) for row in forecast)
    assert max(row["time"] for row in forecast) >= now + timedelta(minutes=115)


@pytest.mark.parametrize("minutes", range(0, 180, 7))
def test_some_loads_are_about_to_rise_and_some_to_fall(minutes: int) -> None:
    found = deltas(NOW + timedelta(minutes=minutes)).values()
    # Far enough to change a node's score by two of ten.
    assert sum(abs(delta) > 0.2 for delta in found) >= 2
    assert sum(delta > 0.05 for delta in found) >= 10
    assert sum(delta < -0.05 for delta in found) >= 10


def test_loads_are_within_what_the_nodes_offer() -> None:
    offered = allocatable()
    for row in rows(demo_forecast(NOW)):
        cores, size = offered[row["node"]]
        assert 0 < row["cpu"] < cores
        assert 0 < row["memory"] < size


def test_the_lost_node_alone_has_no_load() -> None:
    measured = {row["node"] for row in rows(demo_load(NOW))}
    assert set(allocatable()) - measured == {"general-c-8"}
    assert {row["node"] for row in rows(demo_forecast(NOW))} == measured


def test_the_same_time_gives_the_same_bytes() -> None:
    elsewhere = NOW.astimezone(timezone(timedelta(hours=5)))
    assert load_demo(NOW) == load_demo(elsewhere)
    assert load_demo(NOW).forecast == demo_forecast(NOW + timedelta(seconds=90))
    assert demo_load(NOW) != demo_load(NOW + timedelta(minutes=1))


@pytest.mark.parametrize("ask", [load_demo, demo_load, demo_forecast])
def test_a_time_without_a_zone_is_refused(ask: Callable[[datetime], object]) -> None:
    with pytest.raises(ValueError, match="has no time zone"):
        ask(datetime(2026, 3, 1))


def test_profiles_are_of_services_that_exist() -> None:
    items = json.loads(demo_snapshot())["items"]
    services = {(i["metadata"]["namespace"], i["metadata"]["name"]) for i in items if i["kind"] == "Service"}
    profiles = json.loads(demo_profiles())
    assert len(profiles) == 8
    assert {(row["namespace"], row["service"]) for row in profiles} < services
    assert {row["intensity"] for row in profiles} == {"cpu", "memory"}
