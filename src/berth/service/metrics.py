"""What Prometheus is told."""

import math

import msgspec
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from berth.module.plan import Plan
from berth.store.interface import RoundResult, Store, StoreUnavailable

_plans = msgspec.json.Decoder(Plan)
_ROUND_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class Metrics:
    """The metrics of one service, in a registry of their own."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        self._queue = Gauge("berth_queue_length", "Requests that wait for a round.", registry=registry)
        self._rounds = Counter("berth_rounds", "Rounds that were finished.", registry=registry)
        self._seconds = Histogram(
            "berth_round_duration_seconds",
            "From a round's start until its result was on disk.",
            buckets=_ROUND_SECONDS,
            registry=registry,
        )
        self._decisions = Counter(
            "berth_decisions", "Single-pod decisions.", ["operation", "result"], registry=registry
        )
        self._requests = Counter(
            "berth_requests",
            "Requests by what became of them.",
            ["result"],
            registry=registry,
        )
        self._without_forecast = Gauge(
            "berth_nodes_without_forecast",
            "Nodes whose load counted as unchanging in the last round, for want of data.",
            registry=registry,
        )
        for operation in ("add", "remove"):
            for result in ("done", "failed"):
                self._decisions.labels(operation, result)
        for result in ("accepted", "repeated", "refused", "unavailable", "applied", "failed"):
            self._requests.labels(result)

    def count_request(self, result: str) -> None:
        """Count a request: accepted, repeated, refused or unavailable."""
        self._requests.labels(result).inc()

    def observe_round(self, result: RoundResult, seconds: float) -> None:
        """Take in a finished round."""
        self._rounds.inc()
        self._seconds.observe(seconds)
        for outcome in result.outcomes:
            self._requests.labels(outcome.state).inc()
            for decided in outcome.decisions:
                self._decisions.labels(decided.operation, "failed" if decided.reason else "done").inc()
        self._without_forecast.set(_plans.decode(result.plan).nodes_without_forecast)

    def text(self, store: Store) -> bytes:
        """Return all metrics in Prometheus' text format."""
        try:
            self._queue.set(store.waiting_count())
        except StoreUnavailable:
            self._queue.set(math.nan)
        return generate_latest(self.registry)
