import pytest

from berth.cluster.cluster import Cluster
from berth.framework.changes import object_change, pod_changes
from berth.objects.workloads import Namespace
from berth.scheduling.queueing import Backoff, Place, QueuedPod, SchedulingQueue
from tests.scheduling.queueing.worlds import (
    COMES,
    LEAVES,
    Held,
    a_queue,
    node_comes,
    node_relabelled,
    node_tainted,
    waiting,
)


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


@pytest.fixture
def queue(cluster: Cluster) -> SchedulingQueue:
    return a_queue(cluster)


def names(popped: list[QueuedPod]) -> list[str]:
    return [each.pod.name for each in popped]


def fail(queue: SchedulingQueue, name: str, now: float, *rejected_by: str) -> None:
    queue.unschedulable(f"uid-{name}", rejected_by or ("Comes",), now)


def place(queue: SchedulingQueue, name: str) -> Place:
    queued = queue.get(f"uid-{name}")
    assert queued is not None
    return queued.place


def test_pods_are_popped_by_priority_then_in_the_order_in_which_they_came(
    cluster: Cluster, queue: SchedulingQueue
) -> None:
    for name, priority, now in [("a", 0, 1), ("b", 5, 2), ("c", 0, 0.5), ("d", 5, 2), ("e", -1, 0)]:
        queue.add(waiting(cluster, name, priority), now)
    assert names(queue.pop_batch(3, 10)) == ["b", "d", "c"]
    assert names(queue.pop_batch(9, 10)) == ["a", "e"]
    assert queue.pop_batch(9, 10) == []
    assert queue.n_in_flight == len(queue) == 5


def test_a_new_priority_is_a_new_place(cluster: Cluster, queue: SchedulingQueue) -> None:
    queue.add(waiting(cluster, "a", 1), 0)
    queue.add(waiting(cluster, "b", 2), 0)
    queue.update(waiting(cluster, "a", 3), 1)
    queue.update(waiting(cluster, "b", 2, "x"), 1)
    assert names(queue.pop_batch(9, 1)) == ["a", "b"]


def test_a_pod_waits_for_a_change_that_may_help_and_then_for_the_rest_of_its_backoff(
    cluster: Cluster, queue: SchedulingQueue
) -> None:
    queue.add(waiting(cluster, "a", wants="x"), 0)
    queue.pop_batch(1, 0)
    fail(queue, "a", 0.0)
    assert queue.pending == {"active": 0, "backoff": 0, "unschedulable": 1, "gated": 0}
    queue.change(node_relabelled("x"), 0.1)
    queue.change(node_comes("y"), 0.1)
    assert place(queue, "a") is Place.UNSCHEDULABLE
    queue.change(node_comes("x"), 0.2)
    assert place(queue, "a") is Place.BACKOFF
    queue.flush_backoff(1.9)
    assert place(queue, "a") is Place.BACKOFF  # the wait ends at 1, and the window that begins there at 2
    queue.flush_backoff(2.0)
    assert place(queue, "a") is Place.ACTIVE
    assert queue.incoming == {
        ("active", "UnscheduledPodAdd"): 1,
        ("unschedulable", "ScheduleAttemptFailure"): 1,
        ("backoff", "NodeAdd"): 1,
        ("active", "BackoffComplete"): 1,
    }


def test_a_change_after_the_backoff_makes_a_pod_active(cluster: Cluster, queue: SchedulingQueue) -> None:
    queue.add(waiting(cluster, "a"), 0)
    queue.pop_batch(1, 0)
    fail(queue, "a", 0.0)
    queue.change(node_comes(), 7)
    assert place(queue, "a") is Place.ACTIVE
    assert queue.incoming["active", "NodeAdd"] == 1


def test_where_no_pod_is_active_one_that_backs_off_is_popped(
    cluster: Cluster, queue: SchedulingQueue
) -> None:
    for name in ("a", "b", "c"):
        queue.add(waiting(cluster, name, priority=int(name == "c")), 0)
    queue.pop_batch(3, 0)
    fail(queue, "a", 0.2)
    fail(queue, "b", 0.3)
    queue.error("uid-c", 0.1)
    queue.change(node_comes(), 0.4)
    queue.add(waiting(cluster, "d", -1), 0.4)
    # All waits end in the same window; the one that an error has brought about is not cut short.
    assert names(queue.pop_batch(9, 0.5)) == ["d", "a", "b"]
    assert queue.incoming["active", "PopFromBackoffQ"] == 2
    assert queue.pending == {"active": 0, "backoff": 1, "unschedulable": 0, "gated": 0}
    assert names(queue.pop_batch(9, 2.0)) == ["c"]


def test_changes_while_a_pod_is_decided_are_not_lost(cluster: Cluster, queue: SchedulingQueue) -> None:
    for name in ("a", "b"):
        queue.add(waiting(cluster, name, wants=name), 0)
    queue.change(node_comes("b"), 0)
    queue.pop_batch(2, 0)
    queue.change(node_comes("a"), 0.1)
    queue.change(node_tainted("a"), 0.1)
    assert queue.n_unseen_changes == 1  # nobody heeds the other
    fail(queue, "a", 0.2)
    fail(queue, "b", 0.2)
    assert place(queue, "a") is Place.BACKOFF
    assert place(queue, "b") is Place.UNSCHEDULABLE
    assert queue.n_unseen_changes == 0
    assert queue.incoming["backoff", "ScheduleAttemptFailure"] == 1


def test_a_pod_sees_no_change_from_before_it_was_popped(cluster: Cluster, queue: SchedulingQueue) -> None:
    queue.add(waiting(cluster, "a"), 0)
    queue.add(waiting(cluster, "b"), 0)
    queue.pop_batch(1, 0)
    queue.change(node_comes(), 0)
    queue.pop_batch(1, 0)
    fail(queue, "b", 0)
    assert place(queue, "b") is Place.UNSCHEDULABLE
    assert queue.n_unseen_changes == 1
    fail(queue, "a", 0)
    assert place(queue, "a") is Place.BACKOFF


def test_an_update_while_a_pod_is_decided_counts_when_it_comes_back(
    cluster: Cluster, queue: SchedulingQueue
) -> None:
    queue.add(waiting(cluster, "a"), 0)
    (popped,) = queue.pop_batch(1, 0)
    queue.update(waiting(cluster, "a", better=True), 0.1)
    assert "better" not in popped.pod.labels
    fail(queue, "a", 0.2)
    assert place(queue, "a") is Place.BACKOFF
    assert "better" in popped.pod.labels


def test_an_update_of_a_pod_that_waits_is_judged_by_its_rejectors(
    cluster: Cluster, queue: SchedulingQueue
) -> None:
    for name, rejector in (("a", "Comes"), ("b", "Never"), ("c", "Comes")):
        queue.add(waiting(cluster, name), 0)
        queue.pop_batch(1, 0)
        fail(queue, name, 0, rejector)
    queue.update(waiting(cluster, "a", better=True), 9)
    queue.update(waiting(cluster, "b", better=True), 9)
    queue.update(waiting(cluster, "c", wants="x"), 9)
    assert [place(queue, name) for name in "abc"] == [Place.ACTIVE, Place.UNSCHEDULABLE, Place.UNSCHEDULABLE]
    assert queue.incoming["active", "UnscheduledPodUpdatePodLabel"] == 1
    queue.change(node_comes("x"), 9)
    assert place(queue, "c") is Place.ACTIVE


def test_gates(cluster: Cluster, queue: SchedulingQueue) -> None:
    queue.add(waiting(cluster, "a", gated=True), 0, nominated_node="n")
    assert queue.pending == {"active": 0, "backoff": 0, "unschedulable": 0, "gated": 1}
    assert queue.incoming == {("unschedulable", "UnscheduledPodAdd"): 1}
    queue.change(node_comes(), 1)
    queue.flush_unschedulable(1000)
    queue.activate("uid-a", 1000)
    assert queue.pending["gated"] == 1
    assert len(queue.nominator) == 0
    queue.update(waiting(cluster, "a"), 1001, nominated_node="n")
    assert queue.pending == {"active": 1, "backoff": 0, "unschedulable": 0, "gated": 0}
    queued = queue.get("uid-a")
    assert queued is not None
    assert queued.initial_attempt == 1001
    assert queue.nominator.node_of("uid-a") == "n"


def test_a_gate_that_closes_after_a_failure(cluster: Cluster) -> None:
    held = Held()
    queue = a_queue(cluster, held)
    queue.add(waiting(cluster, "a"), 0)
    queue.pop_batch(1, 0)
    fail(queue, "a", 0, "Leaves")
    held.uids.add("uid-a")
    (gone,) = pod_changes(waiting(cluster, "other"), None)
    queue.change(gone, 5)  # may help as to the filter, so the gate is asked
    assert queue.pending["gated"] == 1
    queue.change(node_relabelled(), 6)  # of no account to the gate
    assert queue.pending["gated"] == 1
    held.uids.clear()
    queue.change(node_relabelled(), 7)
    assert queue.pending["gated"] == 1
    queue.change(gone, 8)
    assert place(queue, "a") is Place.ACTIVE


def test_a_gate_that_is_closed_when_a_pod_comes_back(cluster: Cluster) -> None:
    held = Held()
    queue = a_queue(cluster, held)
    queue.add(waiting(cluster, "a"), 0)
    queue.pop_batch(1, 0)
    held.uids.add("uid-a")
    queue.error("uid-a", 0)
    assert queue.pending["gated"] == 1
    held.uids.clear()
    queue.activate("uid-a", 0.5)
    assert place(queue, "a") is Place.ACTIVE
    assert queue.incoming["active", "ForceActivate"] == 1


def test_after_five_minutes_a_pod_is_tried_again(cluster: Cluster, queue: SchedulingQueue) -> None:
    queue.add(waiting(cluster, "a"), 0)
    queue.pop_batch(1, 0)
    fail(queue, "a", 10, "Never")
    queue.flush_unschedulable(310)
    assert place(queue, "a") is Place.UNSCHEDULABLE
    queue.flush_unschedulable(310.5)
    (popped,) = queue.pop_batch(1, 311)
    assert popped.flushed
    assert queue.incoming["active", "UnschedulableTimeout"] == 1
    fail(queue, "a", 311, "Never")
    assert not popped.flushed


def test_a_rejector_that_is_not_known_is_helped_by_whatever_is_heeded(
    cluster: Cluster, queue: SchedulingQueue
) -> None:
    queue.add(waiting(cluster, "a"), 0)
    queue.pop_batch(1, 0)
    fail(queue, "a", 0, "Extender")
    queue.change(node_tainted(), 5)
    assert place(queue, "a") is Place.UNSCHEDULABLE
    queue.change(node_relabelled("x"), 5)
    assert place(queue, "a") is Place.ACTIVE


def test_who_is_deleted_is_nowhere(cluster: Cluster, queue: SchedulingQueue) -> None:
    for name in ("flying", "stuck", "backing-off"):
        queue.add(waiting(cluster, name, wants=name), 0)
    queue.add(waiting(cluster, "gated", gated=True), 0)
    queue.pop_batch(3, 0)
    queue.error("uid-backing-off", 0)
    fail(queue, "stuck", 0)
    queue.add(waiting(cluster, "ready"), 0)
    for name in ("flying", "stuck", "backing-off", "gated", "ready", "never-seen"):
        queue.delete(f"uid-{name}", 1)
    assert len(queue) == queue.n_in_flight == 0
    assert not any(queue.pending.values())
    fail(queue, "flying", 1)  # its decision ends later
    queue.done("uid-flying")
    assert len(queue) == 0
    queue.change(node_comes("stuck"), 100)
    assert queue.pop_batch(9, 100) == []


def test_a_pod_that_is_done_is_gone(cluster: Cluster, queue: SchedulingQueue) -> None:
    queue.add(waiting(cluster, "a"), 0)
    queue.done("uid-a")  # it is not in flight
    assert len(queue) == 1
    (popped,) = queue.pop_batch(1, 0)
    queue.done("uid-a")
    assert (len(queue), popped.place, popped.attempts) == (0, Place.NOWHERE, 1)


def test_activate(cluster: Cluster, queue: SchedulingQueue) -> None:
    for name in ("a", "b"):
        queue.add(waiting(cluster, name, wants=name), 0)
    queue.pop_batch(2, 0)
    fail(queue, "a", 0, "Never")
    queue.activate("uid-a", 0.1)
    assert place(queue, "a") is Place.ACTIVE
    queue.activate("uid-b", 0.1)  # in flight: it is tried again should it fail, after its wait
    fail(queue, "b", 0.2, "Never")
    assert place(queue, "b") is Place.BACKOFF
    queue.activate("uid-b", 0.3)
    assert place(queue, "b") is Place.ACTIVE
    queue.activate("uid-nobody", 0.3)
    assert names(queue.pop_batch(9, 0.3)) == ["a", "b"]


def test_what_is_counted_of_attempts(cluster: Cluster, queue: SchedulingQueue) -> None:
    queue.add(waiting(cluster, "a"), 3)
    (popped,) = queue.pop_batch(1, 4)
    queue.error("uid-a", 5)
    assert (popped.consecutive_errors, popped.unschedulable_count) == (1, 0)
    queue.pop_batch(1, 7)
    queue.error("uid-a", 8)
    assert (popped.consecutive_errors, popped.unschedulable_count) == (2, 0)
    queue.pop_batch(1, 11)
    fail(queue, "a", 12)
    assert (popped.consecutive_errors, popped.unschedulable_count) == (0, 1)
    assert (popped.attempts, popped.initial_attempt, popped.timestamp) == (3, 3, 12)


def test_without_backoff_a_pod_is_active_at_once(cluster: Cluster) -> None:
    queue = a_queue(cluster, backoff=Backoff(longest=0))
    queue.add(waiting(cluster, "a"), 0)
    queue.pop_batch(1, 0)
    queue.error("uid-a", 0)
    assert place(queue, "a") is Place.ACTIVE


def test_pods_of_a_shape_are_asked_for_once(cluster: Cluster, queue: SchedulingQueue) -> None:
    uids = [f"uid-{i}" for i in range(50)]
    for i in range(50):
        queue.add(waiting(cluster, str(i), wants=str(i % 5)), 0)
    queue.pop_batch(50, 0)
    queue.change(node_comes("nobody"), 0)
    before = COMES.n_asked
    for uid in uids:
        queue.unschedulable(uid, ["Comes"], 1)
    assert COMES.n_asked == before + 5
    queue.change(node_comes("3"), 5)
    assert COMES.n_asked == before + 10
    assert queue.pending["active"] == 10
    queue.change(node_tainted("3"), 5)
    assert COMES.n_asked == before + 10


def test_a_pod_that_loses_its_nomination_helps_pods_that_had_to_count_it(
    cluster: Cluster, queue: SchedulingQueue
) -> None:
    for name, priority in (("low", 1), ("equal", 2), ("high", 3), ("nominated", 2)):
        queue.add(waiting(cluster, name, priority), 0, nominated_node="n" if name == "nominated" else "")
    queue.pop_batch(4, 0)
    for name in ("low", "equal", "high", "nominated"):
        fail(queue, name, 0, "Leaves")
    queue.update(waiting(cluster, "nominated", 2), 5, nominated_node="m")
    assert [place(queue, name) for name in ("low", "equal", "high")] == [
        Place.ACTIVE,
        Place.ACTIVE,
        Place.UNSCHEDULABLE,
    ]
    assert queue.nominator.node_of("uid-nominated") == "m"
    queue.pop_batch(3, 5)
    fail(queue, "low", 5, "Leaves")
    queue.delete("uid-nominated", 20, is_bound=True)
    assert place(queue, "low") is Place.UNSCHEDULABLE


def test_nominations_of_pods_that_come_back(cluster: Cluster, queue: SchedulingQueue) -> None:
    queue.add(waiting(cluster, "a"), 0)
    queue.pop_batch(1, 0)
    queue.unschedulable("uid-a", ["Never"], 0, nominated_node="n")
    assert queue.nominator.node_of("uid-a") == "n"
    queue.update(waiting(cluster, "a", wants="x"), 0)  # its status does not say so yet
    assert queue.nominator.node_of("uid-a") == "n"
    queue.update(waiting(cluster, "a"), 0, nominated_node="n")
    queue.activate("uid-a", 0)
    queue.pop_batch(1, 0)
    queue.error("uid-a", 0)
    assert queue.nominator.node_of("uid-a") == "n"
    queue.activate("uid-a", 0)
    queue.pop_batch(1, 0)
    queue.error("uid-a", 0, nominated_node="")
    assert queue.nominator.node_of("uid-a") == ""
    queue.delete("uid-a", 0)
    assert len(queue.nominator) == 0


def test_about_pods_of_a_shape_that_go_is_asked_once(cluster: Cluster, queue: SchedulingQueue) -> None:
    queue.add(waiting(cluster, "a", wants="x"), 0)
    queue.pop_batch(1, 0)
    fail(queue, "a", 0, "Leaves")
    before = LEAVES.n_asked

    def goes(name: str, gives: str) -> int:
        (gone,) = pod_changes(waiting(cluster, name, gives=gives), None)
        queue.change(gone, 5)
        return LEAVES.n_asked - before

    assert [goes("b", "y"), goes("c", "y"), goes("d", "z"), goes("e", "y")] == [1, 1, 2, 2]
    namespace = object_change(Namespace(), Namespace())
    assert namespace is not None
    queue.change(namespace, 5)  # which affinity may hang on
    assert [goes("f", "y"), goes("g", "y")] == [4, 4]
    goes("h", "x")
    assert place(queue, "a") is Place.ACTIVE
