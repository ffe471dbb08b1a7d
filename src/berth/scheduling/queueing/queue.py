"""The queue: active, backing off, unschedulable, gated, in flight; every pod is in one of these places.

Source: 1.36, ``backend/queue/scheduling_queue.go`` and ``active_queue.go``; ``eventhandlers.go`` for pods that lose the node
that they were nominated for.
"""

from collections import Counter
from collections.abc import Iterable

from berth.cluster.cluster import Incoming
from berth.framework.changes import Action, AssignedPodChange, Change, Resource, label, own_changes
from berth.scheduling.queueing.backoff import Backoff
from berth.scheduling.queueing.heap import PodHeap
from berth.scheduling.queueing.hints import DEFAULT_SCHEDULER, Hints
from berth.scheduling.queueing.in_flight import InFlight
from berth.scheduling.queueing.nominator import Nominator
from berth.scheduling.queueing.pod import Place, QueuedPod
from berth.scheduling.queueing.waiting import Waiting

POD_ADD = label((Resource.UNSCHEDULED_POD, Action.ADD))
POD_UPDATE = label((Resource.UNSCHEDULED_POD, Action.UPDATE))
ATTEMPT_FAILURE = "ScheduleAttemptFailure"
BACKOFF_COMPLETE = "BackoffComplete"
POP_FROM_BACKOFF = "PopFromBackoffQ"
FORCE_ACTIVATE = "ForceActivate"
TIMEOUT = "UnschedulableTimeout"
MAX_UNSCHEDULABLE = 300.0
"""After so long a pod is tried again though nothing has happened. [s]"""


class SchedulingQueue:
    """Pods that wait to be decided. Times are seconds of one clock, which never goes back.

    Parameters
    ----------
    max_unschedulable : float
        How long a pod waits for a change that may help. [s]

    Attributes
    ----------
    nominator : Nominator
        The pods for which room was made; a pod that is assumed to be on its node is to be removed there.
    incoming : Counter of (queue, event)
        How many pods came where and why: ``scheduler_queue_incoming_pods_total``.
    """

    def __init__(
        self, hints: Hints, backoff: Backoff | None = None, max_unschedulable: float = MAX_UNSCHEDULABLE
    ) -> None:
        self._hints = hints
        self._backoff = backoff or Backoff()
        self._max_unschedulable = max_unschedulable
        self._pods: dict[str, QueuedPod] = {}
        self._waiting = Waiting(hints)
        self._heaps = {
            Place.ACTIVE: PodHeap(lambda queued: queued.order),
            Place.BACKOFF: PodHeap(self._backoff.order),
            Place.ERROR_BACKOFF: PodHeap(self._backoff.order),
        }
        self._in_flight = InFlight()
        self._n_tickets = 0
        self.nominator = Nominator()
        self.incoming: Counter[tuple[str, str]] = Counter()

    def __len__(self) -> int:
        return len(self._pods)

    @property
    def pending(self) -> dict[str, int]:
        """How many pods are in which queue: ``scheduler_pending_pods``; those in flight are in none."""
        return {
            "active": len(self._heaps[Place.ACTIVE]),
            "backoff": len(self._heaps[Place.BACKOFF]) + len(self._heaps[Place.ERROR_BACKOFF]),
            "unschedulable": len(self._waiting) - self._waiting.n_gated,
            "gated": self._waiting.n_gated,
        }

    @property
    def rejectors(self) -> Counter[tuple[str, str]]:
        """How many pods wait for which filter or gate, by scheduler's name: ``scheduler_unschedulable_pods``."""
        return Counter(
            (name, queued.pod.info.spec.scheduler_name or DEFAULT_SCHEDULER)
            for queued in self._waiting.pods()
            for name in queued.rejected_by
        )

    @property
    def n_in_flight(self) -> int:
        """How many pods are being decided or bound."""
        return len(self._in_flight)

    @property
    def n_unseen_changes(self) -> int:
        """How many changes are kept for the pods in flight: ``scheduler_inflight_events`` without the pods."""
        return self._in_flight.n_changes

    def get(self, uid: str) -> QueuedPod | None:
        """Return a pod of the queue, be it in flight."""
        return self._pods.get(uid)

    # -- pods that come, change and go -------------------------------------------------------------------------------

    def add(self, pod: Incoming, now: float, nominated_node: str = "") -> None:
        """A pod came that has no node; ``nominated_node`` is what its status says."""
        if pod.uid in self._pods:
            self.update(pod, now, nominated_node)
        else:
            self._enter(pod, now, nominated_node, POD_ADD)

    def update(self, pod: Incoming, now: float, nominated_node: str = "") -> None:
        """A pod without a node was updated; one that is not known is new."""
        queued = self._pods.get(pod.uid)
        if queued is None:
            self._enter(pod, now, nominated_node, POD_UPDATE)
            return
        flight = self._in_flight.get(pod.uid)
        old, before = (flight and flight.updated) or queued.pod, queued.nominated_node
        queued.nominated_node = nominated_node
        if flight is not None:
            flight.updated = pod
            flight.own += own_changes(old, pod)
        else:
            self.nominator.update(pod, before, nominated_node)
            self._replace(queued, pod, now)
        if before not in ("", nominated_node):
            self.change(_gone_from_its_nomination(old), now)

    def delete(self, uid: str, now: float, *, is_bound: bool = False) -> None:
        """A pod is gone, or has a node by somebody else's hand; if it is being decided, the outcome is of no account."""
        self.nominator.remove(uid)
        queued = self._pods.get(uid)
        if queued is None:
            return
        self._forget(queued)
        if queued.nominated_node and not is_bound:
            self.change(_gone_from_its_nomination(queued.pod), now)

    # -- turns -------------------------------------------------------------------------------------------------------

    def pop_batch(self, n_most: int, now: float) -> list[QueuedPod]:
        """Take the next pods, in the order of popping them one at a time; they are in flight then.

        Where no pod is active (any more), pods come that still back off (gate SchedulerPopFromBackoffQ), but for those
        whose decision has failed. What becomes of one pod of the batch does not move the others: it comes back to the
        queue at the earliest when its outcome is told, so the batch is what one at a time gives, as long as no pod that
        comes back goes before the rest. Only changes while the batch is decided (they count as if they came right after
        it), or a longest wait of 0, could make it so.
        """
        self.flush_backoff(now)
        popped: list[QueuedPod] = []
        while len(popped) < n_most:
            queued = self._heaps[Place.ACTIVE].first()
            if queued is None:
                queued = self._heaps[Place.BACKOFF].first()
                if queued is None:
                    break
                self.incoming["active", POP_FROM_BACKOFF] += 1
            self._leave(queued)
            queued.place = Place.IN_FLIGHT
            queued.attempts += 1
            self._in_flight.start(queued)
            popped.append(queued)
        return popped

    def done(self, uid: str) -> None:
        """A pod is bound, or of no account any more."""
        self.nominator.remove(uid)
        queued = self._pods.get(uid)
        if queued is not None and queued.place is Place.IN_FLIGHT:
            self._forget(queued)

    def unschedulable(
        self, uid: str, rejected_by: Iterable[str], now: float, nominated_node: str | None = None
    ) -> None:
        """No node takes a pod. It waits, unless a change since it was popped may help.

        Parameters
        ----------
        rejected_by : names of filters
            Those that turned it away; without any it is an `error`.
        nominated_node : str or None
            Where room is made for it now, empty for nowhere; None: what its status says stays.
        """
        flight = self._in_flight.get(uid)
        if flight is None:
            return
        queued = flight.queued
        queued.pod = flight.updated or queued.pod
        queued.rejected_by, queued.gated_by = frozenset(rejected_by), ""
        if queued.rejected_by:
            queued.unschedulable_count += 1
            queued.consecutive_errors = 0
        else:
            queued.consecutive_errors += 1
        queued.timestamp, queued.ticket, queued.flushed = now, self._next_ticket(), False
        is_helped = not queued.rejected_by or self._in_flight.is_helped(flight, self._waiting)
        self._in_flight.end(uid)
        queued.place = Place.NOWHERE
        if is_helped:
            self._requeue(queued, now, ATTEMPT_FAILURE)
        else:
            self._wait(queued, ATTEMPT_FAILURE)
        self.nominator.put(queued.pod, queued.nominated_node if nominated_node is None else nominated_node)

    def error(self, uid: str, now: float, nominated_node: str | None = None) -> None:
        """The decision of a pod has failed, for no fault of its own: it is tried again after a while."""
        self.unschedulable(uid, (), now, nominated_node)

    def activate(self, uid: str, now: float) -> None:
        """Let a pod be tried again at once; one that is being decided, should no node take it."""
        queued = self._pods.get(uid)
        flight = self._in_flight.get(uid)
        if flight is not None:
            flight.activated = True
        elif queued is not None and queued.place is not Place.ACTIVE:
            self._activate(queued, now, FORCE_ACTIVATE, is_checked=queued.place is not Place.UNSCHEDULABLE)

    # -- what wakes pods ---------------------------------------------------------------------------------------------

    def change(self, change: Change, now: float) -> None:
        """The cluster has changed: pods that it may help are tried again, those in flight if no node takes them."""
        if change.event not in self._hints.heeded:
            return
        event = label(change.event)
        for queued in self._waiting.helped_by(change):
            self._requeue(queued, now, event)
        self._in_flight.note(change)

    def flush_backoff(self, now: float) -> None:
        """Let pods whose wait is over be active; upstream does so every second."""
        for place in (Place.BACKOFF, Place.ERROR_BACKOFF):
            heap = self._heaps[place]
            while (queued := heap.first()) and not self._backoff.is_waiting(queued, now):
                self._activate(queued, now, BACKOFF_COMPLETE, is_checked=True)

    def flush_unschedulable(self, now: float) -> None:
        """Let pods be tried again that have waited for a change too long; upstream does so every 30 seconds."""
        late = [
            queued
            for queued in self._waiting.pods()
            if not queued.gated_by and now - queued.timestamp > self._max_unschedulable
        ]
        for queued in late:
            queued.flushed = True
            self._requeue(queued, now, TIMEOUT)

    # -- moves -------------------------------------------------------------------------------------------------------

    def _enter(self, pod: Incoming, now: float, nominated_node: str, event: str) -> None:
        queued = QueuedPod(pod, now, self._next_ticket(), nominated_node=nominated_node)
        self._pods[pod.uid] = queued
        self._activate(queued, now, event)
        if not queued.gated_by:
            self.nominator.put(pod, nominated_node)

    def _replace(self, queued: QueuedPod, pod: Incoming, now: float) -> None:
        """Put a pod's new version in place of the old one; one that waits may be helped by what has changed."""
        if queued.place is not Place.UNSCHEDULABLE:
            queued.pod = pod
            self._heaps[queued.place].put(queued)
            return
        changes = own_changes(queued.pod, pod)
        self._waiting.remove(queued)
        queued.pod = pod
        self._waiting.put(queued)
        group = self._waiting.group_of(queued)
        helping = next((change for change in changes if group.is_helped(change)), None)
        if helping is not None:
            self._requeue(queued, now, label(helping.event))

    def _requeue(self, queued: QueuedPod, now: float, event: str) -> None:
        """Let a pod be tried again, after what is left of its wait."""
        if not self._backoff.is_waiting(queued, now):
            self._activate(queued, now, event)
        elif self._passes_gates(queued, event):
            place = Place.BACKOFF if queued.rejected_by else Place.ERROR_BACKOFF
            self._arrive(queued, place, "backoff", event)

    def _activate(self, queued: QueuedPod, now: float, event: str, *, is_checked: bool = False) -> None:
        if is_checked or self._passes_gates(queued, event):
            if queued.initial_attempt is None:
                queued.initial_attempt = now
            self._arrive(queued, Place.ACTIVE, "active", event)

    def _passes_gates(self, queued: QueuedPod, event: str) -> bool:
        """Tell whether no gate holds a pod; if one does, it waits for that."""
        gate = self._hints.gate_of(queued.pod)
        if not gate:
            return True
        rejected_by = queued.rejected_by | {gate}
        if queued.place is not Place.UNSCHEDULABLE or (queued.gated_by, queued.rejected_by) != (
            gate,
            rejected_by,
        ):
            self._leave(queued)
            queued.rejected_by, queued.gated_by = rejected_by, gate
            self._wait(queued, event)
        return False

    def _wait(self, queued: QueuedPod, event: str) -> None:
        self._waiting.put(queued)
        if queued.place is not Place.UNSCHEDULABLE:
            self.incoming["unschedulable", event] += 1
        queued.place = Place.UNSCHEDULABLE

    def _arrive(self, queued: QueuedPod, place: Place, name: str, event: str) -> None:
        self._leave(queued)
        queued.place, queued.gated_by = place, ""
        self._heaps[place].put(queued)
        self.incoming[name, event] += 1

    def _leave(self, queued: QueuedPod) -> None:
        if queued.place is Place.UNSCHEDULABLE:
            self._waiting.remove(queued)
        elif queued.place in self._heaps:
            self._heaps[queued.place].remove(queued)

    def _forget(self, queued: QueuedPod) -> None:
        if queued.place is Place.IN_FLIGHT:
            self._in_flight.end(queued.uid)
        self._leave(queued)
        queued.place = Place.NOWHERE
        del self._pods[queued.uid]

    def _next_ticket(self) -> int:
        self._n_tickets += 1
        return self._n_tickets


def _gone_from_its_nomination(pod: Incoming) -> AssignedPodChange:
    """A pod that is nominated counted as one on its node, for all that are not more important: now it does not."""
    return AssignedPodChange(Action.DELETE, pod, None, max_priority=pod.info.spec.priority or 0)
