"""What happens to a cluster, told so that a plugin can say whether it may help a pod that waits. Knows no plugin.

Source: 1.36, ``pkg/scheduler/framework/events.go`` and ``kube-scheduler/framework/types.go``.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import IntFlag, StrEnum
from functools import cache, cached_property
from typing import Any, ClassVar

from berth.cluster.accounting import Amounts, amounts
from berth.cluster.cluster import Incoming
from berth.cluster.objects import NamedObject
from berth.objects.nodes import Node


class Resource(StrEnum):
    """What changes; upstream's words. Plugins there ask for ``Pod`` and mean one of the two kinds here."""

    NODE = "Node"
    ASSIGNED_POD = "AssignedPod"
    """A pod on a node, or nominated for one."""
    UNSCHEDULED_POD = "UnscheduledPod"
    """The pod that waits itself."""
    PERSISTENT_VOLUME = "PersistentVolume"
    PERSISTENT_VOLUME_CLAIM = "PersistentVolumeClaim"
    STORAGE_CLASS = "StorageClass"
    CSI_NODE = "CSINode"
    CSI_DRIVER = "CSIDriver"
    CSI_STORAGE_CAPACITY = "CSIStorageCapacity"
    VOLUME_ATTACHMENT = "VolumeAttachment"
    NAMESPACE = "Namespace"
    """Not among upstream's: see `berth.plugins.inter_pod_affinity.hints`."""
    SERVICE = "Service"
    """Likewise; only predicates of before 1.17 look at services."""


class Action(IntFlag):
    """How it changes; `UPDATE` is an update of which nothing more is known, and stands for all kinds of it."""

    NOTHING = 0
    ADD = 1 << 0
    DELETE = 1 << 1
    UPDATE_NODE_ALLOCATABLE = 1 << 2
    UPDATE_NODE_LABEL = 1 << 3
    UPDATE_NODE_TAINT = 1 << 4
    """Of taints or of ``spec.unschedulable``."""
    UPDATE_NODE_CONDITION = 1 << 5
    UPDATE_NODE_ANNOTATION = 1 << 6
    UPDATE_NODE_DECLARED_FEATURE = 1 << 7
    UPDATE_POD_LABEL = 1 << 8
    UPDATE_POD_SCALE_DOWN = 1 << 9
    UPDATE_POD_TOLERATION = 1 << 10
    UPDATE_POD_SCHEDULING_GATES_ELIMINATED = 1 << 11
    UPDATE = (1 << 12) - 4
    ALL = (1 << 12) - 1


Event = tuple[Resource, Action]
Wakes = Mapping[Resource, Action]
"""The changes that a plugin wants to be asked about: upstream's ``EventsToRegister``."""

_HEEDED = frozenset(Resource)
EVERYTHING: Wakes = dict.fromkeys(Resource, Action.ALL)


@cache
def label(event: Event) -> str:
    """Return upstream's name of an event: ``NodeAdd``, ``AssignedPodUpdatePodLabel``."""
    resource, action = event
    return resource + "".join(part.capitalize() for part in (action.name or "").split("_"))


@dataclass(frozen=True)
class _Change:
    """What all changes have in common; ``old`` is absent of what is added, ``new`` of what is deleted."""

    action: Action
    old: Any
    new: Any
    resource: ClassVar[Resource]

    @property
    def event(self) -> Event:
        """Resource and action."""
        return self.resource, self.action


@dataclass(frozen=True)
class NodeChange(_Change):
    """A node came, went or was updated in one respect."""

    old: Node | None
    new: Node | None
    resource = Resource.NODE

    @cached_property
    def offered(self) -> Amounts:
        """What the node offers now, by resource."""
        return amounts(self.new.status.allocatable) if self.new else {}

    @cached_property
    def offered_before(self) -> Amounts:
        """What it offered before."""
        return amounts(self.old.status.allocatable) if self.old else {}


@dataclass(frozen=True)
class AssignedPodChange(_Change):
    """A pod on a node (or nominated for one) came there, went or was updated in one respect.

    Attributes
    ----------
    max_priority : int or None
        The highest priority of pods that it may help: those above never counted it, since it was only nominated.
    """

    old: Incoming | None
    new: Incoming | None
    max_priority: int | None = None
    resource = Resource.ASSIGNED_POD


@dataclass(frozen=True)
class OwnChange(_Change):
    """The pod that waits was itself updated in one respect."""

    old: Incoming
    new: Incoming
    resource = Resource.UNSCHEDULED_POD


@dataclass(frozen=True)
class ObjectChange(_Change):
    """An object of another kind came, went or was updated."""

    old: NamedObject | None
    new: NamedObject | None

    @cached_property
    def resource(self) -> Resource:  # type: ignore[override]
        """What kind it is of."""
        return Resource(type(self.new or self.old).__name__)


Change = NodeChange | AssignedPodChange | OwnChange | ObjectChange
Hint = Callable[[Change], bool]
"""Tells whether a change may help a certain pod: upstream's ``QueueingHintFn``, made once for many changes."""


def helps_always(change: Change) -> bool:
    """Say yes, as upstream does where a plugin has no hint of its own."""
    return True


def node_changes(old: Node | None, new: Node | None) -> tuple[NodeChange, ...]:
    """Tell in which respects a node has changed (``NodeSchedulingPropertiesChange``); none that matters is no change."""
    if old is None or new is None:
        return (NodeChange(Action.DELETE if new is None else Action.ADD, old, new),)
    return tuple(NodeChange(action, old, new) for action in dict.fromkeys(_node_updates(old, new)))


def _node_updates(old: Node, new: Node) -> Iterator[Action]:
    if old.spec.unschedulable and not new.spec.unschedulable:
        yield Action.UPDATE_NODE_TAINT
    if amounts(old.status.allocatable) != amounts(new.status.allocatable):
        yield Action.UPDATE_NODE_ALLOCATABLE
    if old.metadata.labels != new.metadata.labels:
        yield Action.UPDATE_NODE_LABEL
    if old.spec.taints != new.spec.taints:
        yield Action.UPDATE_NODE_TAINT
    if _conditions(old) != _conditions(new):
        yield Action.UPDATE_NODE_CONDITION
    if old.metadata.annotations != new.metadata.annotations:
        yield Action.UPDATE_NODE_ANNOTATION
    if old.status.declared_features != new.status.declared_features:
        yield Action.UPDATE_NODE_DECLARED_FEATURE


def _conditions(node: Node) -> dict[str, str]:
    return {condition.type: condition.status for condition in node.status.conditions}


def pod_changes(old: Incoming | None, new: Incoming | None) -> tuple[AssignedPodChange, ...]:
    """Tell in which respects a pod on a node has changed (``PodSchedulingPropertiesChange``)."""
    if old is None or new is None:
        return (AssignedPodChange(Action.DELETE if new is None else Action.ADD, old, new),)
    return tuple(AssignedPodChange(action, old, new) for action in _pod_updates(old, new))


def own_changes(old: Incoming, new: Incoming) -> tuple[OwnChange, ...]:
    """Tell the same of a pod that waits, for its own sake."""
    return tuple(OwnChange(action, old, new) for action in _pod_updates(old, new))


def _pod_updates(old: Incoming, new: Incoming) -> tuple[Action, ...]:
    before, after = old.info.spec, new.info.spec
    in_respects = {
        Action.UPDATE_POD_LABEL: old.labels != new.labels,
        Action.UPDATE_POD_SCALE_DOWN: any(
            amount > new.info.held.get(resource_id, -1) for resource_id, amount in old.info.held.items()
        ),
        Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED: bool(
            before.scheduling_gates and not after.scheduling_gates
        ),
        # The API lets nobody take a toleration away.
        Action.UPDATE_POD_TOLERATION: len(before.tolerations) != len(after.tolerations),
    }
    return tuple(action for action, changed in in_respects.items() if changed) or (Action.UPDATE,)


def object_change(old: NamedObject | None, new: NamedObject | None) -> ObjectChange | None:
    """Tell of an object of another kind; None if it is of a kind that no filter looks at."""
    if type(new or old).__name__ not in _HEEDED:
        return None
    action = Action.UPDATE if old and new else Action.ADD if new else Action.DELETE
    return ObjectChange(action, old, new)
