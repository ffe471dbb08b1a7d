"""The pods that wait for a change that may help, in groups of pods that every change helps alike.

Source: 1.36, ``backend/queue/unschedulable_pods.go``, which has no groups: it asks for each pod.
"""

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, field

from berth.cluster.cluster import Incoming
from berth.framework.changes import AssignedPodChange, Change, Event, Resource
from berth.scheduling.queueing.hints import Asks, Hints
from berth.scheduling.queueing.pod import QueuedPod

GroupKey = tuple[tuple[int, ...], frozenset[str], str]
"""Shape, rejectors, gate."""
_MOST_KINDS = 4096


@dataclass(slots=True, eq=False)
class Group:
    """Pods of one shape that were turned away by the same filters.

    Attributes
    ----------
    pod : Incoming
        Stands for all of them.
    not_helped_by : set of int
        The kinds of changes (`Waiting`) that are known not to help.
    """

    key: GroupKey
    pod: Incoming
    asks: Asks
    pods: dict[str, QueuedPod] = field(default_factory=dict)
    not_helped_by: set[int] = field(default_factory=set)

    def is_helped(self, change: Change) -> bool:
        """Tell whether a change may help the pods."""
        most = change.max_priority if isinstance(change, AssignedPodChange) else None
        if most is not None and (self.pod.info.spec.priority or 0) > most:
            return False
        return any(hint(change) for hint in self.asks.get(change.event, ()))


def key_of(queued: QueuedPod) -> GroupKey:
    """Return the key of the group that a pod belongs to."""
    return queued.pod.shape, queued.rejected_by, queued.gated_by


class Waiting:
    """The groups, found by the events that may help them: one that nobody waits for costs a look-up."""

    def __init__(self, hints: Hints) -> None:
        self._hints = hints
        self._groups: dict[GroupKey, Group] = {}
        self._by_event: dict[Event, dict[GroupKey, Group]] = {}
        self._group_of: dict[str, Group] = {}
        self._kinds: dict[Hashable, int] = {}
        self._n_kinds = 0
        self.n_gated = 0

    def __len__(self) -> int:
        return len(self._group_of)

    def put(self, queued: QueuedPod) -> None:
        """Let a pod wait."""
        group = self.group_of(queued)
        if not group.pods:
            self._groups[group.key] = group
            for event in group.asks:
                self._by_event.setdefault(event, {})[group.key] = group
        group.pods[queued.uid] = queued
        self._group_of[queued.uid] = group
        self.n_gated += bool(group.key[2])

    def remove(self, queued: QueuedPod) -> None:
        """Let a pod wait no longer."""
        group = self._group_of.pop(queued.uid)
        self.n_gated -= bool(group.key[2])
        del group.pods[queued.uid]
        if not group.pods:
            del self._groups[group.key]
            for event in group.asks:
                del self._by_event[event][group.key]

    def group_of(self, queued: QueuedPod) -> Group:
        """Return the group that a pod belongs to: one that waits, or a new one."""
        key = key_of(queued)
        return self._groups.get(key) or Group(
            key, queued.pod, self._hints.asks(queued.pod, queued.rejected_by, queued.gated_by)
        )

    def helped_by(self, change: Change) -> list[QueuedPod]:
        """Return the pods that a change may help."""
        if change.resource is Resource.NAMESPACE:
            self._kinds.clear()
        groups = self._by_event.get(change.event)
        if not groups:
            return []
        helped = self.helped_groups(groups.values(), change)
        return [queued for group in helped for queued in group.pods.values()]

    def helped_groups(self, groups: Iterable[Group], change: Change) -> list[Group]:
        """Return the groups, among some, that a change may help; each is asked once about pods of one shape."""
        kind = self._kind_of(change) if isinstance(change, AssignedPodChange) else None
        helped = []
        for group in groups:
            if kind in group.not_helped_by:
                continue
            if group.is_helped(change):
                helped.append(group)
            elif kind is not None:
                group.not_helped_by.add(kind)
        return helped

    def _kind_of(self, change: AssignedPodChange) -> int:
        """Return a number for all that hints may read of such a change, as long as labels of namespaces stay the same."""
        old, new = change.old and change.old.shape, change.new and change.new.shape
        key = (change.action, old, new, change.max_priority)
        kind = self._kinds.get(key)
        if kind is None:
            if len(self._kinds) >= _MOST_KINDS:
                self._kinds.clear()
            # A number is never used again: what groups know of old ones is of no account.
            self._n_kinds += 1
            kind = self._kinds[key] = self._n_kinds
        return kind

    def pods(self) -> Iterator[QueuedPod]:
        """Iterate over all pods."""
        for group in self._groups.values():
            yield from group.pods.values()
