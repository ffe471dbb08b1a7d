"""What is as it is when Prometheus asks: the queue, the cluster, what is under way."""

from collections.abc import Iterable, Mapping

from berth.live.binder import Binder
from berth.live.live_cluster import LiveCluster
from berth.live.metrics import GaugeValues
from berth.live.recorder import Recorder
from berth.scheduling.queueing import SchedulingQueue


class Gauges:
    """Reads the parts of a live scheduler; a `berth.live.metrics.Source`."""

    def __init__(self, queue: SchedulingQueue, live: LiveCluster, binder: Binder, recorder: Recorder) -> None:
        self._queue = queue
        self._live = live
        self._binder = binder
        self._recorder = recorder

    def gauges(self) -> Iterable[GaugeValues]:
        """Yield what is as it is."""
        yield from self._by_one_label()
        rejectors: dict[tuple[str, ...], float] = {key: float(n) for key, n in self._queue.rejectors.items()}
        labels = ("plugin", "profile")
        yield "scheduler_unschedulable_pods", "Pods that wait, by who turned them away.", labels, rejectors
        binder = self._binder
        for name, words, value in (
            ("berth_binds_in_flight", "Bindings under way.", binder.n_under_way),
            ("berth_binds_waiting", "Pods that are decided and wait to be bound.", binder.n_waiting),
            ("berth_binds_preparing", "Pods that are made ready to be bound.", binder.n_preparing),
            ("berth_events_waiting", "Events that wait to be written.", self._recorder.n_waiting),
        ):
            yield name, words, (), {(): float(value)}

    def incoming(self) -> Iterable[tuple[str, str, int]]:
        """Yield queue, event and how many pods came there by it."""
        for (queue, event), count in self._queue.incoming.items():
            yield queue, event, count

    def _by_one_label(self) -> Iterable[GaugeValues]:
        cluster, reflectors = self._live.cluster, self._live.reflectors
        sizes = {
            "nodes": len(cluster.nodes),
            "pods": len(cluster.pods),
            "assumed_pods": self._live.state.n_assumed,
        }
        lists = {kind: reflector.n_lists for kind, reflector in reflectors.items()}
        trouble = {kind: int(bool(reflector.trouble)) for kind, reflector in reflectors.items()}
        told: tuple[tuple[str, str, str, Mapping[str, int]], ...] = (
            ("scheduler_pending_pods", "Number of pending pods, by the queue.", "queue", self._queue.pending),
            ("scheduler_cache_size", "Number of nodes, pods, and assumed (bound) pods.", "type", sizes),
            ("berth_reflector_lists", "How often all of a kind was listed.", "kind", lists),
            ("berth_reflector_trouble", "Whether a kind can't be followed at present.", "kind", trouble),
        )
        for name, words, label, values in told:
            yield name, words, (label,), {(key,): float(value) for key, value in values.items()}
