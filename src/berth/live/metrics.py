"""What Prometheus is told of a live scheduler: kube-scheduler's names and buckets, and Berth's own.

Source: 1.36, ``pkg/scheduler/metrics/metrics.go``.
"""

from collections.abc import Iterable
from typing import Protocol

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

RESULTS = ("scheduled", "unschedulable", "error")


def _doubling(first: float, n: int) -> tuple[float, ...]:
    return tuple(first * 2**i for i in range(n))


GaugeValues = tuple[str, str, tuple[str, ...], dict[tuple[str, ...], float]]
"""Name, help, labels, and values by those of the labels."""


class Source(Protocol):
    """What is read when somebody asks."""

    def gauges(self) -> Iterable[GaugeValues]:
        """Yield what is as it is."""

    def incoming(self) -> Iterable[tuple[str, str, int]]:
        """Yield queue, event and how many pods came there by it."""


class Metrics:
    """The metrics of one scheduler, in a registry of their own."""

    def __init__(self, profiles: Iterable[str]) -> None:
        self.registry = registry = CollectorRegistry()
        attempts = Counter(
            "scheduler_schedule_attempts_total",
            "Number of attempts to schedule pods, by the result.",
            ["result", "profile"],
            registry=registry,
        )
        seconds = Histogram(
            "scheduler_scheduling_attempt_duration_seconds",
            "Scheduling attempt latency in seconds (deciding + binding).",
            ["result", "profile"],
            buckets=_doubling(0.001, 15),
            registry=registry,
        )
        points = Histogram(
            "scheduler_framework_extension_point_duration_seconds",
            "Latency of an extension point; of Filter (which stands for PreFilter to Score) for a batch of pods.",
            ["extension_point", "status", "profile"],
            buckets=_doubling(0.0001, 12),
            registry=registry,
        )
        self._sli = Histogram(
            "scheduler_pod_scheduling_sli_duration_seconds",
            "From when a pod could first be tried to its binding, over all attempts.",
            ["attempts"],
            buckets=_doubling(0.01, 20),
            registry=registry,
        )
        self._n_attempts = Histogram(
            "scheduler_pod_scheduling_attempts",
            "Number of attempts to successfully schedule a pod.",
            buckets=_doubling(1, 5),
            registry=registry,
        )
        self.preemption_attempts = Counter(
            "scheduler_preemption_attempts_total", "Preemption attempts.", registry=registry
        )
        self.preemption_victims = Histogram(
            "scheduler_preemption_victims",
            "Number of selected preemption victims.",
            buckets=_doubling(1, 7),
            registry=registry,
        )
        self.events_dropped = Counter(
            "berth_events_dropped", "Events that were not written.", registry=registry
        )
        names = tuple(profiles)
        keys = [(result, name) for result in RESULTS for name in names]
        self._attempts = {key: attempts.labels(*key) for key in keys}
        self._seconds = {key: seconds.labels(*key) for key in keys}
        self._binding = {name: points.labels("Bind", "Success", name) for name in names}
        self._deciding = {name: points.labels("Filter", "Success", name) for name in names}
        self._sli_of = [self._sli.labels(str(n)) for n in range(1, 16)]

    def read(self, source: Source) -> None:
        """Read a source from now on."""
        self.registry.register(_Read(source))

    def attempted(self, result: str, profile: str, seconds: float) -> None:
        """Count an attempt."""
        self._attempts[result, profile].inc()
        self._seconds[result, profile].observe(seconds)

    def bound(self, attempts: int, since_first: float) -> None:
        """Count a pod that was bound, after so many attempts and seconds."""
        self._n_attempts.observe(attempts)
        self._sli_of[min(attempts, len(self._sli_of)) - 1].observe(since_first)

    def decided(self, profile: str, seconds: float) -> None:
        """Note how long a batch took to decide."""
        self._deciding[profile].observe(seconds)

    def posted(self, profile: str, seconds: float) -> None:
        """Note how long a binding took."""
        self._binding[profile].observe(seconds)

    def text(self) -> bytes:
        """Return all metrics in Prometheus' text format."""
        return generate_latest(self.registry)


class _Read(Collector):
    def __init__(self, source: Source) -> None:
        self._source = source

    def collect(self) -> Iterable[Metric]:
        for name, words, labels, values in self._source.gauges():
            gauge = GaugeMetricFamily(name, words, labels=labels)
            for key, value in values.items():
                gauge.add_metric(key, value)
            yield gauge
        counter = CounterMetricFamily(
            "scheduler_queue_incoming_pods",
            "Number of pods added to scheduling queues by event and queue type.",
            labels=["queue", "event"],
        )
        for queue, event, count in self._source.incoming():
            counter.add_metric([queue, event], count)
        yield counter

    def describe(self) -> Iterable[Metric]:
        return ()
