"""New pods and the nodes that were chosen for them. All happens on the event loop's thread.

A node is kept free by a pod that is assumed there, of the planned pod's shape, until the pod itself comes.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from berth.cluster.arrays import NONE
from berth.cluster.cluster import Cluster, Incoming
from berth.live.events import Event
from berth.live.module.orders import Order
from berth.live.module.pods import active_pods, find_pod, is_leaving, node_of
from berth.live.reservations import HOLD, Claim
from berth.module.services import controller_of_owners

Fits = Callable[[Incoming, int], bool]
"""Tells whether a pod may go to a row of the cluster, as it is now."""


@dataclass(slots=True, eq=False)
class Place:
    """A pod that is to come.

    Attributes
    ----------
    node : str or None
        Where it is to go; None: wherever the scheduler puts it.
    kept : int
        What is assumed there in its stead; `NONE` for nothing.
    uid, pod_name : str
        Who has come; of a StatefulSet's pod the name is known before.
    """

    node: str | None
    pod_name: str = ""
    uid: str = ""
    kept: int = NONE


@dataclass(slots=True)
class Expected:
    """Pods of one controller that are to come: each gets the node that was planned, or is held.

    Attributes
    ----------
    before : set of str
        The uids of pods that were there already.
    places : list of Place
        Empty where all that come are to be held.
    holds : bool
        Whether a pod for which there is no place waits.
    held : set of str
        The uids of pods that wait.
    """

    cluster: Cluster
    namespace: str
    before: set[str]
    places: list[Place]
    holds: bool = False
    held: set[str] = field(default_factory=set)
    _come: dict[str, Place] = field(default_factory=dict, init=False)
    _free: list[Place] = field(init=False)

    def __post_init__(self) -> None:
        self._free = self.places[::-1]  # the next is at the end

    @classmethod
    def of(cls, order: Order, cluster: Cluster) -> "Expected":
        """Expect what an order adds; what it removes comes again, and is held."""
        named = bool(order.pod_names)
        places = [Place(node, order.pod_names[i] if named else "") for i, node in enumerate(order.nodes)]
        expected = cls(cluster, order.namespace, set(order.before), places, holds=order.operation == "remove")
        for pod in active_pods(cluster, order.namespace, order.controller):
            expected.see(pod)
        return expected

    def keep(self, pod: Incoming) -> None:
        """Keep the nodes of those that have not come free, for pods like this one."""
        for place in self.places:
            row = NONE if place.node is None else self.cluster.nodes.row(place.node)
            if row != NONE and not place.uid and place.kept == NONE:
                place.kept = self.cluster.assume(pod, row)

    def claim(self, pod: Incoming, fits: Fits) -> Claim:
        """Say what is to be done with a pod of the controller."""
        if pod.uid in self.before:
            return None
        place = self._place_of(pod.uid, pod.name, None)
        if place is None:
            if self.holds:
                self.held.add(pod.uid)
            return HOLD if self.holds else None
        self._fill(place, pod.uid, pod.name)
        row = NONE if place.node is None else self.cluster.nodes.row(place.node)
        return place.node if row != NONE and fits(pod, row) else None

    def see(self, pod: int) -> None:
        """Take note of a pod as it is now: who was bound without asking takes a place, too, if possible one on its node."""
        pods = self.cluster.pods
        uid, name = pods.uids[pod], pods.names[pod]
        if uid in self.before:
            return
        if is_leaving(self.cluster, pod):
            self.lose(uid)
            return
        node = node_of(self.cluster, pod)
        if node is not None:
            place = self._place_of(uid, name, node)
            if place is not None:
                self._fill(place, uid, name)

    def lose(self, uid: str) -> None:
        """Take note that a pod is gone: another may come in its place."""
        self.held.discard(uid)
        place = self._come.pop(uid, None)
        if place is not None:
            place.uid = ""
            self._free.append(place)

    def bound(self, place: Place) -> tuple[str, str] | None:
        """Return the name and the node of the pod that has come and is bound, else None."""
        if not place.uid:
            return None
        pod = find_pod(self.cluster, self.namespace, place.pod_name, place.uid)
        node = None if pod == NONE else node_of(self.cluster, pod)
        return None if node is None else (place.pod_name, node)

    def give_back(self) -> None:
        """Keep nothing free any more."""
        for place in self.places:
            self._give_back(place)

    def _place_of(self, uid: str, name: str, node: str | None) -> Place | None:
        """Return the place of a pod: its own, else a free one, of its name or on its node before any other."""
        own = self._come.get(uid)
        if own is not None or not self._free:
            return own
        if node is None and not self._free[-1].pod_name:
            return self._free[-1]
        return min(reversed(self._free), key=lambda place: (place.pod_name != name, place.node != node))

    def _fill(self, place: Place, uid: str, name: str) -> None:
        if not place.uid:
            if self._free[-1] is place:
                self._free.pop()
            else:
                self._free.remove(place)
            self._come[uid] = place
        place.uid, place.pod_name = uid, name
        self._give_back(place)

    def _give_back(self, place: Place) -> None:
        if place.kept != NONE:
            self.cluster.forget(place.kept)
            place.kept = NONE


class ExpectedPods:
    """All pods that are expected, by controller: what the scheduler asks (`berth.live.reservations.Reservations`).

    Attributes
    ----------
    release : callable
        Tells the scheduler, by uid, that pods that were held are to be decided after all.
    """

    def __init__(self, cluster: Cluster, fits: Fits) -> None:
        self.release: Callable[[Iterable[str]], None] = lambda uids: None
        self._cluster = cluster
        self._fits = fits
        self._by_controller: dict[str, Expected] = {}

    def expect(self, controller: str, expected: Expected) -> None:
        """Expect pods of a controller from now on."""
        self._by_controller[controller] = expected

    def knows(self, controller: str) -> bool:
        """Tell whether pods of a controller are expected."""
        return controller in self._by_controller

    def of(self, controller: str) -> Expected:
        """Return what is expected of a controller."""
        return self._by_controller[controller]

    def end(self, controller: str) -> None:
        """Expect no more pods of a controller; those that wait are decided as any other."""
        expected = self._by_controller.pop(controller, None)
        if expected is None:
            return
        expected.give_back()
        if expected.held:
            self.release(expected.held)

    def end_all(self) -> None:
        """Expect nothing any more."""
        for controller in list(self._by_controller):
            self.end(controller)

    def hear(self, event: Event) -> None:
        """Take in an event of a pod, after the cluster has."""
        if not self._by_controller:
            return
        pod = find_pod(self._cluster, event.namespace, event.name, event.uid)
        if pod == NONE:
            for expected in self._by_controller.values():
                expected.lose(event.uid)
            return
        owner = controller_of_owners(self._cluster, int(self._cluster.pods.column("owner_id")[pod]))
        found = None if owner is None else self._by_controller.get(owner.uid)
        if found is not None:
            found.see(pod)

    # -- as the scheduler sees it --------------------------------------------------------------------------------------

    def claim(self, pod: Incoming) -> Claim:
        """Say what is to be done with a pod that is about to be decided."""
        expected = None if pod.controller is None else self._by_controller.get(pod.controller.uid)
        return None if expected is None else expected.claim(pod, self._fits)

    def settled(self, uid: str, *, is_bound: bool) -> None:
        """Do nothing: whether a pod is bound is told by its events."""
