"""The process that `test_kill` kills. It submits lists and carries them out in rounds, for ever.

A list counts as carried out in an object of its name, which is written with the round's result.
Arguments: the store, the number of the first list, and how it ends: killed from outside, in two threads, or
by itself in one, just before the writing connection's given statement.
"""

import itertools
import os
import signal
import sys
import threading
import time

from berth.store.interface import (
    Decided,
    Entry,
    IdempotencyKey,
    ObjectChange,
    OpenRound,
    Outcome,
    RoundResult,
    Store,
)
from berth.store.sqlite import SqliteStore


def carried_out(store: Store) -> dict[str, int]:
    """How often each list was carried out."""
    return {found.name: int(found.body) for found in store.objects()}


def finish(store: Store, taken: OpenRound) -> None:
    counts = carried_out(store)
    outcomes, changes = [], []
    for request in taken.requests:
        for entry in request.entries:
            counts[entry.service] = counts.get(entry.service, 0) + 1
            changes.append(ObjectChange("Counter", "", entry.service, b"%d" % counts[entry.service]))
        decisions = tuple(
            Decided(e.operation, e.namespace, e.service, "pod", "node") for e in request.entries
        )
        outcomes.append(Outcome(request.id, "applied", decisions))
    result = RoundResult(b"final", outcomes, len(changes), 0, 0, tie_counter=taken.number, changes=changes)
    store.finish_round(taken.number, result, time.time())


def recover(store: Store) -> None:
    taken = store.unfinished_round()
    if taken is None:
        return
    if taken.plan is None:
        store.abandon_round(taken.number)
    else:
        finish(store, taken)


def run_rounds(store: Store) -> None:
    while (taken := store.begin_round(time.time())) is not None:
        store.record_plan(taken.number, b"plan", time.time())
        finish(store, taken)


def submit(store: Store, n: int) -> None:
    name = f"list-{n}"
    store.submit([Entry("add", "shop", name, 1)], time.time(), IdempotencyKey(name, name.encode()))
    print(n, flush=True)


def submit_for_ever(store: Store, first: int) -> None:
    for n in itertools.count(first):
        submit(store, n)


def run_in_two_threads(store: Store, first: int) -> None:
    threading.Thread(target=submit_for_ever, args=(store, first), daemon=True).start()
    while True:
        run_rounds(store)


def run_until_statement(store: SqliteStore, first: int, last: int) -> None:
    statements = itertools.count(1)

    def die_in_time(_: str) -> None:
        if next(statements) == last:
            os.kill(os.getpid(), signal.SIGKILL)

    store._database._writer.set_trace_callback(die_in_time)
    for n in itertools.count(first):
        submit(store, n)
        run_rounds(store)


def main() -> None:
    path, first, *statement = sys.argv[1:]
    store = SqliteStore(path, keep_rounds=1_000_000)
    print("opened", flush=True)
    if store.held_state() is None:
        store.save_objects([], "counters")
    recover(store)
    if statement:
        run_until_statement(store, int(first), int(statement[0]))
    else:
        run_in_two_threads(store, int(first))


if __name__ == "__main__":
    main()
