"""What has changed since the pods that are being decided were popped.

Source: 1.36, ``backend/queue/active_queue.go`` (``inFlightEvents``).
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice

from berth.cluster.cluster import Incoming
from berth.framework.changes import Change, OwnChange
from berth.scheduling.queueing.pod import QueuedPod
from berth.scheduling.queueing.waiting import Group, GroupKey, Waiting, key_of


@dataclass(slots=True)
class Departure:
    """What pods that were popped together have in common.

    Attributes
    ----------
    number : int
        The number of the first change that they have not seen.
    judged : dict of group key to (group, int, bool)
        Of pods that no node took up to which change it is known whether any may help them, and whether one may.
    """

    number: int
    judged: dict[GroupKey, tuple[Group, int, bool]] = field(default_factory=dict)


@dataclass(slots=True)
class Flight:
    """A pod that is being decided.

    Attributes
    ----------
    updated : Incoming or None
        The pod as it is by now, if it was updated meanwhile.
    own : list of OwnChange
        What was changed of it.
    activated : bool
        Whether somebody wants it to be tried again at once.
    """

    queued: QueuedPod
    departure: Departure
    updated: Incoming | None = None
    own: list[OwnChange] = field(default_factory=list)
    activated: bool = False


class InFlight:
    """The pods that are being decided, and the changes that any of them has not seen."""

    def __init__(self) -> None:
        self._flights: dict[str, Flight] = {}
        self._changes: deque[Change] = deque()
        self._first = 0
        self._latest = Departure(0)

    def __len__(self) -> int:
        return len(self._flights)

    @property
    def n_changes(self) -> int:
        """How many changes are kept."""
        return len(self._changes)

    @property
    def next_number(self) -> int:
        """The number that the next change will have."""
        return self._first + len(self._changes)

    def start(self, pod: QueuedPod) -> None:
        """A pod was popped."""
        if self._latest.number != self.next_number or not self._flights:
            self._latest = Departure(self.next_number)
        self._flights[pod.uid] = Flight(pod, self._latest)

    def get(self, uid: str) -> Flight | None:
        """Return what is known of a pod, if it is being decided."""
        return self._flights.get(uid)

    def note(self, change: Change) -> None:
        """Keep a change, if anybody may ask for it."""
        if self._flights:
            self._changes.append(change)

    def is_helped(self, flight: Flight, waiting: Waiting) -> bool:
        """Tell whether anything since a pod was popped may help it, now that its rejectors are known."""
        key, judged = key_of(flight.queued), flight.departure.judged
        # Pods that were popped together have missed the same: the first of a group finds out for all.
        known = judged.get(key) or (waiting.group_of(flight.queued), flight.departure.number, False)
        group, seen, is_helped = known
        if flight.activated or any(map(group.is_helped, flight.own)):
            return True
        is_helped = is_helped or any(waiting.helped_groups([group], c) for c in self._after(seen))
        judged[key] = (group, self.next_number, is_helped)
        return is_helped

    def _after(self, number: int) -> Iterator[Change]:
        return islice(self._changes, number - self._first, None)

    def end(self, uid: str) -> None:
        """A pod's decision is over: changes that only it has not seen are forgotten."""
        del self._flights[uid]
        # Flights stand in the order in which they began.
        oldest = next(iter(self._flights.values()), None)
        keep_from = self.next_number if oldest is None else oldest.departure.number
        while self._first < keep_from:
            self._changes.popleft()
            self._first += 1
