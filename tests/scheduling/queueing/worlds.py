"""Pods that wait, and filters that are as simple as can be: a change helps those whose label ``wants`` it names."""

from typing import Any

from msgspec.structs import replace

from berth.cluster.cluster import Cluster, Incoming
from berth.framework.changes import (
    Action,
    AssignedPodChange,
    Change,
    Hint,
    NodeChange,
    OwnChange,
    Resource,
    Wakes,
)
from berth.framework.plugin import FilterPlugin
from berth.framework.profile import NamedFilter, Profile
from berth.objects.base import ObjectMeta
from berth.objects.nodes import Node
from berth.objects.pods import SchedulingGate
from berth.scheduling.queueing import Gate, Hints, SchedulingGates, SchedulingQueue
from tests.builders import a_pod


class Fake(FilterPlugin[Any]):
    """Helped by nodes and pods whose label ``gives`` is what its label ``wants`` says, and by labels of its own."""

    def __init__(self, name: str, wakes_on: Wakes) -> None:
        self.name = name  # type: ignore[misc]
        self.wakes_on = wakes_on  # type: ignore[misc]
        self.n_asked = 0

    def hint(self, pod: Incoming, cluster: Cluster) -> Hint:
        def helps(change: Change) -> bool:
            self.n_asked += 1
            match change:
                case NodeChange(new=Node(metadata=meta)):
                    return meta.labels.get("gives") == pod.labels.get("wants")
                case AssignedPodChange(old=Incoming(labels=labels)):
                    return labels.get("gives") == pod.labels.get("wants")
                case OwnChange(new=new):
                    return "better" in new.labels
            return False

        return helps


COMES = Fake("Comes", {Resource.NODE: Action.ADD, Resource.UNSCHEDULED_POD: Action.UPDATE_POD_LABEL})
LEAVES = Fake(
    "Leaves",
    {
        Resource.NODE: Action.DELETE | Action.UPDATE_NODE_LABEL,
        Resource.ASSIGNED_POD: Action.DELETE,
        Resource.NAMESPACE: Action.UPDATE,
    },
)
NEVER = Fake("Never", {})
FILTERS = {each.name: each for each in (COMES, LEAVES, NEVER)}


class Held:
    """A gate that is open or not for certain pods; it heeds pods that go."""

    name = "Held"
    wakes_on: Wakes = {Resource.ASSIGNED_POD: Action.DELETE}

    def __init__(self) -> None:
        self.uids: set[str] = set()

    def holds(self, pod: Incoming) -> bool:
        return pod.uid in self.uids

    def hint(self, pod: Incoming, cluster: Cluster) -> Hint:
        return lambda change: False


def a_queue(cluster: Cluster, held: Held | None = None, **more: Any) -> SchedulingQueue:
    profile = Profile(tuple(NamedFilter(name, plugin) for name, plugin in FILTERS.items()), ())
    gates: list[Gate] = [SchedulingGates()] + ([held] if held else [])
    return SchedulingQueue(Hints(cluster, {"default-scheduler": profile}, gates), **more)


def waiting(
    cluster: Cluster,
    name: str,
    priority: int = 0,
    wants: str = "",
    *,
    gives: str = "",
    gated: bool = False,
    better: bool = False,
    **more: Any,
) -> Incoming:
    """A pod that has no node."""
    labels = {"wants": wants, "gives": gives, "better": "1" if better else ""}
    labels = {key: value for key, value in labels.items() if value}
    pod = a_pod(name, phase="Pending", labels=labels, **more)
    gates = (SchedulingGate(name="later"),) if gated else ()
    return cluster.incoming(replace(pod, spec=replace(pod.spec, priority=priority, scheduling_gates=gates)))


def node_comes(gives: str = "") -> NodeChange:
    return NodeChange(Action.ADD, None, _node(gives))


def node_relabelled(gives: str = "") -> NodeChange:
    return NodeChange(Action.UPDATE_NODE_LABEL, _node(""), _node(gives))


def node_tainted(gives: str = "") -> NodeChange:
    """A change that no filter heeds."""
    return NodeChange(Action.UPDATE_NODE_TAINT, _node(gives), _node(gives))


def _node(gives: str) -> Node:
    return Node(metadata=ObjectMeta(name="n", labels={"gives": gives} if gives else {}))
