"""Which plugin to ask about which change, and the gates that hold pods back. Knows no plugin but what a profile brings.

Source: 1.36, ``buildQueueingHintMap`` of ``scheduler.go``, ``isPodWorthRequeuing`` and ``runPreEnqueuePlugins`` of
``backend/queue/scheduling_queue.go``, ``plugins/schedulinggates``. Upstream lets an update of a node's taints wake the pods
of every plugin that asks for new nodes, as a precaution against a check that is no longer made; here it wakes those alone
whom taints keep away.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Protocol

from berth.cluster.cluster import Cluster, Incoming
from berth.framework.changes import Action, Event, Hint, Resource, Wakes, helps_always
from berth.framework.plugin import FilterPlugin
from berth.framework.profile import Profile

DEFAULT_SCHEDULER = "default-scheduler"
_OBJECT_ACTIONS = (Action.ADD, Action.DELETE, Action.UPDATE)
_ACTIONS = dict.fromkeys(Resource, _OBJECT_ACTIONS) | {
    Resource.NODE: (
        Action.ADD,
        Action.DELETE,
        Action.UPDATE_NODE_ALLOCATABLE,
        Action.UPDATE_NODE_LABEL,
        Action.UPDATE_NODE_TAINT,
        Action.UPDATE_NODE_CONDITION,
        Action.UPDATE_NODE_ANNOTATION,
        Action.UPDATE_NODE_DECLARED_FEATURE,
    ),
    **dict.fromkeys(
        (Resource.ASSIGNED_POD, Resource.UNSCHEDULED_POD),
        (
            *_OBJECT_ACTIONS,
            Action.UPDATE_POD_LABEL,
            Action.UPDATE_POD_SCALE_DOWN,
            Action.UPDATE_POD_TOLERATION,
            Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED,
        ),
    ),
}

Asks = Mapping[Event, Sequence[Hint]]
"""By event the hints of those who turned a pod away; an event that is not there helps the pod in no case."""


class Gate(Protocol):
    """What may hold a pod back before it comes to be active: upstream's PreEnqueue plugin."""

    @property
    def name(self) -> str:
        """What it is called."""

    @property
    def wakes_on(self) -> Wakes:
        """The changes after which a pod that it holds is worth another look (its other rejectors are asked, too)."""

    def holds(self, pod: Incoming) -> bool:
        """Tell whether the pod is held back."""

    def hint(self, pod: Incoming, cluster: Cluster) -> Hint:
        """Return what tells of such a change whether it may open the gate."""


class SchedulingGates:
    """The gates in a pod's spec: all of them have to go."""

    name: ClassVar[str] = "SchedulingGates"
    wakes_on: ClassVar[Wakes] = {Resource.UNSCHEDULED_POD: Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED}

    def holds(self, pod: Incoming) -> bool:
        """Tell whether there is any."""
        return bool(pod.info.spec.scheduling_gates)

    def hint(self, pod: Incoming, cluster: Cluster) -> Hint:
        """Return the hint, which always says yes: the event says it all."""
        return helps_always


class Hints:
    """The filters of all profiles and the gates, to be asked about changes.

    Parameters
    ----------
    profiles : dict of scheduler name to Profile
        Which filters decide for the pods that name a scheduler; those that name none mean ``default-scheduler``.
    """

    def __init__(
        self, cluster: Cluster, profiles: Mapping[str, Profile], gates: Sequence[Gate] = (SchedulingGates(),)
    ) -> None:
        self._cluster = cluster
        self._gates = {gate.name: gate for gate in gates}
        self._filters = {
            name: {each.name: each.plugin for each in profile.filters} for name, profile in profiles.items()
        }
        wakes = [plugin.wakes_on for by_name in self._filters.values() for plugin in by_name.values()]
        wakes += [gate.wakes_on for gate in gates]
        self.heeded: frozenset[Event] = frozenset(event for each in wakes for event in events_of(each))

    def gate_of(self, pod: Incoming) -> str:
        """Return the name of the first gate that holds a pod, empty if none does."""
        return next((name for name, gate in self._gates.items() if gate.holds(pod)), "")

    def asks(self, pod: Incoming, rejected_by: Iterable[str], gated_by: str) -> Asks:
        """Return what is to be asked for a pod.

        A rejector that is not known is taken to be helped by whatever anybody heeds. A pod that a gate holds is helped by
        nothing but what the gate heeds, and its own updates.
        """
        asks: dict[Event, list[Hint]] = {}
        filters = self._filters.get(pod.info.spec.scheduler_name or DEFAULT_SCHEDULER, {})
        for name in rejected_by:
            rejector: Gate | FilterPlugin[Any] | None = self._gates.get(name) or filters.get(name)
            hint = rejector.hint(pod, self._cluster) if rejector else helps_always
            for event in events_of(rejector.wakes_on) if rejector else self.heeded:
                asks.setdefault(event, []).append(hint)
        if gated_by:
            opening = set(events_of(self._gates[gated_by].wakes_on))
            return {
                event: hints
                for event, hints in asks.items()
                if event in opening or event[0] is Resource.UNSCHEDULED_POD
            }
        return asks


def events_of(wakes: Wakes) -> Iterator[Event]:
    """Iterate over the single events among those that something wakes on."""
    for resource, actions in wakes.items():
        for action in _ACTIONS[resource]:
            if action in actions:
                yield resource, action
