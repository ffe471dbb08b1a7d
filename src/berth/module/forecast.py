"""How much a node's load is about to change, for NodeLoadForecastPriority.

All arithmetic is float64, one operation after another in the order written here and without fused
multiply-add, so that a scalar or compiled twin gives the same bits:

- a mean adds its rows one by one by rising time, then divides once by their number;
- the sum over a node's pods adds ``pods * mean`` one by one in the order of the services given;
- delta is ``(cpu change / allocatable cpu + memory change / allocatable memory) / 2``, then clamped.

What it scores is the plugin's affair (`berth.plugins.node_load_forecast`).

Knows nothing of files, and of the clock only the ``now`` that it is given.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import numpy as np

from berth.module.loads import (
    FloatColumn,
    ForecastTable,
    IntColumn,
    LoadTable,
    Mask,
    Samples,
    ServiceName,
    Subject,
    time_us,
)


@dataclass(frozen=True, slots=True)
class ForecastLimits:
    """How far ahead to look, and how old what is known may be."""

    horizon: timedelta = timedelta(minutes=15)
    max_age: timedelta = timedelta(minutes=30)
    max_load_age: timedelta = timedelta(minutes=5)


@dataclass(frozen=True, slots=True, eq=False)
class ForecastNodes:
    """The nodes in question, one a row.

    Attributes
    ----------
    names
        In the order of the rows.
    allocatable_milli_cpu, allocatable_memory_bytes : int64[n_nodes]
        What they offer; a resource of which a node offers none changes nothing.
    """

    names: Sequence[str]
    allocatable_milli_cpu: IntColumn
    allocatable_memory_bytes: IntColumn

    def at(self, rows: IntColumn) -> "ForecastNodes":
        """Only these rows."""
        names = [self.names[row] for row in rows.tolist()]
        return ForecastNodes(names, self.allocatable_milli_cpu[rows], self.allocatable_memory_bytes[rows])


@dataclass(frozen=True, slots=True, eq=False)
class ServicePods:
    """How many pods of each service each node holds.

    Attributes
    ----------
    services
        In the order of the matrix' rows.
    pods_of_service : int64[n_services, n_nodes]
        A pod that two services select counts in both.
    """

    services: Sequence[ServiceName]
    pods_of_service: IntColumn

    def at(self, rows: IntColumn) -> "ServicePods":
        """Only these nodes."""
        return ServicePods(self.services, self.pods_of_service[:, rows])


@dataclass(frozen=True, slots=True, eq=False)
class Loads:
    """A load for each of some subjects, nodes or services.

    Attributes
    ----------
    milli_cpu, memory_bytes : float64[n]
        0 where it is not known.
    known : bool[n]
        There is a value, and it is not too old.
    stale : bool[n]
        There is a value, but it is too old.
    """

    milli_cpu: FloatColumn
    memory_bytes: FloatColumn
    known: Mask
    stale: Mask

    def at(self, rows: IntColumn) -> "Loads":
        """Only these subjects."""
        return Loads(self.milli_cpu[rows], self.memory_bytes[rows], self.known[rows], self.stale[rows])


@dataclass(frozen=True, slots=True, eq=False)
class KnownLoads:
    """What is known of the load at one moment; holds for a whole round.

    ``service_pod_forecast`` has a row for each of ``services``, of one pod each.
    """

    forecast: Loads
    current: Loads
    services: Mapping[Subject, int]
    service_pod_forecast: Loads

    def at(self, rows: IntColumn) -> "KnownLoads":
        """Only these nodes, and all services."""
        return replace(self, forecast=self.forecast.at(rows), current=self.current.at(rows))


@dataclass(frozen=True, slots=True, eq=False)
class LoadDelta:
    """How much of each node is about to be used more (positive) or less.

    Attributes
    ----------
    delta : float64[n_nodes]
        From -1 to 1, 0 where it is not known. [share of what the node offers]
    known : bool[n_nodes]
        Whether there was a forecast and a current load.
    """

    delta: FloatColumn
    known: Mask

    @property
    def n_unknown(self) -> int:
        """How many nodes count as unchanging for want of data."""
        return int(np.count_nonzero(~self.known))


def forecast_delta(
    forecasts: ForecastTable,
    loads: LoadTable,
    nodes: ForecastNodes,
    now: datetime,
    limits: ForecastLimits,
    pods: ServicePods | None = None,
) -> LoadDelta:
    """Each node's ``delta``, from everything at once: ``known_loads``, then ``load_delta``."""
    return load_delta(known_loads(forecasts, loads, nodes.names, now, limits), nodes, pods)


def known_loads(
    forecasts: ForecastTable,
    loads: LoadTable,
    node_names: Sequence[str],
    now: datetime,
    limits: ForecastLimits,
) -> KnownLoads:
    """What the tables say at ``now``, a time with a zone, about these nodes and about all services."""
    rows: dict[Subject, int] = {name: row for row, name in enumerate(node_names)}
    services = {name: row for row, name in enumerate(forecasts.of_service_pods.subjects)}
    return KnownLoads(
        forecast=mean_forecast(forecasts.of_nodes, rows, now, limits),
        current=newest_load(loads.of_nodes, rows, now, limits),
        services=services,
        service_pod_forecast=mean_forecast(forecasts.of_service_pods, services, now, limits),
    )


def mean_forecast(
    samples: Samples,
    row_of: Mapping[Subject, int],
    now: datetime,
    limits: ForecastLimits,
) -> Loads:
    """The mean of each subject's forecasts for ``now < time <= now + horizon``.

    Rows that are not usable or were issued after ``now`` are as if they weren't there. For each
    time the row that was issued last counts, of equals the one read last; it is stale when it was
    issued more than ``max_age`` before ``now``. Where fresh and stale rows meet, the fresh ones
    alone make the mean.
    """
    start, end = time_us(now), time_us(now + limits.horizon)
    row = _rows_of(samples, row_of)
    counts = samples.usable & (row >= 0)
    counts &= (samples.time_us > start) & (samples.time_us <= end) & (samples.issued_us <= start)
    chosen = _last_of_each(counts, samples.issued_us, samples.time_us, row)
    is_fresh = samples.issued_us[chosen] >= time_us(now - limits.max_age)
    fresh, n = chosen[is_fresh], len(row_of)
    n_fresh = np.bincount(row[fresh], minlength=n)
    divisor = np.maximum(n_fresh, 1)
    stale = np.bincount(row[chosen[~is_fresh]], minlength=n) > 0
    return Loads(
        # bincount adds in the order of the rows, and these stand by rising time.
        milli_cpu=np.bincount(row[fresh], weights=samples.milli_cpu[fresh], minlength=n) / divisor,
        memory_bytes=np.bincount(row[fresh], weights=samples.memory_bytes[fresh], minlength=n) / divisor,
        known=n_fresh > 0,
        stale=stale & (n_fresh == 0),
    )


def newest_load(
    samples: Samples, row_of: Mapping[Subject, int], now: datetime, limits: ForecastLimits
) -> Loads:
    """Each node's last measurement not after ``now``; stale when older than ``max_load_age``."""
    row = _rows_of(samples, row_of)
    counts = samples.usable & (row >= 0) & (samples.time_us <= time_us(now))
    chosen = _last_of_each(counts, samples.time_us, row)
    is_fresh = samples.time_us[chosen] >= time_us(now - limits.max_load_age)
    fresh, n = chosen[is_fresh], len(row_of)
    milli_cpu, memory_bytes = np.zeros(n), np.zeros(n)
    known, stale = np.zeros(n, dtype=np.bool_), np.zeros(n, dtype=np.bool_)
    milli_cpu[row[fresh]] = samples.milli_cpu[fresh]
    memory_bytes[row[fresh]] = samples.memory_bytes[fresh]
    known[row[fresh]] = True
    stale[row[chosen[~is_fresh]]] = True
    return Loads(milli_cpu, memory_bytes, known, stale)


def load_delta(loads: KnownLoads, nodes: ForecastNodes, pods: ServicePods | None = None) -> LoadDelta:
    """Each node's ``delta`` with the pods that it holds now.

    A node's answer hangs on its own row alone: after a decision only the touched rows need it again,
    ``load_delta(loads.at(rows), nodes.at(rows), pods.at(rows))``.
    A node whose own forecast is stale is not known: only one that has no forecast of its own takes
    the sum over its pods.
    """
    forecast, current = loads.forecast, loads.current
    if pods is not None:
        forecast = _or_sum_over_pods(forecast, loads, pods)
    known = forecast.known & current.known
    change = _share(forecast.milli_cpu - current.milli_cpu, nodes.allocatable_milli_cpu)
    change += _share(forecast.memory_bytes - current.memory_bytes, nodes.allocatable_memory_bytes)
    delta = np.where(known, np.clip(change / 2.0, -1.0, 1.0), 0.0)
    return LoadDelta(delta, known)


def given_delta(deltas: Mapping[str, float], node_names: Sequence[str]) -> LoadDelta:
    """The same where ``delta`` is given as such: clamped; absent and NaN are not known."""
    given = np.array([deltas.get(name, np.nan) for name in node_names], dtype=np.float64)
    known = ~np.isnan(given)
    return LoadDelta(np.where(known, np.clip(given, -1.0, 1.0), 0.0), known)


def _rows_of(samples: Samples, row_of: Mapping[Subject, int]) -> IntColumn:
    """Each sample's row among the subjects asked about, -1 for others."""
    row_of_id = np.array([row_of.get(subject, -1) for subject in samples.subjects], dtype=np.int64)
    return row_of_id[samples.subject_id]


def _last_of_each(counts: Mask, *keys: IntColumn) -> IntColumn:
    """Of the rows that count the last by the first key, for each group of the other keys, in their order.

    Of equal rows the one read last is taken: ``lexsort`` is stable.
    """
    rows = np.flatnonzero(counts)
    order = rows[np.lexsort([key[rows] for key in keys])]
    ends_group = np.ones(len(order), dtype=np.bool_)
    ends_group[:-1] = np.any([key[order][1:] != key[order][:-1] for key in keys[1:]], axis=0)
    return order[ends_group]


def _or_sum_over_pods(forecast: Loads, loads: KnownLoads, pods: ServicePods) -> Loads:
    """The forecasts; where a node has none of its own, the sum over its pods, if there are any."""
    per_pod = loads.service_pod_forecast
    milli_cpu, memory_bytes = np.zeros_like(forecast.milli_cpu), np.zeros_like(forecast.memory_bytes)
    has_any = np.zeros_like(forecast.known)
    for service, n_pods in zip(pods.services, pods.pods_of_service, strict=True):
        row = loads.services.get(service, -1)
        if row >= 0 and per_pod.known[row]:
            milli_cpu += n_pods * per_pod.milli_cpu[row]
            memory_bytes += n_pods * per_pod.memory_bytes[row]
            has_any |= n_pods > 0
    takes_sum = has_any & ~forecast.known & ~forecast.stale
    return Loads(
        milli_cpu=np.where(takes_sum, milli_cpu, forecast.milli_cpu),
        memory_bytes=np.where(takes_sum, memory_bytes, forecast.memory_bytes),
        known=forecast.known | takes_sum,
        stale=forecast.stale,
    )


def _share(change: FloatColumn, allocatable: IntColumn) -> FloatColumn:
    """The change over what the node offers, 0 where it offers nothing."""
    return np.divide(change, allocatable, out=np.zeros_like(change), where=allocatable > 0)
