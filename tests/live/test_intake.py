"""What the queue hears of events."""

from typing import Any

import msgspec
import pytest

from berth.framework.changes import Action, Resource
from berth.live.events import Event
from berth.live.intake import Intake
from berth.live.state import ClusterState
from berth.objects.pods import Pod, SchedulingGate
from berth.releases.modern import RELEASE_1_36
from berth.releases.profiles import provider_profile
from berth.releases.release import Options
from berth.scheduling.queueing import Hints, SchedulingQueue
from tests.builders import a_cluster, a_node, a_pod, a_service
from tests.live.test_state import event

FIT = "NodeResourcesFit"


class World:
    """A queue for the pods of scheduler berth, and time that a test makes."""

    def __init__(self) -> None:
        self.cluster = a_cluster()
        self.state = ClusterState(self.cluster)
        profiles = {"berth": provider_profile(RELEASE_1_36, Options())}
        self.queue = SchedulingQueue(Hints(self.cluster, profiles))
        self.now = 0.0
        self.intake = Intake(self.cluster, self.queue, profiles, lambda: self.now)
        self.heard: list[tuple[Resource, Action]] = []

    def tell(self, type_: Any, kind: str, name: str, item: object = None) -> Event:
        told = event(type_, kind, name, f"uid-{name}", item)
        self.state.apply(told)
        self.intake.take(told)
        return told

    def unschedulable(self, name: str, *rejected_by: str) -> None:
        """Have a pod turned away that was popped, and let its wait go by."""
        (popped,) = self.queue.pop_batch(1, self.now)
        assert popped.uid == f"uid-{name}"
        self.queue.unschedulable(popped.uid, rejected_by, self.now)
        self.now += 20.0

    @property
    def active(self) -> int:
        return self.queue.pending["active"]


def ours(name: str = "p", scheduler: str = "berth", **more: Any) -> Pod:
    pod = a_pod(name, phase="Pending", **more)
    return msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, scheduler_name=scheduler))


def with_status(pod: Pod, **status: Any) -> Pod:
    return msgspec.structs.replace(pod, status=msgspec.structs.replace(pod.status, **status))


@pytest.mark.parametrize(
    ("pod", "waits"),
    [
        (ours(), True),
        (ours(scheduler="other"), False),
        (ours(scheduler=""), False),
        (ours(node="n1"), False),
        (ours(terminating=True), False),
        (with_status(ours(), phase="Failed"), False),
    ],
)
def test_pods_that_name_us_and_have_no_node_wait(pod: Pod, waits: bool) -> None:
    world = World()
    world.tell("ADDED", "Pod", "p", pod)
    assert len(world.queue) == waits
    assert ("uid-p" in world.intake.waiting) == waits


@pytest.mark.parametrize(
    "ending",
    [
        ("MODIFIED", ours(node="n1")),
        ("MODIFIED", ours(terminating=True)),
        ("MODIFIED", with_status(ours(), phase="Succeeded")),
        ("DELETED", None),
    ],
)
def test_pods_that_are_bound_or_end_wait_no_longer(ending: tuple[str, Pod | None]) -> None:
    world = World()
    world.tell("ADDED", "Pod", "p", ours())
    world.tell(ending[0], "Pod", "p", ending[1])
    assert len(world.queue) == 0
    assert not world.intake.waiting


def test_an_update_of_the_status_wakes_nobody_and_one_of_the_spec_does() -> None:
    world = World()
    world.tell("ADDED", "Pod", "p", ours(cpu="2"))
    world.unschedulable("p", FIT)
    world.tell("MODIFIED", "Pod", "p", with_status(ours(cpu="2"), nominated_node_name="n1"))
    assert world.active == 0
    assert world.queue.nominator.node_of("uid-p") == "n1"
    world.tell("MODIFIED", "Pod", "p", ours(cpu="1"))
    assert world.active == 1


def test_a_gate_that_goes_lets_the_pod_go() -> None:
    world = World()
    gated = ours()
    gates = (SchedulingGate(name="example.com/wait"),)
    gated = msgspec.structs.replace(gated, spec=msgspec.structs.replace(gated.spec, scheduling_gates=gates))
    world.tell("ADDED", "Pod", "p", gated)
    assert world.queue.pending["gated"] == 1
    world.tell("MODIFIED", "Pod", "p", ours())
    assert world.active == 1


def test_nodes_and_pods_on_them_wake_those_whom_they_help() -> None:
    world = World()
    world.tell("ADDED", "Node", "n1", a_node("n1", cpu="1"))
    world.tell("ADDED", "Pod", "there", a_pod("there", node="n1", cpu="1"))
    world.tell("ADDED", "Pod", "p", ours(cpu="2"))
    world.unschedulable("p", FIT)
    # Neither a node that is too small nor one that gives less helps; nor does a pod that asks for less of its own accord.
    world.tell("ADDED", "Node", "n2", a_node("n2", cpu="1"))
    world.tell("DELETED", "Node", "n2", a_node("n2", cpu="1"))
    world.tell("MODIFIED", "Node", "n1", a_node("n1", cpu="1", zone="a"))
    assert world.active == 0
    world.tell("MODIFIED", "Node", "n1", a_node("n1", cpu="4", zone="a"))
    assert world.active == 1
    world.unschedulable("p", FIT)
    world.tell("DELETED", "Pod", "there", None)
    assert world.active == 1


def test_a_pod_that_is_done_frees_its_node_without_being_deleted() -> None:
    world = World()
    world.tell("ADDED", "Node", "n1", a_node("n1"))
    world.tell("ADDED", "Pod", "there", a_pod("there", node="n1", cpu="1"))
    world.tell("ADDED", "Pod", "p", ours(cpu="2"))
    world.unschedulable("p", FIT)
    world.tell("MODIFIED", "Pod", "there", a_pod("there", node="n1", cpu="1", ready_since=5))
    assert world.active == 0
    world.tell("MODIFIED", "Pod", "there", a_pod("there", node="n1", cpu="1", phase="Succeeded"))
    assert world.active == 1


def test_objects_of_other_kinds_wake_too_and_kinds_that_nobody_heeds_do_not() -> None:
    world = World()
    world.tell("ADDED", "Pod", "p", ours())
    world.unschedulable("p", "VolumeBinding")
    world.tell("ADDED", "Service", "s", a_service("s"))
    assert world.active == 0
    storage_class = {"metadata": {"name": "fast"}, "provisioner": "example.com/disk"}
    world.tell("ADDED", "StorageClass", "fast", storage_class)
    assert world.active == 1


def test_a_pod_as_a_row_is_the_pod_as_it_was_decoded() -> None:
    world = World()
    pod = ours(labels={"b": "2", "a": "1"}, cpu="2", owner="web", node="n1")
    told = world.tell("ADDED", "Pod", "p", pod)
    assert told.values is not None
    assert world.cluster.incoming_of(told.values) == world.cluster.incoming(pod)
