"""The queue against a plain one: a list of pods, each asked alone, sorted whenever it matters."""

from dataclasses import dataclass, field
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from berth.cluster.cluster import Cluster, Incoming
from berth.framework.changes import AssignedPodChange, Change, own_changes, pod_changes
from berth.scheduling.queueing import Place
from berth.scheduling.queueing.hints import events_of
from tests.scheduling.queueing.worlds import (
    FILTERS,
    Held,
    a_queue,
    node_comes,
    node_relabelled,
    node_tainted,
    waiting,
)

NAMES = [f"p{i}" for i in range(8)]
BACKING_OFF = (Place.BACKOFF, Place.ERROR_BACKOFF)


@dataclass
class Plain:
    """A pod as the plain queue has it."""

    pod: Incoming
    since: float
    turn: int
    place: Place = Place.NOWHERE
    fails: int = 0
    errors: int = 0
    rejected: set[str] = field(default_factory=set)
    gate: str = ""
    missed: list[Change] = field(default_factory=list)
    activated: bool = False
    newest: Incoming | None = None
    nominated: str = ""

    @property
    def ends(self) -> int:
        count = self.errors or self.fails
        return int(self.since + min(10, 2 ** (count - 1))) if count else -1

    @property
    def order(self) -> tuple[float, ...]:
        return (-(self.pod.info.spec.priority or 0), self.since, self.turn)

    def helped(self, change: Change) -> bool:
        most = change.max_priority if isinstance(change, AssignedPodChange) else None
        if most is not None and (self.pod.info.spec.priority or 0) > most:
            return False
        return any(
            change.event in events_of(FILTERS[name].wakes_on)
            and FILTERS[name].hint(self.pod, Cluster())(change)
            for name in self.rejected & set(FILTERS)
        ) or (
            "SchedulingGates" in self.rejected
            and change.event[1].name == "UPDATE_POD_SCHEDULING_GATES_ELIMINATED"
        )


wants = st.sampled_from(["", "x", "y"])
pods: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {
        "name": st.sampled_from(NAMES),
        "priority": st.integers(-1, 2),
        "wants": wants,
        "gated": st.sampled_from([False, False, True]),
        "better": st.booleans(),
    }
)
nodes = st.sampled_from(["", "", "n"])


class Queueing(RuleBasedStateMachine):
    @initialize()
    def begin(self) -> None:
        self.cluster = Cluster()
        self.held = Held()
        self.queue = a_queue(self.cluster, self.held)
        self.plain: dict[str, Plain] = {}
        self.now = 1000.0
        self.turn = 0

    # -- the plain queue -------------------------------------------------------------------------------------

    def next_turn(self) -> int:
        self.turn += 1
        return self.turn

    def gate(self, one: Plain) -> str:
        if one.pod.info.spec.scheduling_gates:
            return "SchedulingGates"
        return "Held" if one.pod.uid in self.held.uids else ""

    def try_again(self, one: Plain, *, at_once: bool = False, checked: bool = False) -> None:
        gate = "" if checked else self.gate(one)
        if gate:
            one.place, one.gate = Place.UNSCHEDULABLE, gate
            one.rejected.add(gate)
        else:
            one.gate = ""
            waits = not at_once and one.ends >= int(self.now)
            backoff = Place.BACKOFF if one.rejected else Place.ERROR_BACKOFF
            one.place = backoff if waits else Place.ACTIVE

    def happen(self, change: Change, heeded: bool = True) -> None:
        self.queue.change(change, self.now)
        self.happen_plainly(change, heeded)

    def happen_plainly(self, change: Change, heeded: bool = True) -> None:
        for one in self.plain.values():
            if one.place is Place.IN_FLIGHT and heeded:
                one.missed.append(change)
            elif one.place is Place.UNSCHEDULABLE and one.helped(change):
                opens = one.gate == "Held" and isinstance(change, AssignedPodChange)
                if opens or not one.gate:
                    self.try_again(one)

    def in_place(self, *places: Place) -> list[Plain]:
        return [one for one in self.plain.values() if one.place in places]

    # -- what happens ----------------------------------------------------------------------------------------

    @rule(values=pods, node=nodes, is_new=st.booleans())
    def pod_comes_or_changes(self, values: dict[str, Any], node: str, is_new: bool) -> None:
        pod = waiting(self.cluster, **values)
        (self.queue.add if is_new else self.queue.update)(pod, self.now, node)
        one = self.plain.get(pod.uid)
        if one is None:
            one = self.plain[pod.uid] = Plain(pod, self.now, self.next_turn(), nominated=node)
            self.try_again(one)
            return
        before, one.nominated = one.nominated, node
        old = one.newest or one.pod
        changes = own_changes(old, pod)
        if one.place is Place.IN_FLIGHT:
            one.newest = pod
            one.missed += changes
        else:
            one.pod = pod
            if one.place is Place.UNSCHEDULABLE and any(map(one.helped, changes)):
                self.try_again(one)
        if before not in ("", node):
            (gone,) = pod_changes(old, None)
            priority = old.info.spec.priority or 0
            self.happen_plainly(AssignedPodChange(gone.action, gone.old, None, max_priority=priority))

    @rule(name=st.sampled_from(NAMES))
    def pod_goes(self, name: str) -> None:
        self.queue.delete(f"uid-{name}", self.now, is_bound=True)
        self.plain.pop(f"uid-{name}", None)

    @rule(n=st.integers(1, 4))
    def pop(self, n: int) -> None:
        self.flush_plainly()
        active = sorted(self.in_place(Place.ACTIVE), key=lambda one: one.order)
        early = sorted(self.in_place(Place.BACKOFF), key=lambda one: (one.ends, *one.order))
        expected = (active + early)[:n]
        assert [each.uid for each in self.queue.pop_batch(n, self.now)] == [one.pod.uid for one in expected]
        for one in expected:
            one.place, one.missed, one.activated = Place.IN_FLIGHT, [], False

    @precondition(lambda self: self.in_place(Place.IN_FLIGHT))
    @rule(data=st.data(), rejected=st.sets(st.sampled_from(sorted(FILTERS)), max_size=2))
    def no_node_takes_it(self, data: st.DataObject, rejected: set[str]) -> None:
        one = data.draw(st.sampled_from(self.in_place(Place.IN_FLIGHT)))
        self.queue.unschedulable(one.pod.uid, rejected, self.now)
        one.pod, one.newest = one.newest or one.pod, None
        one.rejected, one.gate = set(rejected), ""
        one.errors = 0 if rejected else one.errors + 1
        one.fails += bool(rejected)
        one.since, one.turn = self.now, self.next_turn()
        if not rejected or one.activated or any(map(one.helped, one.missed)):
            self.try_again(one)
        else:
            one.place = Place.UNSCHEDULABLE

    @precondition(lambda self: self.in_place(Place.IN_FLIGHT))
    @rule(data=st.data())
    def it_is_bound(self, data: st.DataObject) -> None:
        one = data.draw(st.sampled_from(self.in_place(Place.IN_FLIGHT)))
        self.queue.done(one.pod.uid)
        del self.plain[one.pod.uid]

    @rule(gives=wants, kind=st.sampled_from([node_comes, node_relabelled, node_tainted]))
    def node_changes(self, gives: str, kind: Any) -> None:
        self.happen(kind(gives), heeded=kind is not node_tainted)

    @rule(gives=wants)
    def other_pod_goes(self, gives: str) -> None:
        (gone,) = pod_changes(waiting(self.cluster, "other", gives=gives), None)
        self.happen(gone)

    @rule(name=st.sampled_from(NAMES))
    def gate_moves(self, name: str) -> None:
        self.held.uids ^= {f"uid-{name}"}

    @rule(name=st.sampled_from(NAMES))
    def activate(self, name: str) -> None:
        self.queue.activate(f"uid-{name}", self.now)
        one = self.plain.get(f"uid-{name}")
        if one is not None and one.place is Place.IN_FLIGHT:
            one.activated = True
        elif one is not None and one.place is not Place.ACTIVE:
            self.try_again(one, at_once=True, checked=one.place in BACKING_OFF)

    @rule(seconds=st.sampled_from([0.25, 1.0, 3.5, 200.0]))
    def time_goes_by(self, seconds: float) -> None:
        self.now += seconds

    def flush_plainly(self) -> None:
        for one in self.in_place(*BACKING_OFF):
            if one.ends < int(self.now):
                one.place = Place.ACTIVE

    @rule()
    def flush(self) -> None:
        self.queue.flush_backoff(self.now)
        self.flush_plainly()
        self.queue.flush_unschedulable(self.now)
        for one in self.in_place(Place.UNSCHEDULABLE):
            if not one.gate and self.now - one.since > 300:
                self.try_again(one)

    # -- what always holds -----------------------------------------------------------------------------------

    @invariant()
    def every_pod_is_where_it_should_be(self) -> None:
        assert len(self.queue) == len(self.plain)
        for uid, one in self.plain.items():
            queued = self.queue.get(uid)
            assert queued is not None
            assert (queued.place, queued.gated_by) == (one.place, one.gate)
        pending = self.queue.pending
        assert pending == {
            "active": len(self.in_place(Place.ACTIVE)),
            "backoff": len(self.in_place(*BACKING_OFF)),
            "unschedulable": sum(not one.gate for one in self.in_place(Place.UNSCHEDULABLE)),
            "gated": sum(bool(one.gate) for one in self.in_place(Place.UNSCHEDULABLE)),
        }
        in_flight = len(self.in_place(Place.IN_FLIGHT))
        assert self.queue.n_in_flight == in_flight
        assert in_flight or not self.queue.n_unseen_changes


Queueing.TestCase.settings = settings(max_examples=120, stateful_step_count=40, deadline=None)
TestQueueing = Queueing.TestCase
