"""Turns: pods decided many at once end up where they do one at a time, room made for some of them included."""

from collections.abc import Iterator, Sequence

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from berth.cluster.cluster import Cluster
from berth.framework.profile import Profile
from berth.objects.base import ObjectMeta
from berth.objects.pods import Pod
from berth.objects.storage import PersistentVolumeClaim, PersistentVolumeClaimSpec, StorageClass
from berth.releases.modern import RELEASE_1_36
from berth.releases.profiles import provider_profile
from berth.releases.release import Options
from berth.scheduling.queueing import Nominator, QueuedPod
from berth.scheduling.turns import Placed, Turn, Turned, Turns
from tests.builders import a_cluster, a_node, a_pod

PROFILE: Profile = provider_profile(RELEASE_1_36, Options())
ZONE = "topology.kubernetes.io/zone"
NODES = [a_node("n1", cpu="4"), a_node("n2", cpu="4", zone="a"), a_node("n3", cpu="2", zone="a")]


def queued(cluster: Cluster, pods: Sequence[Pod]) -> list[QueuedPod]:
    with_uids = [
        msgspec.structs.replace(pod, metadata=msgspec.structs.replace(pod.metadata, uid=f"uid-{i}"))
        for i, pod in enumerate(pods)
    ]
    return sorted(
        (QueuedPod(cluster.incoming(pod), 0.0, i) for i, pod in enumerate(with_uids)),
        key=lambda each: each.order,
    )


def carried_out(cluster: Cluster, nominator: Nominator, turns: Iterator[Turn]) -> dict[str, object]:
    """What became of each pod, told to the nominator as the scheduler does."""
    found: dict[str, object] = {}
    for turn in turns:
        for placed in turn.placed:
            nominator.remove(placed.queued.uid)
            found[placed.queued.uid] = cluster.nodes.names[placed.row]
        for turned in turn.turned:
            if turned.nominated_node is not None:
                nominator.put(turned.queued.pod, turned.nominated_node)
            found[turned.queued.uid] = room_of(cluster, turned)
    return found


def room_of(cluster: Cluster, turned: Turned) -> object:
    if turned.preemption is None:
        return None
    specs = cluster.pods.column("spec_id")
    priorities = [cluster.specs[int(specs[victim])].priority for victim in turned.preemption.victims]
    return cluster.nodes.names[turned.preemption.row], priorities, len(turned.preemption.cleared)


def holds(cluster: Cluster) -> list[tuple[int, int]]:
    on_nodes = cluster.pods.alive
    return sorted(
        zip(
            cluster.pods.node_row[on_nodes].tolist(),
            cluster.pods.column("spec_id")[on_nodes].tolist(),
            strict=True,
        )
    )


pods = st.builds(
    a_pod,
    st.just("p"),
    cpu=st.sampled_from(["2", "500m", "3"]),
    node_selector=st.sampled_from([{}, {}, {ZONE: "a"}, {ZONE: "nowhere"}]),
    priority=st.sampled_from([5, 0, 9]),
    preemption_policy=st.sampled_from([None, None, "Never"]),
)


@settings(max_examples=60, deadline=None)
@given(
    there=st.lists(st.tuples(pods, st.sampled_from(["n1", "n2", "n3"])), max_size=8),
    coming=st.lists(pods, min_size=1, max_size=14),
    nominated=st.sampled_from([None, None, "n1", "n2"]),
)
def test_a_batch_is_what_one_at_a_time_gives(
    there: list[tuple[Pod, str]], coming: list[Pod], nominated: str | None
) -> None:
    def world() -> tuple[Cluster, Nominator, list[QueuedPod]]:
        cluster = a_cluster(*NODES)
        for i, (pod, node) in enumerate(there):
            meta = msgspec.structs.replace(pod.metadata, name=f"there-{i}")
            spec = msgspec.structs.replace(pod.spec, node_name=node)
            cluster.put_pod(msgspec.structs.replace(pod, metadata=meta, spec=spec))
        nominator, waiting = Nominator(), queued(cluster, coming)
        if nominated is not None:
            nominator.put(waiting[0].pod, nominated)
        return cluster, nominator, waiting

    cluster, nominator, waiting = world()
    together = carried_out(
        cluster, nominator, Turns(cluster, {"default-scheduler": PROFILE}, nominator).decide(waiting)
    )
    alone_cluster, nominator, waiting = world()
    turns = Turns(alone_cluster, {"default-scheduler": PROFILE}, nominator)
    alone: dict[str, object] = {}
    for each in waiting:
        alone |= carried_out(alone_cluster, nominator, turns.decide([each]))
    assert together == alone
    assert holds(cluster) == holds(alone_cluster)


def decided(cluster: Cluster, nominator: Nominator, *pods_: Pod) -> list[Placed | Turned]:
    turns = Turns(cluster, {"default-scheduler": PROFILE}, nominator).decide(queued(cluster, pods_))
    found: list[Placed | Turned] = []
    for turn in turns:
        found += [*turn.placed, *turn.turned]
    return found


def test_room_that_was_promised_to_a_more_important_pod_is_left_to_it() -> None:
    cluster, nominator = a_cluster(a_node("n1", cpu="4")), Nominator()
    vip = a_pod("vip", cpu="3", priority=9)
    nominator.put(cluster.incoming(vip), "n1")
    (outcome,) = decided(cluster, nominator, a_pod("p", cpu="2"))
    assert isinstance(outcome, Turned)
    assert outcome.message.startswith("0/1 nodes are available: 1 Insufficient cpu. preemption: ")
    assert outcome.rejected_by == {"NodeResourcesFit"}
    (small,) = decided(cluster, nominator, a_pod("p", cpu="1"))
    assert isinstance(small, Placed)


def test_a_pod_takes_the_node_that_it_was_promised_though_another_one_is_better() -> None:
    cluster, nominator = a_cluster(a_node("n1", cpu="4"), a_node("n2", cpu="8")), Nominator()
    (waiting,) = queued(cluster, [a_pod("p", cpu="1")])
    nominator.put(waiting.pod, "n1")
    (turn,) = Turns(cluster, {"default-scheduler": PROFILE}, nominator).decide([waiting])
    assert [cluster.nodes.names[placed.row] for placed in turn.placed] == ["n1"]


def test_without_nodes_there_is_no_rejector() -> None:
    (outcome,) = decided(a_cluster(), Nominator(), a_pod("p"))
    assert isinstance(outcome, Turned)
    assert (outcome.message, outcome.rejected_by, outcome.is_error) == (
        "no nodes available to schedule pods",
        frozenset(),
        False,
    )


def test_an_error_of_the_decision_is_none_of_the_nodes() -> None:
    cluster = a_cluster(*NODES)
    cluster.put(StorageClass(metadata=ObjectMeta(name="odd"), provisioner="example.com/disk"))
    claim = PersistentVolumeClaim(
        metadata=ObjectMeta(name="data", namespace="default"),
        spec=PersistentVolumeClaimSpec(storage_class_name="odd"),
    )
    cluster.put(claim)
    (outcome,) = decided(cluster, Nominator(), a_pod("p", claims=["data"]))
    assert isinstance(outcome, Turned)
    assert (outcome.is_error, outcome.rejected_by, outcome.preemption) == (True, frozenset(), None)
    assert 'VolumeBindingMode not set for StorageClass "odd"' in outcome.message
