"""Nodes, as far as scheduling reads them."""

from berth.objects.base import KubernetesStruct, ObjectMeta, ResourceList


class Taint(KubernetesStruct, frozen=True):
    """What keeps pods off a node unless they tolerate it."""

    key: str = ""
    value: str = ""
    effect: str = ""


class NodeSpec(KubernetesStruct, frozen=True):
    """What an administrator wants of the node."""

    unschedulable: bool = False
    taints: tuple[Taint, ...] = ()


class NodeCondition(KubernetesStruct, frozen=True):
    """A condition of a node: Ready, MemoryPressure, …"""

    type: str = ""
    status: str = ""


class ContainerImage(KubernetesStruct, frozen=True):
    """An image that lies on the node."""

    names: tuple[str, ...] = ()
    size_bytes: int = 0


class NodeStatus(KubernetesStruct, frozen=True):
    """What the node offers and how it fares."""

    capacity: ResourceList = {}
    allocatable: ResourceList = {}
    conditions: tuple[NodeCondition, ...] = ()
    images: tuple[ContainerImage, ...] = ()
    declared_features: tuple[str, ...] = ()


class Node(KubernetesStruct, frozen=True):
    """A node."""

    metadata: ObjectMeta = ObjectMeta()
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()
