"""A pod that waits, and what is remembered of it from attempt to attempt."""

from dataclasses import dataclass
from enum import Enum

from berth.cluster.cluster import Incoming


class Place(Enum):
    """Where a pod is."""

    NOWHERE = "none of the queue's any more, or not yet"
    ACTIVE = "waiting for its turn"
    BACKOFF = "waiting for a while, since it has failed"
    ERROR_BACKOFF = "likewise, since its decision has failed; never taken early"
    UNSCHEDULABLE = "waiting for a change that may help, or for a gate to open"
    IN_FLIGHT = "being decided or bound"


@dataclass(slots=True, eq=False)
class QueuedPod:
    """A pod in the queue: 1.36's ``QueuedPodInfo``. Only the queue changes it.

    Attributes
    ----------
    timestamp : float
        When it was put into the queue last after an attempt, or first. [s]
    ticket : int
        Tells pods apart that came at the same time: the one with the smaller number came first.
    attempts : int
        How often it was popped.
    unschedulable_count, consecutive_errors : int
        How often no node took it, and how often in a row its decision has failed otherwise just now.
    initial_attempt : float or None
        When it was first active: where the time to its binding begins. [s]
    rejected_by : frozenset of str
        The filters that turned it away, and the gate that holds it.
    gated_by : str
        The gate that holds it; empty if none does.
    flushed : bool
        Whether it became active last because it had waited for so long, and not because of a change.
    nominated_node : str
        What its status says; empty for none.
    """

    pod: Incoming
    timestamp: float
    ticket: int
    place: Place = Place.NOWHERE
    attempts: int = 0
    unschedulable_count: int = 0
    consecutive_errors: int = 0
    initial_attempt: float | None = None
    rejected_by: frozenset[str] = frozenset()
    gated_by: str = ""
    flushed: bool = False
    nominated_node: str = ""

    @property
    def uid(self) -> str:
        """The pod's uid, by which the queue knows it."""
        return self.pod.uid

    @property
    def priority(self) -> int:
        """The pod's priority."""
        return self.pod.info.spec.priority or 0

    @property
    def order(self) -> tuple[int, float, int]:
        """What pods are sorted by (``queuesort/priority_sort.go``): high priority first, then the one that came first."""
        return -self.priority, self.timestamp, self.ticket
