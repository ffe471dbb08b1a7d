"""What a cluster is after any history of events: the same as if its last state had been loaded."""

from dataclasses import dataclass, field
from typing import Any

import msgspec
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from berth.cluster.arrays import NONE
from berth.cluster.cluster import Cluster
from berth.live.events import Event
from berth.live.resources import RESOURCES
from berth.live.state import ClusterState
from berth.objects.pod_records import PodRecord
from tests.builders import a_cluster, a_deployment, a_node, a_pod, a_service
from tests.cluster.model import columns_of

NODES, PODS = ("n1", "n2", "n3"), ("p1", "p2", "p3")
Key = tuple[str, str]


def event(type_: Any, kind: str, name: str, uid: str, item: object = None) -> Event:
    """An event with an item as it comes from the wire."""
    resource = RESOURCES[kind]
    decoded = None
    if item is not None:
        line = resource.line(b'{"type":"ADDED","object":%s}' % msgspec.json.encode(item))
        assert line.arrived is not None
        decoded = line.arrived.item
    return Event(type_, kind, "default" if resource.kind.namespaced else "", name, uid, decoded)


def with_uid(item: Any, uid: str) -> Any:
    return msgspec.structs.replace(item, metadata=msgspec.structs.replace(item.metadata, uid=uid))


@dataclass
class World:
    """What the API server has, by kind and name."""

    items: dict[Key, Any] = field(default_factory=dict)
    n_uids: int = 0

    def loaded(self) -> Cluster:
        cluster = Cluster()
        state = ClusterState(cluster)
        for (kind, name), item in sorted(self.items.items(), reverse=True):
            state.apply(event("ADDED", kind, name, item.metadata.uid, item))
        return cluster


items = st.one_of(
    st.builds(
        a_node, st.sampled_from(NODES), cpu=st.sampled_from(["2", "4"]), zone=st.sampled_from([None, "a"])
    ).map(lambda item: ("Node", item)),
    st.builds(
        a_pod,
        st.sampled_from(PODS),
        node=st.sampled_from(["", *NODES]),
        cpu=st.sampled_from(["100m", "1"]),
        host_ports=st.sampled_from([(), (80,)]),
        phase=st.sampled_from(["Pending", "Running", "Succeeded"]),
        terminating=st.booleans(),
    ).map(lambda item: ("Pod", item)),
    st.builds(a_service, st.just("s"), st.sampled_from([{"app": "a"}, {"app": "b"}])).map(
        lambda i: ("Service", i)
    ),
    st.builds(a_deployment, st.just("d"), replicas=st.integers(1, 2)).map(lambda i: ("Deployment", i)),
)


class Histories(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.world = World()
        self.state = ClusterState(Cluster())
        self.assumed: dict[str, int] = {}

    @rule(kind_and_item=items, again=st.booleans())
    def put(self, kind_and_item: tuple[str, Any], again: bool) -> None:
        kind, item = kind_and_item
        key = (kind, item.metadata.name)
        there = self.world.items.get(key)
        if there is None:
            self.world.n_uids += 1
        item = with_uid(item, there.metadata.uid if there else f"uid-{self.world.n_uids}")
        self.world.items[key] = item
        self.tell("MODIFIED" if there else "ADDED", kind, item, item)
        if kind == "Pod" and (item.spec.node_name or item.status.phase == "Succeeded"):
            self.assumed.pop(item.metadata.uid, None)
        if again:
            version, columns = self.state.cluster.log.version, columns_of(self.state.cluster)
            assert not self.tell("MODIFIED", kind, item, item).changed
            assert self.state.cluster.log.version == version
            assert columns_of(self.state.cluster) == columns

    @rule(which=st.integers(0, 99), listed=st.booleans())
    def remove(self, which: int, listed: bool) -> None:
        if not self.world.items:
            return
        key = list(self.world.items)[which % len(self.world.items)]
        item = self.world.items.pop(key)
        self.assumed.pop(item.metadata.uid, None)
        assert self.tell("DELETED", key[0], item, None if listed else item).changed
        assert not self.tell("DELETED", key[0], item, None).changed

    @rule(name=st.sampled_from(PODS), node=st.sampled_from(NODES))
    def assume(self, name: str, node: str) -> None:
        pod, cluster = self.world.items.get(("Pod", name)), self.state.cluster
        row = cluster.nodes.row(node)
        if pod is None or row == NONE or pod.spec.node_name or pod.metadata.uid in self.assumed:
            return
        if pod.status.phase == "Succeeded":
            return
        assumed = cluster.assume(cluster.incoming(pod), row)
        self.state.expect(pod.metadata.uid, assumed)
        self.assumed[pod.metadata.uid] = assumed

    @rule(which=st.integers(0, 9))
    def give_up(self, which: int) -> None:
        if self.assumed:
            uid = list(self.assumed)[which % len(self.assumed)]
            del self.assumed[uid]
            assert self.state.give_up(uid)
            assert not self.state.give_up(uid)

    def tell(self, type_: Any, kind: str, item: Any, shown: Any) -> Event:
        told = event(type_, kind, item.metadata.name, item.metadata.uid, shown)
        self.state.apply(told)
        return told

    @invariant()
    def it_is_as_if_loaded(self) -> None:
        assert self.state.n_assumed == len(self.assumed)
        if not self.assumed:
            assert columns_of(self.state.cluster) == columns_of(self.world.loaded())


TestHistories = Histories.TestCase
TestHistories.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)


# -- assumed pods ---------------------------------------------------------------------------------------------------------


def deciding() -> tuple[ClusterState, int]:
    """A pending pod p, assumed on n1; and what its node held before."""
    cluster = a_cluster(a_node("n1"), a_node("n2"))
    state = ClusterState(cluster)
    pending = with_uid(a_pod("p", cpu="1"), "uid-p")
    state.apply(event("ADDED", "Pod", "p", "uid-p", pending))
    version = cluster.log.version
    state.expect("uid-p", cluster.assume(cluster.incoming(pending), cluster.nodes.row("n1")))
    return state, version


def held(state: ClusterState) -> list[int]:
    cluster = state.cluster
    return [cluster.requested.get(cluster.nodes.row(name))["cpu"] for name in ("n1", "n2")]


def bound(node: str, **more: Any) -> Event:
    return event("MODIFIED", "Pod", "p", "uid-p", with_uid(a_pod("p", cpu="1", node=node, **more), "uid-p"))


def test_a_pod_that_is_seen_bound_where_it_was_assumed_changes_nothing_any_more() -> None:
    state, version = deciding()
    assert held(state) == [1000, 0]
    rows_before = state.cluster.log.since(version)
    state.apply(bound("n1"))
    changes = state.cluster.log.since(version)
    assert changes is not None
    assert rows_before is not None
    assert [(c.row, c.sign) for c in changes.pods] == [(c.row, c.sign) for c in rows_before.pods] == [(0, 1)]
    assert held(state) == [1000, 0]
    assert (state.n_assumed, len(state.cluster.pods)) == (0, 1)


def test_a_pod_that_another_scheduler_bound_is_where_that_put_it() -> None:
    state, _ = deciding()
    state.apply(bound("n2"))
    assert held(state) == [0, 1000]
    assert state.n_assumed == 0


def test_news_of_a_pod_that_is_not_bound_yet_leaves_it_assumed() -> None:
    state, _ = deciding()
    state.apply(bound("", phase="Pending"))
    assert held(state) == [1000, 0]
    assert state.n_assumed == 1


@pytest.mark.parametrize("namesake", [False, True])
def test_a_pod_that_is_deleted_while_it_is_decided_is_gone(namesake: bool) -> None:
    state, _ = deciding()
    state.apply(event("DELETED", "Pod", "p", "uid-p"))
    if namesake:
        state.apply(event("ADDED", "Pod", "p", "uid-2", with_uid(a_pod("p", cpu="1"), "uid-2")))
        state.apply(event("DELETED", "Pod", "p", "uid-p"))
    assert held(state) == [0, 0]
    assert (state.n_assumed, len(state.cluster.pods)) == (0, int(namesake))


def test_who_hears_of_a_pod_after_the_cluster_still_finds_its_node() -> None:
    state, _ = deciding()
    told = bound("n1")
    state.apply(told)
    assert isinstance(told.item, PodRecord)
    assert told.item.spec.node_name == "n1"


def test_what_can_t_be_read_leaves_what_was_there(caplog: pytest.LogCaptureFixture) -> None:
    state = ClusterState(a_cluster(a_node("n1", cpu="4")))
    before = columns_of(state.cluster)
    broken = {"metadata": {"name": "n1"}, "status": {"allocatable": {"cpu": "four"}}}
    pod = {"metadata": {"name": "p", "namespace": "default"}, "spec": {"containers": [
        {"resources": {"requests": {"cpu": "much"}}}]}}  # fmt: skip
    for told in (event("MODIFIED", "Node", "n1", "", broken), event("ADDED", "Pod", "p", "", pod)):
        state.apply(told)
        assert not told.changed
    assert columns_of(state.cluster) == before
    assert "Node /n1 is left out" in caplog.text
    assert "Pod default/p is left out" in caplog.text
