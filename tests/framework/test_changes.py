from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from berth.cluster.cluster import Cluster
from berth.framework.changes import (
    Action,
    Resource,
    label,
    node_changes,
    object_change,
    own_changes,
    pod_changes,
)
from berth.objects.base import ObjectMeta
from berth.objects.nodes import Node
from berth.objects.pods import SchedulingGate
from berth.objects.storage import StorageClass
from tests.builders import a_node, a_pod, a_replica_set, a_service

NODE = a_node("n", cpu="4", labels={"a": "1"}, taints=["spot:NoSchedule"], unschedulable=True)


def updated(**more: Any) -> Node:
    values: dict[str, Any] = {
        "cpu": "4",
        "labels": {"a": "1"},
        "taints": ["spot:NoSchedule"],
        "unschedulable": True,
    }
    return a_node("n", **(values | more))


def in_respects(old: Node, new: Node) -> list[str]:
    return [label(change.event) for change in node_changes(old, new)]


@pytest.mark.parametrize(
    ("new", "events"),
    [
        (NODE, []),
        (updated(cpu="4000m"), []),
        (updated(cpu="3"), ["NodeUpdateNodeAllocatable"]),
        (updated(labels={"a": "2"}), ["NodeUpdateNodeLabel"]),
        (updated(taints=[]), ["NodeUpdateNodeTaint"]),
        (updated(unschedulable=False), ["NodeUpdateNodeTaint"]),
        (updated(unschedulable=False, taints=[]), ["NodeUpdateNodeTaint"]),
        (updated(conditions={"Ready": "False"}), ["NodeUpdateNodeCondition"]),
        (
            replace(NODE, metadata=replace(NODE.metadata, annotations={"a": "1"})),
            ["NodeUpdateNodeAnnotation"],
        ),
        (
            replace(NODE, status=replace(NODE.status, declared_features=("x",))),
            ["NodeUpdateNodeDeclaredFeature"],
        ),
        (updated(cpu="5", labels={}), ["NodeUpdateNodeAllocatable", "NodeUpdateNodeLabel"]),
    ],
)
def test_in_which_respects_a_node_has_changed(new: Node, events: list[str]) -> None:
    assert in_respects(NODE, new) == events


def test_a_node_that_is_closed_helps_nobody() -> None:
    assert in_respects(updated(unschedulable=False), NODE) == []


def test_what_comes_and_goes() -> None:
    cluster = Cluster()
    pod = cluster.incoming(a_pod("a"))
    assert [label(change.event) for change in node_changes(None, NODE)] == ["NodeAdd"]
    assert [label(change.event) for change in node_changes(NODE, None)] == ["NodeDelete"]
    assert [label(change.event) for change in pod_changes(None, pod)] == ["AssignedPodAdd"]
    assert [label(change.event) for change in pod_changes(pod, None)] == ["AssignedPodDelete"]


@pytest.mark.parametrize("told", [pod_changes, own_changes])
def test_in_which_respects_a_pod_has_changed(told: Callable[..., Any]) -> None:
    cluster = Cluster()

    def actions(old: dict[str, Any], new: dict[str, Any], n_gates: tuple[int, int] = (0, 0)) -> list[Action]:
        made = []
        for values, n in zip((old, new), n_gates, strict=True):
            pod = a_pod("a", **values)
            gates = tuple(SchedulingGate(name=str(i)) for i in range(n))
            made.append(cluster.incoming(replace(pod, spec=replace(pod.spec, scheduling_gates=gates))))
        return [change.action for change in told(*made)]

    assert actions({"labels": {"a": "1"}}, {}) == [Action.UPDATE_POD_LABEL]
    assert actions({"cpu": "2"}, {"cpu": "1"}) == [Action.UPDATE_POD_SCALE_DOWN]
    assert actions({"cpu": "0"}, {}) == [Action.UPDATE_POD_SCALE_DOWN]
    assert actions({"cpu": "1"}, {"cpu": "2"}) == [Action.UPDATE]
    assert actions({}, {"tolerations": ["a:NoSchedule"]}) == [Action.UPDATE_POD_TOLERATION]
    assert actions({}, {}, (2, 0)) == [Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED]
    assert actions({}, {}, (2, 1)) == [Action.UPDATE]
    assert actions({"cpu": "2"}, {"labels": {"a": "1"}}) == [
        Action.UPDATE_POD_LABEL,
        Action.UPDATE_POD_SCALE_DOWN,
    ]


def test_objects_of_other_kinds() -> None:
    storage_class = StorageClass(metadata=ObjectMeta(name="fast"))
    added = object_change(None, storage_class)
    assert added is not None
    assert added.event == (Resource.STORAGE_CLASS, Action.ADD)
    updated = object_change(storage_class, storage_class)
    assert updated is not None
    assert label(updated.event) == "StorageClassUpdate"
    deleted = object_change(a_service("web"), None)
    assert deleted is not None
    assert label(deleted.event) == "ServiceDelete"
    assert object_change(None, a_replica_set("web")) is None
