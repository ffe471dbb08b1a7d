import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from berth.store.interface import ObjectChange, RoundError, Store, StoredObject
from berth.store.sqlite import SqliteStore
from tests.store.builders import NOON, a_change, a_result, all_applied, an_entry, an_object


def apply(store: Store, changes: list[ObjectChange]) -> None:
    store.submit([an_entry()], NOON)
    taken = store.begin_round(NOON)
    assert taken is not None
    store.record_plan(taken.number, b"", NOON)
    store.finish_round(taken.number, a_result(all_applied(taken), changes=changes), NOON)


def test_at_first_no_state_is_held(store: Store) -> None:
    assert store.held_state() is None
    assert list(store.objects()) == []


def test_an_empty_cluster_is_a_state(store: Store) -> None:
    store.save_objects([], "nothing")
    assert store.held_state() == "nothing"


def test_objects_come_back_as_saved_in_their_order(path: Path) -> None:
    objects = [
        StoredObject("Pod", "shop", "b", b"\x00\xff"),
        StoredObject("Node", "", "n", b"{}"),
        StoredObject("Pod", "shop", "a", b""),
        StoredObject("Pod", "other", "b", b"{}"),
    ]
    with SqliteStore(path) as store:
        store.save_objects(iter(objects), "demo, seed 1")
    with SqliteStore(path) as store:
        assert store.held_state() == "demo, seed 1"
        assert list(store.objects()) == objects


def test_saving_again_replaces_the_state(store: Store) -> None:
    store.save_objects([an_object("a"), an_object("b")], "one")
    store.save_objects([an_object("c")], "two")
    assert list(store.objects()) == [an_object("c")]
    assert store.held_state() == "two"


def test_a_changed_object_keeps_its_place_and_a_new_one_comes_last(store: Store) -> None:
    store.save_objects([an_object(name) for name in "abc"], "snapshot")
    apply(store, [a_change("d", "new"), a_change("a", "changed"), a_change("b", None), a_change("x", None)])
    assert list(store.objects()) == [an_object("a", "changed"), an_object("c"), an_object("d", "new")]


def test_an_object_that_goes_and_comes_again_comes_last(store: Store) -> None:
    store.save_objects([an_object(name) for name in "ab"], "snapshot")
    apply(store, [a_change("a", None), a_change("a", "again")])
    assert list(store.objects()) == [an_object("b"), an_object("a", "again")]


def test_changes_need_a_state(store: Store) -> None:
    with pytest.raises(RoundError, match="no cluster state is held"):
        apply(store, [a_change("a", "1")])
    assert store.unfinished_round() is not None


def test_a_source_that_breaks_off_leaves_the_state_as_it_was(store: Store) -> None:
    def broken() -> Iterator[StoredObject]:
        yield an_object("new")
        raise ValueError("pods.json is broken")

    store.save_objects([an_object("old")], "snapshot")
    with pytest.raises(ValueError, match=r"pods\.json"):
        store.save_objects(broken(), "another")
    assert list(store.objects()) == [an_object("old")]
    assert store.held_state() == "snapshot"


def test_an_object_named_twice_is_the_callers_mistake(store: Store) -> None:
    with pytest.raises(sqlite3.IntegrityError):
        store.save_objects([an_object("a"), an_object("a")], "snapshot")
    assert store.held_state() is None


def test_reset_drops_the_state_alone(store: Store) -> None:
    store.save_objects([an_object("a")], "snapshot")
    store.submit([an_entry()], NOON)
    taken = store.begin_round(NOON)
    assert taken is not None
    store.record_plan(1, b"", NOON)
    store.finish_round(1, a_result(all_applied(taken), tie_counter=4), NOON)
    store.submit([an_entry()], NOON)
    store.reset()
    assert store.held_state() is None
    assert list(store.objects()) == []
    assert (store.waiting_count(), len(store.rounds()), store.tie_counter()) == (1, 1, 4)


def test_who_reads_sees_one_state_while_rounds_go_on(store: Store) -> None:
    saved = [an_object(f"pod-{n}") for n in range(500)]
    store.save_objects(saved, "snapshot")
    reading = store.objects()
    seen = [next(reading)]
    apply(store, [a_change("pod-400", None), a_change("pod-499", "changed")])
    assert seen + list(reading) == saved
    assert len(list(store.objects())) == 499


def test_an_iteration_may_be_left_half_way(store: Store) -> None:
    store.save_objects([an_object("a"), an_object("b")], "snapshot")
    assert next(store.objects()) == an_object("a")
    store.reset()


def test_much_is_saved_without_leaving_a_large_log(path: Path) -> None:
    with SqliteStore(path) as store:
        store.save_objects((an_object(f"pod-{n}", "x" * 500) for n in range(20_000)), "snapshot")
        assert sum(1 for _ in store.objects()) == 20_000
        assert Path(f"{path}-wal").stat().st_size < 1_000_000
