from collections.abc import Callable
from pathlib import Path

import pytest

from berth.store.interface import (
    Decided,
    Outcome,
    RoundError,
    RoundFinished,
    RoundRecord,
    RoundResult,
    RoundSummary,
    Store,
)
from berth.store.sqlite import SqliteStore
from tests.store.builders import NOON, a_change, a_result, all_applied, an_entry, an_object, run_round


def test_without_requests_there_is_no_round(store: Store) -> None:
    assert store.begin_round(NOON) is None
    assert store.unfinished_round() is None
    assert store.rounds() == []


def test_a_round_takes_all_that_waits_in_order_of_arrival(store: Store) -> None:
    for _ in range(3):
        store.submit([an_entry()], NOON)
    taken = store.begin_round(NOON + 5)
    assert taken is not None
    assert (taken.number, taken.began, taken.plan) == (1, NOON + 5, None)
    assert [(r.id, r.round, r.state) for r in taken.requests] == [
        ("r-000001", 1, "waiting"),
        ("r-000002", 1, "waiting"),
        ("r-000003", 1, "waiting"),
    ]
    assert store.waiting_count() == 0
    assert store.unfinished_round() == taken


def test_a_request_goes_from_waiting_to_planned_to_its_end(store: Store) -> None:
    def states() -> list[str]:
        return [request.state for request in store.requests()]

    store.submit([an_entry()], NOON)
    store.submit([an_entry()], NOON)
    taken = store.begin_round(NOON)
    assert taken is not None
    assert states() == ["waiting", "waiting"]
    store.record_plan(1, b"plan", NOON)
    assert states() == ["planned", "planned"]
    won = Decided("add", "shop", "web", "web-1", "node-1")
    lost = Decided("add", "shop", "web", reason="0/6 nodes are available: 6 Insufficient cpu.")
    store.finish_round(
        1, a_result([Outcome("r-000001", "applied", (won,)), Outcome("r-000002", "failed", (lost,))]), NOON
    )
    assert [(r.state, r.decisions) for r in store.requests()] == [("failed", (lost,)), ("applied", (won,))]


def test_a_finished_round_is_on_record(store: Store) -> None:
    store.submit([an_entry()], NOON)
    taken = store.begin_round(NOON + 1)
    assert taken is not None
    store.record_plan(1, b"plan", NOON + 2)
    began = RoundSummary(1, NOON + 1, NOON + 2, None, 0, 0, 0)
    assert store.round(1) == RoundRecord(began, ("r-000001",), b"plan")
    store.finish_round(1, RoundResult(b"final", all_applied(taken), 3, 2, 1, tie_counter=5), NOON + 3)
    ended = RoundSummary(1, NOON + 1, NOON + 2, NOON + 3, 3, 2, 1)
    assert store.round(1) == RoundRecord(ended, ("r-000001",), b"final")
    assert store.rounds() == [ended]
    assert store.unfinished_round() is None


def test_the_tie_counter_is_what_the_last_round_left(path: Path) -> None:
    with SqliteStore(path) as store:
        assert store.tie_counter() == 0
        for counter in (3, 8):
            store.submit([an_entry()], NOON)
            taken = store.begin_round(NOON)
            assert taken is not None
            store.record_plan(taken.number, b"", NOON)
            store.finish_round(taken.number, a_result(all_applied(taken), tie_counter=counter), NOON)
    with SqliteStore(path) as store:
        assert store.tie_counter() == 8


def test_rounds_are_listed_newest_first_page_by_page(store: Store) -> None:
    for _ in range(5):
        store.submit([an_entry()], NOON)
        run_round(store)
    assert [r.number for r in store.rounds(limit=2)] == [5, 4]
    assert [r.number for r in store.rounds(limit=2, before=4)] == [3, 2]
    assert [r.number for r in store.rounds(before=10**30)] == [5, 4, 3, 2, 1]


@pytest.mark.parametrize("unknown", [0, -1, 2, 10**30])
def test_an_unknown_round_is_none(store: Store, unknown: int) -> None:
    store.submit([an_entry()], NOON)
    run_round(store)
    assert store.round(unknown) is None


def test_an_abandoned_round_lets_its_requests_wait_in_their_old_order(store: Store) -> None:
    for _ in range(2):
        store.submit([an_entry()], NOON)
    store.begin_round(NOON)
    store.submit([an_entry()], NOON)
    store.abandon_round(1)
    assert store.round(1) is None
    assert store.waiting_count() == 3
    again = store.begin_round(NOON)
    assert again is not None
    assert again.number == 2
    assert [request.id for request in again.requests] == ["r-000001", "r-000002", "r-000003"]


@pytest.mark.parametrize("plan", [None, b"the plan"])
def test_a_round_under_way_is_found_after_a_restart(path: Path, plan: bytes | None) -> None:
    with SqliteStore(path) as store:
        store.submit([an_entry()], NOON)
        store.begin_round(NOON)
        if plan is not None:
            store.record_plan(1, plan, NOON)
    with SqliteStore(path) as store:
        found = store.unfinished_round()
        assert found is not None
        assert (found.number, found.plan) == (1, plan)
        assert [request.id for request in found.requests] == ["r-000001"]


def test_an_empty_plan_is_a_plan(store: Store) -> None:
    store.submit([an_entry()], NOON)
    store.begin_round(NOON)
    store.record_plan(1, b"", NOON)
    with pytest.raises(RoundError, match="can be finished, not abandoned"):
        store.abandon_round(1)


def test_what_could_not_be_applied_is_queued_again_at_most_once(store: Store) -> None:
    store.submit([an_entry(number=3)], NOON)
    store.begin_round(NOON)
    store.record_plan(1, b"", NOON)
    gone = Outcome("r-000001", "failed", requeue=(an_entry(number=1),))
    store.finish_round(1, a_result([gone]), NOON + 9)
    first, retry = store.request("r-000001"), store.request("r-000002")
    assert first is not None
    assert retry is not None
    assert (first.state, first.retried_as) == ("failed", "r-000002")
    assert (retry.state, retry.retry_of, retry.received) == ("waiting", "r-000001", NOON + 9)
    assert retry.entries == (an_entry(number=1),)

    store.begin_round(NOON)
    store.record_plan(2, b"", NOON)
    with pytest.raises(RoundError, match="r-000002 is a retry already"):
        store.finish_round(2, a_result([Outcome("r-000002", "failed", requeue=(an_entry(),))]), NOON)
    assert store.waiting_count() == 0
    store.finish_round(2, a_result([Outcome("r-000002", "failed")]), NOON)


def test_a_finished_round_is_never_finished_twice(store: Store) -> None:
    store.save_objects([an_object("a", "1")], "snapshot")
    store.submit([an_entry()], NOON)
    run_round(store)
    again = a_result([Outcome("r-000001", "failed")], changes=[a_change("a", "2")], tie_counter=9)
    with pytest.raises(RoundFinished, match="round 1 is finished already"):
        store.finish_round(1, again, NOON)
    assert store.requests()[0].state == "applied"
    assert list(store.objects()) == [an_object("a", "1")]
    assert store.tie_counter() == 0


@pytest.mark.parametrize(
    ("told", "sentence"),
    [
        ([], "r-000001, r-000002"),
        (["r-000001"], "r-000002"),
        (["r-000001", "r-000002", "r-000003"], "r-000003"),
        (["r-000001", "r-000002", "r-000002"], "r-000002"),
        (["r-000001", "nonsense"], "nonsense, r-000002"),
    ],
)
def test_a_round_ends_with_one_outcome_for_each_request(store: Store, told: list[str], sentence: str) -> None:
    for _ in range(2):
        store.submit([an_entry()], NOON)
    store.begin_round(NOON)
    store.record_plan(1, b"", NOON)
    with pytest.raises(RoundError, match=f"see {sentence}$"):
        store.finish_round(1, a_result([Outcome(request, "applied") for request in told]), NOON)
    assert {request.state for request in store.requests()} == {"planned"}


@pytest.mark.parametrize(
    ("misuse", "sentence"),
    [
        (lambda store: store.begin_round(NOON), "round 2 is under way"),
        (lambda store: store.finish_round(2, a_result([]), NOON), "can be abandoned, not finished"),
        (lambda store: store.record_plan(3, b"", NOON), "there is no round 3"),
        (lambda store: store.finish_round(3, a_result([]), NOON), "there is no round 3"),
        (lambda store: store.abandon_round(3), "there is no round 3"),
        (lambda store: store.record_plan(1, b"", NOON), "round 1 is finished"),
        (lambda store: store.abandon_round(1), "round 1 is finished"),
    ],
)
def test_a_step_out_of_turn_is_refused(
    store: Store, misuse: Callable[[Store], object], sentence: str
) -> None:
    store.submit([an_entry()], NOON)
    run_round(store)
    store.submit([an_entry()], NOON)
    under_way = store.begin_round(NOON)
    with pytest.raises(RoundError, match=sentence):
        misuse(store)
    assert store.unfinished_round() == under_way


def test_a_plan_is_recorded_once(store: Store) -> None:
    store.submit([an_entry()], NOON)
    store.begin_round(NOON)
    store.record_plan(1, b"first", NOON)
    with pytest.raises(RoundError, match="round 1 has a plan already"):
        store.record_plan(1, b"second", NOON)


def test_rounds_beyond_those_kept_go_with_their_requests(path: Path) -> None:
    with SqliteStore(path, keep_rounds=2) as store:
        for _ in range(5):
            store.submit([an_entry()], NOON)
            run_round(store)
        assert [r.number for r in store.rounds()] == [5, 4]
        assert [r.id for r in store.requests()] == ["r-000005", "r-000004"]
    with SqliteStore(path, keep_rounds=0) as store:
        store.submit([an_entry()], NOON)
        assert run_round(store) == 6
        assert store.rounds() == []
        assert store.submit([an_entry()], NOON).request == "r-000007"
        assert run_round(store) == 7


def test_the_file_does_not_grow_for_ever(path: Path) -> None:
    def pages_after(store: SqliteStore, n_rounds: int) -> int:
        for _ in range(n_rounds):
            store.submit([an_entry()] * 50, NOON)
            run_round(store)
        with store._database.read() as db:
            return int(db.execute("PRAGMA page_count").fetchone()[0])

    with SqliteStore(path, keep_rounds=3) as store:
        settled = pages_after(store, 5)
        assert pages_after(store, 30) <= settled + 1


def test_notes_of_a_round_are_kept_until_it_is_finished(store: Store) -> None:
    store.submit([an_entry()], NOON)
    with pytest.raises(RoundError, match="there is no round 1"):
        store.note(1, {"a": b"1"})
    taken = store.begin_round(NOON)
    assert taken is not None
    assert store.notes(1) == {}
    store.note(1, {"a": b"1", "b": b"2"})
    store.note(1, {"a": b"3"})
    assert store.notes(1) == {"a": b"3", "b": b"2"}
    store.record_plan(1, b"{}", NOON)
    store.note(1, {"c": b"4"})
    assert store.notes(1) == {"a": b"3", "b": b"2", "c": b"4"}
    store.finish_round(1, a_result(all_applied(taken)), NOON)
    assert store.notes(1) == {}
    with pytest.raises(RoundFinished):
        store.note(1, {"a": b"5"})


def test_an_abandoned_round_leaves_no_notes(store: Store) -> None:
    store.submit([an_entry()], NOON)
    store.begin_round(NOON)
    store.note(1, {"a": b"1"})
    store.abandon_round(1)
    assert store.notes(1) == {}
