"""What is assumed of volumes and claims, against upstream's rule: it holds as long as its version is the API server's."""

from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from berth.cluster.cluster import Cluster
from berth.live.assumed import AssumedObjects, is_older, key_of
from berth.live.events import Event
from berth.live.state import ClusterState
from berth.objects.base import ObjectMeta
from berth.objects.storage import (
    ObjectReference,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeSpec,
)

KEY = ("PersistentVolume", "", "v")


def a_volume(claim: str = "") -> PersistentVolume:
    ref = ObjectReference(namespace="default", name=claim, uid=f"uid-{claim}") if claim else None
    return PersistentVolume(
        metadata=ObjectMeta(name="v", uid="uid-v"), spec=PersistentVolumeSpec(claim_ref=ref)
    )


def told(type_: Any, version: int = 0, item: PersistentVolume | None = None) -> Event:
    return Event(type_, *KEY, "uid-v", item, version=str(version) if version else "")


def a_state() -> tuple[ClusterState, AssumedObjects]:
    state = ClusterState(Cluster())
    return state, state.objects


def seen(state: ClusterState) -> PersistentVolume | None:
    return state.cluster.objects.persistent_volumes.get("", "v")


class Twin:
    """Upstream's cache: a store, an assumption beside it, and versions that are compared when somebody asks."""

    def __init__(self) -> None:
        self.store: tuple[int, PersistentVolume] | None = None
        self.assumed: tuple[int, PersistentVolume] | None = None

    def tell(self, version: int, item: PersistentVolume) -> None:
        if self.store and self.seen() != self.store[1] and version < self.store[0]:
            return  # an informer does not go back while it matters
        self.store = (version, item)
        if self.assumed and self.assumed[0] != version:
            self.assumed = None

    def restore(self, version: int) -> None:
        if self.assumed and self.assumed[0] == version:
            self.assumed = None

    def seen(self) -> PersistentVolume | None:
        if self.store is None:
            return None
        return self.assumed[1] if self.assumed else self.store[1]


claims = st.sampled_from(["", "c", "d"])
moves = st.one_of(
    st.tuples(st.just("tell"), st.integers(1, 4), claims),
    st.tuples(st.just("assume"), st.just(0), claims),
    st.tuples(st.just("restore"), st.integers(1, 4), st.just("")),
    st.tuples(st.just("delete"), st.just(0), st.just("")),
)


@given(st.lists(moves, max_size=12))
def test_an_assumption_holds_until_something_newer_is_told(moves: list[tuple[str, int, str]]) -> None:
    state, objects = a_state()
    twin = Twin()
    bodies: dict[int, PersistentVolume] = {}
    for move, version, claim in moves:
        if move == "tell":
            body = bodies.setdefault(version, a_volume(claim))  # a version says one thing
            twin.tell(version, body)
            state.apply(told("MODIFIED", version, body))
        elif move == "assume" and twin.store is not None:
            twin.assumed = (twin.store[0], a_volume(claim))
            assert objects.assume(a_volume(claim)) == str(twin.store[0])
        elif move == "restore":
            twin.restore(version)
            objects.restore(KEY, str(version))
        elif move == "delete":
            twin.store = twin.assumed = None
            state.apply(told("DELETED"))
        assert seen(state) == twin.seen()
        now = objects.told(KEY)
        assert (now and (int(now.version), now.item)) == twin.store


def test_what_was_assumed_and_is_told_changes_no_evaluation_but_the_queue_hears_of_it() -> None:
    state, objects = a_state()
    state.apply(told("ADDED", 1, a_volume()))
    assert objects.assume(a_volume("c")) == "1"
    version = state.cluster.log.version
    assert objects.assume(a_volume("c")) == "1"  # by another pod with the same claim
    event = told("MODIFIED", 2, a_volume("c"))
    state.apply(event)
    assert state.cluster.log.version == version
    assert (event.old, event.changed, len(objects)) == (a_volume(), True, 0)
    assert objects.restore(KEY, "1") is None
    assert seen(state) == a_volume("c")


def test_what_says_nothing_new_ends_an_assumption_too() -> None:
    state, objects = a_state()
    state.apply(told("ADDED", 2, a_volume()))
    objects.assume(a_volume("c"))
    for version in (2, 1):
        state.apply(told("MODIFIED", version, a_volume()))
        assert seen(state) == a_volume("c")
    state.apply(told("MODIFIED", 3, a_volume()))
    assert seen(state) == a_volume()


def test_what_is_given_back_is_a_change() -> None:
    state, objects = a_state()
    state.apply(told("ADDED", 7, a_volume()))
    objects.assume(a_volume("c"))
    assert objects.restore(KEY, "6") is None
    change = objects.restore(KEY, "7")
    assert change is not None
    assert (change.old, change.item, change.changed) == (a_volume("c"), a_volume(), True)
    assert seen(state) == a_volume()


def test_what_can_not_be_read_ends_nothing() -> None:
    state, objects = a_state()
    state.apply(told("ADDED", 1, a_volume()))
    objects.assume(a_volume("c"))
    state.apply(told("MODIFIED", 2, None))
    assert seen(state) == a_volume("c")


def test_claims_are_known_by_namespace() -> None:
    state, objects = a_state()
    for namespace in ("a", "b"):
        item = PersistentVolumeClaim(metadata=ObjectMeta(name="c", namespace=namespace, uid=namespace))
        state.apply(Event("ADDED", *key_of(item), namespace, item, version="3"))
    changed = msgspec.structs.replace(
        item, metadata=msgspec.structs.replace(item.metadata, annotations={"x": "y"})
    )
    objects.assume(changed)
    shelf = state.cluster.objects.persistent_volume_claims
    assert [shelf.get(namespace, "c") == changed for namespace in ("a", "b")] == [False, True]


def test_versions_are_numbers_where_they_look_so() -> None:
    assert is_older("9", "10")
    assert not is_older("10", "9")
    assert not is_older("", "9")
    assert not is_older("a", "b")
