"""What reflectors tell, told on to the queue: pods that wait, and changes that may help them. Knows no API server."""

from collections.abc import Callable, Container
from dataclasses import dataclass

import msgspec

from berth.cluster.arrays import NONE
from berth.cluster.cluster import Cluster, Incoming
from berth.cluster.objects import NamedObject
from berth.cluster.pods import PodValues
from berth.framework.changes import Change, node_changes, object_change, pod_changes
from berth.live.events import Event
from berth.live.resources import LivePod
from berth.objects.nodes import Node
from berth.scheduling.queueing import SchedulingQueue
from berth.scheduling.queueing.hints import DEFAULT_SCHEDULER

Clock = Callable[[], float]


@dataclass(frozen=True, slots=True)
class Waiting:
    """What a pod's status needs to know of a pod that waits.

    Attributes
    ----------
    generation : int
        The pod's.
    is_told : bool
        Whether its status says already that it is not scheduled.
    """

    generation: int
    is_told: bool


class Intake:
    """Puts pods of certain schedulers into a queue, and tells it of changes.

    Parameters
    ----------
    schedulers : container of str
        The names that pods give.
    clock : callable
        The queue's time. [s]

    Attributes
    ----------
    waiting : dict of uid to Waiting
        The pods that are for us and have no node.
    """

    def __init__(
        self, cluster: Cluster, queue: SchedulingQueue, schedulers: Container[str], clock: Clock
    ) -> None:
        self._cluster = cluster
        self._queue = queue
        self._schedulers = schedulers
        self._clock = clock
        self._nodes: dict[str, Node] = {}
        self.waiting: dict[str, Waiting] = {}
        self.on_arrival: Callable[[], None] = lambda: None

    def take(self, event: Event) -> None:
        """Hear of an event, after the cluster has."""
        if event.kind == "Pod":
            self._take_pod(event)
        elif event.kind == "Node":
            self._take_node(event)
        elif event.changed:
            new = event.item if event.type != "DELETED" and isinstance(event.item, NamedObject) else None
            old = event.old if isinstance(event.old, NamedObject) else None
            change = object_change(old, new) if old or new else None
            if change is not None:
                self._tell(change)
        self.on_arrival()

    def _tell(self, change: Change) -> None:
        self._queue.change(change, self._clock())

    # -- nodes -------------------------------------------------------------------------------------------------------

    def _take_node(self, event: Event) -> None:
        old = self._nodes.pop(event.name, None)
        new = event.item if isinstance(event.item, Node) else None
        if event.type == "DELETED":
            new = None
        elif new is None:
            new = old  # it can't be read
        if new is not None:
            # Lists of images are long, and no hint looks at them.
            new = msgspec.structs.replace(new, status=msgspec.structs.replace(new.status, images=()))
            self._nodes[event.name] = new
        if (event.changed or new is None) and (old or new):
            for change in node_changes(old, new):
                self._tell(change)

    # -- pods --------------------------------------------------------------------------------------------------------

    def _take_pod(self, event: Event) -> None:
        if event.type == "DELETED":
            self.waiting.pop(event.uid, None)
            self._queue.delete(event.uid, self._clock())
            if event.before is not None and _is_assigned(event.before):
                self._tell_of_pods(event.before, None)
            return
        values, record = event.values, event.item
        if values is None or not isinstance(record, LivePod):
            return
        has_node = values.node_name_id != NONE
        if has_node or values.is_finished or values.terminating or not self._is_ours(values):
            if self.waiting.pop(event.uid, None) is not None:
                self._queue.delete(event.uid, self._clock(), is_bound=has_node)
        else:
            self._wait(event, values, record)
        old = event.before if event.before is not None and _is_assigned(event.before) else None
        new = values if _is_assigned(values) else None
        if (old or new) and len(self._queue):
            self._tell_of_pods(old, new)

    def _is_ours(self, values: PodValues) -> bool:
        name = self._cluster.specs[values.spec_id].spec.scheduler_name
        return (name or DEFAULT_SCHEDULER) in self._schedulers

    def _wait(self, event: Event, values: PodValues, record: LivePod) -> None:
        is_told = any(c.type == "PodScheduled" and c.status == "False" for c in record.status.conditions)
        self.waiting[event.uid] = Waiting(record.metadata.generation, is_told)
        nominated = record.status.nominated_node_name
        queued = self._queue.get(event.uid)
        if queued is None:
            self._queue.add(self._cluster.incoming_of(values), self._clock(), nominated)
        elif event.changed or queued.nominated_node != nominated:
            self._queue.update(self._cluster.incoming_of(values), self._clock(), nominated)

    def _tell_of_pods(self, old: PodValues | None, new: PodValues | None) -> None:
        if old and new and (old.spec_id, old.labels_id) == (new.spec_id, new.labels_id):
            return
        for change in pod_changes(self._incoming(old), self._incoming(new)):
            self._tell(change)

    def _incoming(self, values: PodValues | None) -> Incoming | None:
        return None if values is None else self._cluster.incoming_of(values)


def _is_assigned(values: PodValues) -> bool:
    """Tell whether a pod holds anything of a node."""
    return values.node_name_id != NONE and not values.is_finished
