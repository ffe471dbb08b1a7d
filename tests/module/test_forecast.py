"""NodeLoadForecastPriority against a scalar twin, and its boundaries one by one."""

import math
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.module.forecast import (
    ForecastLimits,
    ForecastNodes,
    LoadDelta,
    ServicePods,
    forecast_delta,
    given_delta,
    known_loads,
    load_delta,
)
from berth.module.loads import ForecastTable, LoadTable, Sample, ServiceName, Subject, time_us
from berth.plugins.node_load_forecast import load_forecast_score

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
LIMITS = ForecastLimits()
NODES = ("n1", "n2", "n3")
SERVICES = (ServiceName("shop", "web"), ServiceName("shop", "db"))
MINUTE_US = 60_000_000


def sample(
    subject: Subject, minute: float, cpu: float, memory: float = 0.0, issued: float | None = None
) -> Sample:
    """Make a row ``minute`` minutes from now; measured then, unless it was issued some other minute."""
    start = time_us(NOW)
    said = minute if issued is None else issued
    return Sample(subject, start + round(minute * MINUTE_US), start + round(said * MINUTE_US), cpu, memory)


def nodes(cpu: Sequence[int] = (1000,), memory: Sequence[int] = (1000,)) -> ForecastNodes:
    return ForecastNodes(NODES[: len(cpu)], np.array(cpu, dtype=np.int64), np.array(memory, dtype=np.int64))


def delta_of_n1(
    forecasts: Sequence[Sample], loads: Sequence[Sample], pods: Sequence[int] = ()
) -> float | None:
    """Compute ``delta`` of a node with 1000 milli cores and 1000 bytes, ``None`` where it is not known."""
    held = ServicePods(SERVICES[: len(pods)], np.array(pods, dtype=np.int64).reshape(-1, 1))
    got = forecast_delta(ForecastTable.of(forecasts), LoadTable.of(loads), nodes(), NOW, LIMITS, held)
    assert got.n_unknown == int(not got.known[0])
    return float(got.delta[0]) if got.known[0] else None


LOAD = [sample("n1", 0, 100, 100)]
HORIZON_END = 15


def test_delta_is_the_mean_over_cpu_and_memory() -> None:
    assert delta_of_n1([sample("n1", 5, 600, 350, issued=0)], LOAD) == 0.375


def test_the_forecast_is_the_mean_of_the_horizon() -> None:
    rows = [sample("n1", minute, cpu, 100, issued=0) for minute, cpu in ((5, 100), (10, 300), (20, 1000))]
    assert delta_of_n1(rows, LOAD) == 0.05


@pytest.mark.parametrize(
    ("minute", "counts"),
    [(0, False), (1e-6, True), (HORIZON_END, True), (HORIZON_END + 1e-6, False)],
)
def test_the_horizon_ends_late_and_starts_after_now(minute: float, counts: bool) -> None:
    assert (delta_of_n1([sample("n1", minute, 300, 100, issued=0)], LOAD) == 0.1) is counts


@pytest.mark.parametrize(("issued", "counts"), [(0, True), (1e-6, False), (-30, True), (-30 - 1e-6, False)])
def test_a_forecast_is_neither_too_old_nor_of_the_future(issued: float, counts: bool) -> None:
    got = delta_of_n1([sample("n1", 5, 300, 100, issued=issued)], LOAD)
    assert (got == 0.1) if counts else (got is None)


@pytest.mark.parametrize(("minute", "counts"), [(0, True), (1e-6, False), (-5, True), (-5 - 1e-6, False)])
def test_a_load_is_neither_too_old_nor_of_the_future(minute: float, counts: bool) -> None:
    got = delta_of_n1([sample("n1", 5, 300, 100, issued=0)], [sample("n1", minute, 100, 100)])
    assert (got == 0.1) if counts else (got is None)


def test_the_newest_issue_of_each_time_wins_and_of_equals_the_last_read() -> None:
    rows = [
        sample("n1", 5, 300, 100, issued=-1),
        sample("n1", 5, 900, 100, issued=-2),
        sample("n1", 10, 900, 100, issued=-2),
        sample("n1", 10, 500, 100, issued=-2),
    ]
    assert delta_of_n1(rows, LOAD) == 0.15


def test_the_newest_load_wins() -> None:
    loads = [sample("n1", -1, 200, 100), sample("n1", -2, 900, 100)]
    assert delta_of_n1([sample("n1", 5, 300, 100, issued=0)], loads) == 0.05


@pytest.mark.parametrize("broken", [math.nan, math.inf, -math.inf, -1.0, 2.0**63])
def test_unusable_values_count_as_none_and_are_counted(broken: float) -> None:
    table = ForecastTable.of(
        [sample("n1", 5, 300, broken, issued=0), sample(SERVICES[0], 5, broken, issued=0)]
    )
    assert table.n_unusable == 2
    assert LoadTable.of([sample("n1", 0, broken)]).n_unusable == 1
    assert delta_of_n1([sample("n1", 5, broken, 100, issued=0)], LOAD) is None
    # An older issue or measurement that can be used steps in.
    rows = [sample("n1", 5, broken, 100, issued=0), sample("n1", 5, 300, 100, issued=-9)]
    loads = [sample("n1", 0, 100, broken), sample("n1", -1, 100, 100)]
    assert delta_of_n1(rows, loads) == 0.1


def test_negative_zero_is_a_load() -> None:
    assert delta_of_n1([sample("n1", 5, -0.0, 100, issued=0)], LOAD) == -0.05


def test_a_resource_that_the_node_does_not_offer_counts_0() -> None:
    forecasts, loads = ForecastTable.of([sample("n1", 5, 500, 500, issued=0)]), LoadTable.of(LOAD)
    got = forecast_delta(forecasts, loads, nodes((0,), (1000,)), NOW, LIMITS)
    assert (got.delta.tolist(), got.known.tolist()) == ([0.2], [True])


def test_delta_is_clamped() -> None:
    assert delta_of_n1([sample("n1", 5, 9000, 9000, issued=0)], LOAD) == 1.0
    assert delta_of_n1([sample("n1", 5, 0, 0, issued=0)], [sample("n1", 0, 9000, 9000)]) == -1.0


def test_a_node_without_a_forecast_takes_the_sum_over_its_pods() -> None:
    per_pod = [sample(SERVICES[0], 5, 100, 50, issued=0), sample(SERVICES[1], 5, 200, 0, issued=0)]
    assert delta_of_n1(per_pod, LOAD, pods=(2, 1)) == 0.15
    assert delta_of_n1(per_pod, LOAD, pods=(0, 0)) is None
    assert delta_of_n1(per_pod[:1], LOAD, pods=(0, 3)) is None
    assert delta_of_n1(per_pod[:1], LOAD, pods=(1, 3)) == -0.025
    assert delta_of_n1([*per_pod, sample("n1", 5, 100, 100, issued=0)], LOAD, pods=(2, 1)) == 0.0


def test_a_node_whose_own_forecast_is_too_old_does_not_take_its_pods() -> None:
    rows = [sample(SERVICES[0], 5, 100, 50, issued=0), sample("n1", 5, 100, 50, issued=-31)]
    assert delta_of_n1(rows, LOAD, pods=(2,)) is None
    fresh = sample("n1", 10, 300, 100, issued=-1)
    assert delta_of_n1([*rows, fresh], LOAD, pods=(2,)) == 0.1


def test_nothing_at_all() -> None:
    empty = ForecastNodes((), np.zeros(0, np.int64), np.zeros(0, np.int64))
    got = forecast_delta(ForecastTable.of([]), LoadTable.of([]), empty, NOW, LIMITS)
    assert (got.delta.tolist(), got.n_unknown) == ([], 0)
    assert delta_of_n1([], []) is None
    # Rows of nodes that the cluster does not have.
    assert delta_of_n1([sample("gone", 5, 1, 1, issued=0)], [sample("gone", 0, 1, 1)]) is None


def test_given_deltas_are_clamped() -> None:
    got = given_delta({"n1": 1.11, "n2": -3.0, "n3": math.nan}, (*NODES, "n4"))
    assert got.delta.tolist() == [1.0, -1.0, 0.0, 0.0]
    assert got.known.tolist() == [True, True, False, False]


amount = st.sampled_from([0.0, 1.0, 0.1, 333.3, 1000.0, 1e12, math.nan, math.inf, -1.0]) | st.floats(0, 1e6)
offered = st.sampled_from([0, 1, 3, 1000, 7919, 2**40])
minute = st.sampled_from([-31.0, -30.0, -6.0, -5.0, -4.0, -1.0, 0.0, 1.0, 5.0, 10.0, 15.0, 16.0])
issue = st.sampled_from([-31.0, -30.0, -10.0, -1.0, 0.0, 1.0])
forecast_rows = st.lists(
    st.builds(sample, st.sampled_from((*NODES, *SERVICES, "gone")), minute, amount, amount, issue),
    max_size=30,
)
load_rows = st.lists(
    st.builds(sample, st.sampled_from((*NODES, "gone")), minute, amount, amount), max_size=15
)
pod_counts = st.lists(st.lists(st.integers(0, 3), min_size=3, max_size=3), min_size=2, max_size=2)
three = st.lists(offered, min_size=3, max_size=3)


@given(forecast_rows, load_rows, three, three, pod_counts)
def test_equals_the_scalar_rule(
    forecasts: list[Sample], loads: list[Sample], cpu: list[int], memory: list[int], counts: list[list[int]]
) -> None:
    pods = ServicePods(SERVICES, np.array(counts, dtype=np.int64))
    got = forecast_delta(
        ForecastTable.of(forecasts), LoadTable.of(loads), nodes(cpu, memory), NOW, LIMITS, pods
    )
    wanted = [
        scalar_delta(forecasts, loads, name, cpu[row], memory[row], [held[row] for held in counts])
        for row, name in enumerate(NODES)
    ]
    assert [
        value if known else None for value, known in zip(got.delta.tolist(), got.known.tolist(), strict=True)
    ] == wanted


@given(forecast_rows, load_rows, three, three, pod_counts, st.lists(st.integers(0, 2), max_size=4))
def test_some_rows_are_as_among_all(
    forecasts: list[Sample],
    loads: list[Sample],
    cpu: list[int],
    memory: list[int],
    counts: list[list[int]],
    some: list[int],
) -> None:
    known = known_loads(ForecastTable.of(forecasts), LoadTable.of(loads), NODES, NOW, LIMITS)
    pods, rows = ServicePods(SERVICES, np.array(counts, dtype=np.int64)), np.array(some, dtype=np.int64)
    everything = load_delta(known, nodes(cpu, memory), pods)
    got = load_delta(known.at(rows), nodes(cpu, memory).at(rows), pods.at(rows))
    assert got.delta.tolist() == everything.delta[rows].tolist()
    assert got.known.tolist() == everything.known[rows].tolist()


def scalar_delta(
    forecasts: list[Sample], loads: list[Sample], node: str, cpu: int, memory: int, counts: list[int]
) -> float | None:
    """Follow the rule for one node, row by row."""
    forecast = scalar_mean(forecasts, node)
    if forecast == "none":
        parts = [(count, scalar_mean(forecasts, name)) for name, count in zip(SERVICES, counts, strict=True)]
        held = [(count, *mean) for count, mean in parts if count and not isinstance(mean, str)]
        total_cpu = total_memory = 0.0
        for count, one_cpu, one_memory in held:
            total_cpu += count * one_cpu
            total_memory += count * one_memory
        forecast = (total_cpu, total_memory) if held else "none"
    current: Sample | None = None
    for row in loads:
        if row.subject == node and is_usable(row) and row.time_us <= time_us(NOW):
            current = row if current is None or row.time_us >= current.time_us else current
    if isinstance(forecast, str) or current is None:
        return None
    if current.time_us < time_us(NOW - LIMITS.max_load_age):
        return None
    change = (forecast[0] - current.milli_cpu) / cpu if cpu else 0.0
    change += (forecast[1] - current.memory_bytes) / memory if memory else 0.0
    return min(1.0, max(-1.0, change / 2))


def scalar_mean(rows: list[Sample], subject: Subject) -> tuple[float, float] | str:
    """Mean forecast of one subject, or ``none``, or ``stale``."""
    now = time_us(NOW)
    newest: dict[int, Sample] = {}
    for row in rows:
        ahead = now < row.time_us <= time_us(NOW + LIMITS.horizon)
        if row.subject == subject and is_usable(row) and ahead and row.issued_us <= now:
            other = newest.get(row.time_us)
            newest[row.time_us] = row if other is None or row.issued_us >= other.issued_us else other
    fresh = [
        newest[time] for time in sorted(newest) if newest[time].issued_us >= time_us(NOW - LIMITS.max_age)
    ]
    if not fresh:
        return "stale" if newest else "none"
    cpu = memory = 0.0
    for row in fresh:
        cpu += row.milli_cpu
        memory += row.memory_bytes
    return cpu / len(fresh), memory / len(fresh)


def is_usable(row: Sample) -> bool:
    return all(math.isfinite(value) and value >= 0 for value in row[3:])


@given(st.lists(st.floats(-1, 1)), st.sampled_from([10, 100]))
def test_scores_equal_the_scalar_rule(deltas: list[float], maximum: int) -> None:
    column = np.array(deltas, dtype=np.float64)
    half = maximum // 2
    added = load_forecast_score(column, maximum)
    removed = load_forecast_score(column, maximum, removing=True)
    assert added.tolist() == [math.floor(half - half * delta) for delta in deltas]
    assert removed.tolist() == [math.floor(half + half * delta) for delta in deltas]
    assert all(0 <= score <= maximum for score in [*added.tolist(), *removed.tolist()])


@pytest.mark.parametrize(
    ("delta", "maximum", "add", "remove"),
    [
        (0.0, 10, 5, 5),
        (1.0, 10, 0, 10),
        (-1.0, 10, 10, 0),
        (0.05, 10, 4, 5),
        (0.6, 10, 2, 8),
        (0.13, 100, 43, 56),
    ],
)
def test_scores_by_hand(delta: float, maximum: int, add: int, remove: int) -> None:
    column = np.array([delta])
    assert load_forecast_score(column, maximum).tolist() == [add]
    assert load_forecast_score(column, maximum, removing=True).tolist() == [remove]
    assert load_forecast_score(column, maximum).dtype == np.int64


def test_times_are_exact() -> None:
    zone_free = datetime(1970, 1, 1, 1, 0, 0, 1, tzinfo=UTC)
    assert time_us(zone_free) == 3_600_000_001
    assert time_us(datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)) == -1


def test_unknown_nodes_are_counted() -> None:
    assert LoadDelta(np.zeros(3), np.array([True, False, False])).n_unknown == 2


def test_a_now_without_zone_is_refused() -> None:
    with pytest.raises(TypeError, match="offset"):
        time_us(NOW.replace(tzinfo=None) + timedelta(0))
