"""Builds what a test of the store needs, in a line each."""

from collections.abc import Sequence

from berth.store.interface import (
    Decided,
    Entry,
    IdempotencyKey,
    ObjectChange,
    OpenRound,
    Outcome,
    RoundResult,
    Store,
    StoredObject,
)

NOON = 1_800_000_000.0  # s


def an_entry(service: str = "shop/web", number: int = 1) -> Entry:
    namespace, name = service.split("/")
    return Entry("add", namespace, name, number)


def a_key(key: str = "k", body: str = "body") -> IdempotencyKey:
    return IdempotencyKey(key, body.encode())


def an_object(name: str, body: str = "{}", kind: str = "Pod") -> StoredObject:
    return StoredObject(kind, "shop", name, body.encode())


def a_change(name: str, body: str | None, kind: str = "Pod") -> ObjectChange:
    return ObjectChange(kind, "shop", name, None if body is None else body.encode())


def all_applied(taken: OpenRound) -> list[Outcome]:
    """Every entry of every request of the round, carried out as one decision."""
    return [
        Outcome(
            request.id,
            "applied",
            tuple(Decided(e.operation, e.namespace, e.service, "pod-1", "node-1") for e in request.entries),
        )
        for request in taken.requests
    ]


def a_result(
    outcomes: Sequence[Outcome],
    *,
    plan: bytes = b"{}",
    tie_counter: int = 0,
    changes: Sequence[ObjectChange] = (),
) -> RoundResult:
    return RoundResult(plan, outcomes, len(outcomes), 0, 0, tie_counter, changes)


def run_round(store: Store) -> int:
    """Take what waits and apply all of it; the round's number comes back."""
    taken = store.begin_round(NOON)
    assert taken is not None
    store.record_plan(taken.number, b"plan", NOON)
    store.finish_round(taken.number, a_result(all_applied(taken), plan=b"final plan"), NOON)
    return taken.number
