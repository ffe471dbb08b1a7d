"""The live scheduler: pods from the queue, decided in their order, bound by the dozen.

Decisions are made on the event loop's thread, a batch at a time, so that the cluster stands still meanwhile; all that waits
for the API server is done beside it. Source: 1.36, ``schedule_one.go`` and ``scheduler.go``.
"""

import asyncio
import logging
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from berth.cluster.arrays import NONE
from berth.cluster.cluster import Cluster, Incoming
from berth.framework.changes import Hint, Wakes, helps_always, pod_changes
from berth.framework.profile import Profile
from berth.live.binder import Binder, BinderLimits, Binding
from berth.live.client import ApiClient
from berth.live.gauges import Gauges
from berth.live.intake import Intake
from berth.live.live_cluster import LiveCluster
from berth.live.metrics import Metrics
from berth.live.preempting import Eviction, Preemptor
from berth.live.preparing import Preparation
from berth.live.recorder import Recorder, Reference
from berth.live.reservations import HOLD, NoReservations, Reservations
from berth.live.resources import RESOURCES
from berth.live.statuses import Status, StatusWriter
from berth.scheduling.preemption import Preemption
from berth.scheduling.queueing import Backoff, Hints, QueuedPod, SchedulingGates, SchedulingQueue
from berth.scheduling.ties import TieBreaker
from berth.scheduling.turns import Placed, Turned, Turns, scheduler_of

log = logging.getLogger(__name__)

HELD = "Reservation"
"""What turns away a pod that is held by reservations."""


@dataclass(frozen=True, slots=True)
class SchedulerLimits:
    """How much at once.

    Attributes
    ----------
    batch : int
        Pods that are decided before the event loop breathes.
    ahead : int
        No more pods are decided while so many wait for a request to be free.
    """

    batch: int = 500
    ahead: int = 128
    binder: BinderLimits = field(default_factory=BinderLimits)


class _Held:
    """Pods that are held wait for nothing but to be released."""

    name: ClassVar[str] = HELD
    wakes_on: ClassVar[Wakes] = {}

    def holds(self, pod: Incoming) -> bool:
        return False

    def hint(self, pod: Incoming, cluster: Cluster) -> Hint:
        return helps_always


class LiveScheduler:
    """Schedules the pods of certain scheduler names on a cluster that is followed.

    Parameters
    ----------
    profiles : dict of scheduler name to Profile
    preparations : sequence of Preparation
        What has to be done before a pod is bound.

    Attributes
    ----------
    queue : SchedulingQueue
    metrics : Metrics
    """

    def __init__(
        self,
        client: ApiClient,
        live: LiveCluster,
        profiles: Mapping[str, Profile],
        *,
        reservations: Reservations | None = None,
        preparations: Sequence[Preparation] = (),
        backoff: Backoff | None = None,
        ties: TieBreaker | None = None,
        limits: SchedulerLimits | None = None,
    ) -> None:
        self._live = live
        self._cluster = live.cluster
        self._limits = limits or SchedulerLimits()
        self._reservations = reservations or NoReservations()
        hints = Hints(live.cluster, profiles, (SchedulingGates(), _Held()))
        self.queue = SchedulingQueue(hints, backoff)
        self._preparations = preparations
        self._turns = Turns(live.cluster, profiles, self.queue.nominator, ties, self._is_prepared)
        self.metrics = Metrics(profiles)
        self._intake = Intake(live.cluster, self.queue, profiles, time.monotonic)
        self._intake.on_arrival = self._wake
        self._recorder = Recorder(client, on_dropped=self.metrics.events_dropped.inc)
        self._statuses = StatusWriter(client, self._intake.waiting)
        self._preemptor = Preemptor(client, self._recorder, self._retry)
        self._binder = Binder(
            client,
            live.state,
            on_bound=self._bound,
            on_failed=self._not_bound,
            on_gone=self._gone,
            preparations=preparations,
            limits=self._limits.binder,
        )
        self.metrics.read(Gauges(self.queue, live, self._binder, self._recorder))
        self._awake = asyncio.Event()
        self._decided: dict[str, Binding] = {}
        # In the order in which they end: each may have work for those after it.
        self._helpers = (self._binder, self._preemptor, self._statuses, self._recorder)
        for kind in RESOURCES:
            live.subscribe(kind, self._intake.take)

    async def run(self) -> None:
        """Schedule until cancelled; the cluster has to be followed from before."""
        self._binder.start()
        self._recorder.start()
        self._statuses.start()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._tend(), name="queue")
            tasks.create_task(self._schedule(), name="scheduler")
            tasks.create_task(self._confirm(), name="confirmation")

    async def finish(self, grace_s: float) -> bool:
        """After `run` was cancelled: wait for what is under way, and end; False if something had to be cut off."""
        deadline = time.monotonic() + grace_s
        is_done = True
        for helper in self._helpers:
            is_done &= await helper.drain(max(0.0, deadline - time.monotonic()))
        for helper in self._helpers:
            await helper.stop()
        return is_done

    def release(self, uids: Iterable[str]) -> None:
        """Let pods be tried at once that reservations have held."""
        now = time.monotonic()
        for uid in uids:
            self.queue.activate(uid, now)
        self._wake()

    # -- the loop ----------------------------------------------------------------------------------------------------

    def _wake(self) -> None:
        self._awake.set()

    async def _schedule(self) -> None:
        while True:
            if self._binder.n_waiting < self._limits.ahead:
                began = time.monotonic()
                batch = self.queue.pop_batch(self._limits.batch, began)
                if batch:
                    self._decide(batch, began)
                    await asyncio.sleep(0)
                    continue
            self._awake.clear()
            await self._awake.wait()

    async def _tend(self) -> None:
        """Do what has to be done now and then."""
        ticks = 0
        while True:
            await asyncio.sleep(1.0)
            ticks += 1
            self.queue.flush_backoff(time.monotonic())
            if ticks % 30 == 0:
                self.queue.flush_unschedulable(time.monotonic())
            self._wake()

    async def _confirm(self) -> None:
        while True:
            await asyncio.sleep(10.0)
            await self._binder.confirm()

    # -- decisions ---------------------------------------------------------------------------------------------------

    def _decide(self, batch: Sequence[QueuedPod], began: float) -> None:
        free = [queued for queued in batch if not self._claim(queued, began)]
        if not free:
            return
        for turn in self._turns.decide(free):
            for placed in turn.placed:
                self._place(placed, began)
            for turned in turn.turned:
                self._turn_away(turned, began)
        self.metrics.decided(scheduler_of(free[0].pod), time.monotonic() - began)

    def _claim(self, queued: QueuedPod, began: float) -> bool:
        """Ask whether a node is reserved for a pod; True if the pod is dealt with."""
        claim = self._reservations.claim(queued.pod)
        if claim is None:
            return False
        if claim is HOLD:
            self.queue.unschedulable(queued.uid, (HELD,), began)
            return True
        row = self._cluster.nodes.row(claim)
        if row == NONE:
            self._reservations.settled(queued.uid, is_bound=False)
            return False
        self._place(self._turns.place(queued, row), began, is_claimed=True)
        return True

    def _place(self, placed: Placed, began: float, *, is_claimed: bool = False) -> None:
        queued = placed.queued
        self._live.state.expect(queued.uid, placed.assumed)
        self.queue.nominator.remove(queued.uid)
        binding = Binding(queued, self._cluster.nodes.names[placed.row], began, is_claimed)
        for preparation in self._preparations:
            if preparation.concerns(queued.pod):
                preparation.reserve(queued.pod, binding.node_name)
        self._decided[queued.uid] = binding
        self._binder.put(binding)

    def _turn_away(self, turned: Turned, began: float) -> None:
        now, queued = time.monotonic(), turned.queued
        pod = queued.pod
        if turned.preemption is not None and turned.nominated_node:
            self._preempt(pod, turned.preemption, turned.nominated_node, now)
        elif not turned.is_error:
            self.metrics.preemption_attempts.inc()
        result = "error" if turned.is_error else "unschedulable"
        self.metrics.attempted(result, scheduler_of(pod), now - began)
        reason = "SchedulerError" if turned.is_error else "Unschedulable"
        self._tell(pod, reason, turned.message, turned.nominated_node)
        self.queue.unschedulable(queued.uid, turned.rejected_by, now, turned.nominated_node)

    def _preempt(self, pod: Incoming, preemption: Preemption, node_name: str, now: float) -> None:
        self.metrics.preemption_attempts.inc()
        self.metrics.preemption_victims.observe(len(preemption.victims))
        for other in preemption.cleared:
            self.queue.nominator.put(other.pod, "")
            self._statuses.put(other.pod, Status("", "", ""))
            self.queue.activate(other.pod.uid, now)
        terminating = self._cluster.pods.column("terminating")
        victims = tuple(self._reference(victim) for victim in preemption.victims if not terminating[victim])
        self._preemptor.put(Eviction(pod, node_name, victims))

    def _reference(self, pod: int) -> Reference:
        """Return which pod of the API server's a pod of the cluster is, be it one that is only assumed there."""
        values = self._cluster.pods.get(pod)
        if values.name:
            return Reference(self._cluster.namespaces.items[values.namespace_id], values.name, values.uid)
        state = self._live.state
        binding = next(each for uid, each in self._decided.items() if state.assumed_of(uid) == pod)
        return Reference.of(binding.queued.pod)

    def _retry(self, uid: str) -> None:
        self.queue.activate(uid, time.monotonic())
        self._wake()

    def _is_prepared(self, pod: Incoming) -> bool:
        return any(preparation.concerns(pod) for preparation in self._preparations)

    # -- outcomes ----------------------------------------------------------------------------------------------------

    def _bound(self, binding: Binding, seconds: float) -> None:
        queued, now = binding.queued, time.monotonic()
        pod = queued.pod
        self._leave(binding, is_bound=True)
        self.queue.done(queued.uid)
        self._recorder.scheduled(pod, binding.node_name)
        profile = scheduler_of(pod)
        self.metrics.attempted("scheduled", profile, now - binding.began)
        self.metrics.posted(profile, seconds)
        first = queued.initial_attempt
        self.metrics.bound(queued.attempts, now - (binding.began if first is None else first))

    def _not_bound(self, binding: Binding, why: str) -> None:
        queued, now = binding.queued, time.monotonic()
        self._leave(binding, is_bound=False)
        if self.queue.get(queued.uid) is None:
            return
        log.warning("pod %s/%s is not bound: %s", queued.pod.namespace, queued.pod.name, why)
        self._free(queued.pod, now)
        self.metrics.attempted("error", scheduler_of(queued.pod), now - binding.began)
        self._tell(queued.pod, "SchedulerError", why, "")
        self.queue.error(queued.uid, now, "")

    def _gone(self, binding: Binding) -> None:
        self._leave(binding, is_bound=False)
        self.queue.done(binding.uid)
        self._free(binding.queued.pod, time.monotonic())

    def _leave(self, binding: Binding, *, is_bound: bool) -> None:
        self._decided.pop(binding.uid, None)
        self._statuses.forget(binding.uid)
        for preparation in self._preparations:
            (preparation.settle if is_bound else preparation.unreserve)(binding.queued.pod)
        if binding.is_claimed:
            self._reservations.settled(binding.uid, is_bound=is_bound)
        if self._binder.n_waiting < self._limits.ahead:
            self._wake()

    def _free(self, pod: Incoming, now: float) -> None:
        """A pod that was assumed on a node is there no longer."""
        for change in pod_changes(pod, None):
            self.queue.change(change, now)
        self._wake()

    def _tell(self, pod: Incoming, reason: str, message: str, nominated_node: str | None) -> None:
        self._recorder.failed(pod, message)
        self._statuses.put(pod, Status(reason, message, nominated_node))
